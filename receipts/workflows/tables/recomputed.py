"""Figures of a row that follow from its other figures, by the formula that the page states: which rows disagree.

Numbers are intervals of half their last printed digit, and so is what follows from them. A formula is arithmetic on
columns; a *constant* is a formula that has one value in all rows of a group, such as the peak that a page divides by.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from receipts.stats.rounding import half_of
from receipts.workflows.tables.quantity import read_quantity
from receipts.workflows.tables.table import TableRow

SLACK: Final = 1e-9
Span = tuple[float, float]
_OPERATIONS: Final = (ast.Add, ast.Sub, ast.Mult, ast.Div)


@dataclass(frozen=True, slots=True)
class RowCheck:
    """``left`` equals ``right``, or ``constant`` has one value where the columns ``within`` are equal.

    ``names`` are columns by the name that the formulas use. Those in ``exact`` are counts, without rounding; those
    ``truncated`` are cut after their last digit, and not rounded. ``slack`` is a share by which both may differ.
    """

    says: str
    names: Mapping[str, tuple[str, ...]]
    left: str = ""
    right: str = ""
    constant: str = ""
    within: tuple[str, ...] = ()
    exact: frozenset[str] = field(default_factory=frozenset)
    truncated: frozenset[str] = field(default_factory=frozenset)
    slack: float = 0.0


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
        left, right = _value(check.left, known), _value(check.right, known)
        if left is not None and right is not None and not _meet(left, right, check.slack):
            yield Disagreement(row.where, check.says, _shown(left), _shown(right))


def _constant(rows: Sequence[TableRow], check: RowCheck) -> Iterable[Disagreement]:
    groups: defaultdict[tuple[str, ...], list[tuple[TableRow, Span]]] = defaultdict(list)
    for row in rows:
        known = _figures(row, check)
        span = _value(check.constant, known) if known is not None else None
        if span is not None:
            groups[tuple(str(row.at(name) or "").lower() for name in check.within)].append((row, span))
    for members in groups.values():
        usual = median((low + high) / 2 for _, (low, high) in members)
        for row, span in members:
            if not _meet(span, (usual, usual), check.slack):
                yield Disagreement(row.where, check.says, _shown(span), f"{usual:.4g} as in most rows")


def _figures(row: TableRow, check: RowCheck) -> dict[str, Span] | None:
    """The figures by name; None where the row lacks one."""
    known: dict[str, Span] = {}
    for name, columns in check.names.items():
        cell = next((value for column in columns if (value := row.at(column)) is not None), None)
        quantity = read_quantity(cell) if cell is not None else None
        if quantity is None:
            return None
        half = 0.0 if name in check.exact else half_of(quantity.value, quantity.text)
        low = 0.0 if name in check.truncated else half
        known[name] = quantity.value - low, quantity.value + 2 * half - low
    return known


def _value(formula: str, known: Mapping[str, Span]) -> Span | None:
    """The interval of a formula; None where it divides by zero."""
    return _of(ast.parse(formula, mode="eval").body, known)


def _of(node: ast.expr, known: Mapping[str, Span]) -> Span | None:
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value), float(node.value)
    if not isinstance(node, ast.BinOp):
        return None
    a, b = _of(node.left, known), _of(node.right, known)
    if a is None or b is None:
        return None
    if isinstance(node.op, ast.Add):
        return a[0] + b[0], a[1] + b[1]
    if isinstance(node.op, ast.Sub):
        return a[0] - b[1], a[1] - b[0]
    if isinstance(node.op, ast.Mult):
        ends = [x * y for x in a for y in b]
    elif b[0] <= 0.0 <= b[1]:
        return None
    else:
        ends = [x / y for x in a for y in b]
    return min(ends), max(ends)


def _meet(a: Span, b: Span, slack: float) -> bool:
    room = (SLACK + slack) * max(map(abs, (*a, *b)))
    return a[0] - room <= b[1] and b[0] - room <= a[1]


def _shown(span: Span) -> str:
    return f"{(span[0] + span[1]) / 2:.6g}"
