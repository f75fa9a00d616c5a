"""Numbers as notebooks print them: `~90400`, `4.73B`, `98k`, `about 5.5 s`, `1,450 ms`, `136.27 GB (stage 0)`.

What names more than one number, a range or a bound is not a number, and stays text. Figures of a row that follow from
its other figures, by the formula that the page states, are computed again: `disagreements` are the rows that do not
fit. There numbers are intervals of half their last printed digit, and so is what follows from them. A formula is
arithmetic on columns; a *constant* is a formula that has one value in all rows of a group, such as the peak that a
page divides by.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts.base.units import BINARY, BYTES, LETTERS, SECONDS, plain
from receipts.plugins.exchange.table import PrintedCell, TableRow
from receipts.stats.rounding import Interval, half_of

if TYPE_CHECKING:
    from receipts.plugins.exchange.mapping import RowCheck


# What a mapping may say of a column's bare numbers: their factor to what receipts keep (seconds, bytes, one).
_TIMES = ("s", "ms", "us", "ns", "min", "h")
_SIZES = ("B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB")
UNITS = {
    "": 1.0,
    **{unit: SECONDS[unit] for unit in _TIMES},
    **{unit: BYTES[unit] for unit in _SIZES},
    "%": 1e-2,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
}
UNITS_OF_BYTES = frozenset(BYTES) - {"B", "bytes"}
# Letters behind a count, and the one that notebooks write for billions.
_SCALES = LETTERS | {"b": LETTERS["B"]}
_LETTER = re.compile(r"(?<=[\d ])(?P<letter>[kKMG])\b")
_ABOUT = re.compile(r"^(?:~|≈|about\s+|approx\.?\s+|ca\.?\s+)\s*", re.IGNORECASE)
_ASIDE = re.compile(r"\s*\([^()]*\)\s*$")
_NUMBER = re.compile(
    r"^(?P<number>[+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,3}(?:[ _\u00a0\u2009\u202f]\d{3})+|\d+)?(?:\.\d+)?"
    r"(?:[eE][+-]?\d+)?)\s*"
    r"(?P<word>[A-Za-zµ%][A-Za-zµ%/ ]*)?$"
)
_PER_STEP = re.compile(r"/(?:it|iter|iteration|step)s?$")
_RATE = re.compile(
    r"(?P<letter>[kKMBG]?)\s?(?:(?P<tokens>tok(?:en)?s?/s(?:ec)?)|(?P<flops>TFLOPs|TFLOPS|TFLOP/s|TFLOPs/s))"
    r"(?P<chip>/(?:gpu|chip|device))?",
    re.IGNORECASE,
)
_RANGE = re.compile(
    r"^(?P<low>\d[\d,]*(?:\.\d+)?)(?P<letter>[kMG]?)\s*[-–]\s*(?P<high>\d[\d,]*(?:\.\d+)?)\s*(?P<word>[A-Za-zµ%]*)$"
)

Several = Literal["median", "middle", "no"]


@dataclass(frozen=True, slots=True)
class TableQuantity:
    """A number in SI units; ``text`` is how the source printed it, with its unit.

    ``coarse`` says that a unit or a letter scaled it, so that its fraction is no more than rounding: 135.52 GiB.
    ``kind`` is what its unit measures: `seconds`, `bytes`, `share`, `tokens/s`, `tokens/s/chip`, `TFLOP/s`; empty
    where it has none.
    """

    value: float
    text: str
    coarse: bool = False
    kind: str = ""


def read_quantity(
    source: Any, unit: str = "", *, several: Several = "no", binary: bool = False
) -> TableQuantity | None:
    """The one number that ``source`` states, or None. ``unit`` is what a bare number is in.

    ``several`` says what text with several numbers is taken for: `median` of a list such as `1116/1082/1064`,
    `middle` that too and the middle of a range such as `165-178`, `no` neither. ``binary`` says that a letter is of
    1,024, as in a sequence of `4K` tokens. No number is one that is not finite.
    """
    if binary and isinstance(source, str) and (letter := _LETTER.search(source)):
        quantity = read_quantity(source[: letter.start()] + source[letter.end() :], several=several)
        factor = BINARY[letter[0].upper()]
        return quantity and replace(quantity, value=quantity.value * factor, text=source.strip(), coarse=True)
    try:
        quantity = _read(source, unit, several)
    except OverflowError:  # an integer that no float holds
        return None
    return quantity if quantity is not None and math.isfinite(quantity.value) else None


def _read(source: Any, unit: str, several: Several) -> TableQuantity | None:
    if isinstance(source, bool):
        return None
    if isinstance(source, int | float):
        text = source.text if isinstance(source, PrintedCell) else str(source)
        return TableQuantity(
            scaled(float(source), unit), f"{text} {unit}".rstrip(), unit in UNITS_OF_BYTES, kind_of(unit)
        )
    if isinstance(source, list) and several != "no":
        return _median([read_quantity(item, unit) for item in source], ", ".join(str(item) for item in source))
    if not isinstance(source, str):
        return None
    quantity = _one(source, unit)
    if quantity is None and several != "no" and "/" in source:
        quantity = _median([_one(part, unit) for part in source.split("/")], source)
    if quantity is None and several == "middle":
        quantity = _middle(source, unit)
    return quantity


def scaled(value: float, unit: str) -> float:
    """A number of ``unit`` in SI units, without the noise of a multiplication where a division is exact."""
    factor = UNITS.get(unit) or SECONDS.get(unit) or BYTES[unit]
    return value / round(1 / factor) if factor < 1 else value * factor


def kind_of(unit: str) -> str:
    """What a unit measures; empty for none, and for a letter that only scales."""
    if unit in SECONDS:
        return "seconds"
    return "bytes" if unit in BYTES else "share" if unit == "%" else ""


def _one(text: str, unit: str) -> TableQuantity | None:
    bare = _ABOUT.sub("", _ASIDE.sub("", text.strip()))
    match = _NUMBER.match(bare)
    if match is None or not re.search(r"\d", match["number"]):
        return None
    number, word = float(plain(match["number"])), (match["word"] or "").strip().replace("µ", "u")
    if not word:
        if match["number"].count(" ") > 1 and not unit:  # `128 256 512` may be three numbers
            return None
        shown = text.strip() if not unit else f"{text.strip()} {unit}"
        return TableQuantity(scaled(number, unit), shown, unit in UNITS_OF_BYTES, kind_of(unit))
    # A word behind the number goes before the unit of the column.
    if word in _SCALES and unit not in BYTES:
        # `14k` in a column of thousands says thousands once.
        rest = "" if unit in _SCALES else unit
        return TableQuantity(scaled(number * _SCALES[word], rest), text.strip(), True, kind_of(rest))
    spelled = _PER_STEP.sub("", word)
    spelled = spelled.lower() if len(spelled) > 2 and spelled.lower() in SECONDS else spelled
    kind = kind_of(spelled)
    if kind == "seconds" or (kind and spelled == word):
        return TableQuantity(scaled(number, spelled), text.strip(), spelled in UNITS_OF_BYTES, kind)
    rate = _RATE.fullmatch(word)
    if rate is None or (rate["letter"] and rate["letter"] not in _SCALES):  # `12 mtok/s` may be millions or thousandths
        return None
    kind = "TFLOP/s" if rate["flops"] else "tokens/s/chip" if rate["chip"] else "tokens/s"
    return TableQuantity(number * _SCALES.get(rate["letter"], 1.0), text.strip(), bool(rate["letter"]), kind)


def _middle(text: str, unit: str) -> TableQuantity | None:
    """The middle of `165-178` or `~4.89-5.09 s`; the word after the second number holds for both."""
    match = _RANGE.match(_ABOUT.sub("", _ASIDE.sub("", text.strip())))
    if match is None:
        return None
    low, high = _one(match["low"] + (match["letter"] or match["word"]), unit), _one(match["high"] + match["word"], unit)
    if low is None or high is None or low.value >= high.value:
        return None
    shown = text.strip() if match["word"] or not unit else f"{text.strip()} {unit}"
    return TableQuantity((low.value + high.value) / 2, shown, True, high.kind)


def _median(quantities: list[TableQuantity | None], text: str) -> TableQuantity | None:
    values = [item.value for item in quantities if item is not None]
    if not values or len(values) < len(quantities):
        return None
    kinds = {item.kind for item in quantities if item is not None}
    return TableQuantity(statistics.median(values), text.strip(), kind=kinds.pop()) if len(kinds) == 1 else None


def rounded_text(value: int) -> str:
    """An integer as a person rounds it, so that its last digit tells its tolerance: 165000 is `165k`."""
    for factor, letter in ((10**9, "B"), (10**6, "M"), (1000, "k")):
        if value and value % factor == 0:
            return f"{value // factor}{letter}"
    return str(value)


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
    """Why a formula is none: other words than names, or more than arithmetic; empty if it is one."""
    try:
        tree = ast.parse(formula, mode="eval")
    except (SyntaxError, ValueError):
        return "it is not arithmetic"
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
    """The figures by name; None if the row lacks one."""
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
    """The interval of a formula; None if it divides by zero."""
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
