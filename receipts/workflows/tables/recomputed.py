"""Figures of a row that follow from its other figures, by the formula that the page states: which rows disagree.

Numbers are intervals of half their last printed digit, and so is what follows from them. A formula is arithmetic on
columns; a *constant* is a formula that has one value in all rows of a group, such as the peak that a page divides by.
"""

from __future__ import annotations

import ast
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from receipts.stats.rounding import Interval, half_of
from receipts.workflows.tables.quantity import read_quantity
from receipts.workflows.tables.table import TableRow

if TYPE_CHECKING:
    from receipts.workflows.tables.mapping import RowCheck

SLACK: Final = 1e-9
_OPERATIONS: Final[Mapping[type[ast.operator], Callable[[Interval, Interval], Interval]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row whose figures do not follow from each other."""

    where: str
    says: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.where}: {self.says}: {self.found}, expected {self.expected}"


def disagreements(rows: Sequence[TableRow], checks: Iterable[RowCheck]) -> list[Disagreement]:
    """Every row that a check does not fit. A row without a figure that a check needs is none of its rows."""
    return [item for check in checks for item in (_constant(rows, check) if check.constant else _equal(rows, check))]


def problem_of(formula: str, names: Iterable[str]) -> str:
    """Why a formula is none: other words than names, or more than arithmetic; empty where it is one."""
    try:
        tree = ast.parse(formula, mode="eval")
    except (SyntaxError, ValueError):
        return "it is no arithmetic"
    allowed = (ast.Expression, ast.BinOp, ast.Name, ast.Load, ast.Constant, *_OPERATIONS)
    for node in ast.walk(tree):
        if not isinstance(node, allowed) or (
            isinstance(node, ast.Constant) and not (isinstance(node.value, int | float))
        ):
            return "it holds more than + - * / on names and numbers"
        if isinstance(node, ast.Name) and node.id not in names:
            return f"{node.id} is not one of {', '.join(names)}"
    return ""


def _equal(rows: Sequence[TableRow], check: RowCheck) -> Iterable[Disagreement]:
    for row in rows:
        known = _figures(row, check)
        if known is None:
            continue
        left, right = (_value(_parsed(formula), known) for formula in (check.left, check.right))
        if left is not None and right is not None and not _meet(left, right, check.slack):
            yield Disagreement(row.where, check.says, _shown(left), _shown(right))


def _constant(rows: Sequence[TableRow], check: RowCheck) -> Iterable[Disagreement]:
    groups: defaultdict[tuple[str, ...], list[tuple[TableRow, Interval]]] = defaultdict(list)
    for row in rows:
        known = _figures(row, check)
        span = _value(_parsed(check.constant), known) if known is not None else None
        if span is not None:
            groups[tuple(str(row.at(name) or "").lower() for name in check.within)].append((row, span))
    for members in groups.values():
        usual = median((span.low + span.high) / 2 for _, span in members)
        for row, span in members:
            if not _meet(span, Interval.exact(usual), check.slack):
                yield Disagreement(row.where, check.says, _shown(span), f"{usual:.4g} as in most rows")


def _parsed(formula: str) -> ast.expr:
    return ast.parse(formula, mode="eval").body


def _figures(row: TableRow, check: RowCheck) -> dict[str, Interval] | None:
    """The figures by name; None where the row lacks one."""
    known: dict[str, Interval] = {}
    for name, columns in check.names.items():
        cell = next((value for column in columns if (value := row.at(column)) is not None), None)
        quantity = read_quantity(cell) if cell is not None else None
        if quantity is None:
            return None
        half = 0.0 if name in check.exact else half_of(quantity.value, quantity.text)
        low = 0.0 if name in check.truncated else half
        known[name] = Interval(quantity.value - low, quantity.value + 2 * half - low)
    return known


def _value(node: ast.expr, known: Mapping[str, Interval]) -> Interval | None:
    """The interval of a formula; None where it divides by zero."""
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Interval.exact(float(node.value))
    if not isinstance(node, ast.BinOp):
        return None
    a, b = _value(node.left, known), _value(node.right, known)
    if a is None or b is None or (isinstance(node.op, ast.Div) and b.low <= 0.0 <= b.high):
        return None
    return _OPERATIONS[type(node.op)](a, b)


def _meet(a: Interval, b: Interval, slack: float) -> bool:
    room = (SLACK + slack) * max(map(abs, (a.low, a.high, b.low, b.high)))
    return a.low - room <= b.high and b.low - room <= a.high


def _shown(span: Interval) -> str:
    return f"{(span.low + span.high) / 2:.6g}"
