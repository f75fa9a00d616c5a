"""What a statement is held against: readings that it allows, two receipts' difference, and a linked recipe's log.

An interval is half the last digit around what is printed. A stated difference agrees where it is the one that two
receipts give. A link to ``github.com/OWNER/REPO/tree/REF/PATH`` names a file here where REPO lies beside the page, or
beside a folder above it; a relative link names the file itself. The log is read as `receipts ingest` reads it, prose
and all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from receipts import metrics
from receipts.base.files import read_small
from receipts.metrics import Metric
from receipts.plugins.lint.statement import MIRRORED, Bound, Direction, Statement, factor_of
from receipts.receipt.accelerators import find_accelerator
from receipts.stats.distributions import median
from receipts.stats.rounding import Interval

if TYPE_CHECKING:
    from receipts.judging.verdict import MetricResult


_FASTER = re.compile(
    r"\b(?:faster|quicker|slower|speeds?\sup|sped|speed-?ups?|slow(?:s|ed)?[\s-]?downs?|as fast|as quick)\b",
    re.IGNORECASE,
)
_LEAST = -0.9  # of a percentage that is open below: the rate or time stays above zero
_AS_LONG = re.compile(r"\bas (?:long|slow)\b", re.IGNORECASE)


def readings(statement: Statement) -> tuple[Interval, ...]:
    """The values that are stated, in the registry's unit: seconds, bytes, tokens/s, TFLOP/s, a fraction for MFU.

    A bound opens the interval of a lone value: `under 2.6 s`, `at least 98k tok/s`.
    """
    factor = factor_of(statement)
    interval = tuple(one * factor for one in statement.intervals)
    return tuple(_opened(one, statement.bound, 0.0) for one in interval) if len(interval) == 1 else interval


def _opened(interval: Interval, bound: Bound, least: float) -> Interval:
    match bound:
        case "least":
            return Interval(interval.low, math.inf)
        case "most":
            return Interval(-math.inf, interval.high)
        case "reach":
            return Interval(min(least, interval.low), interval.high)
    return interval


def ratios(statement: Statement, *, lower_is_better: bool) -> tuple[Interval, ...]:
    """The ratios, candidate over baseline of the metric, that a factor or a percentage may mean.

    `24 % slower` is said of the rate as well as of the time: both are allowed. Without a direction so are both senses.
    """
    stated = Interval(min(one.low for one in statement.intervals), max(one.high for one in statement.intervals))
    by_speed = _FASTER.search(statement.text) is not None and not _AS_LONG.search(statement.text)
    if statement.unit == "%":
        bound = MIRRORED.get(statement.bound, statement.bound) if stated.high <= 0.0 else statement.bound
        size = _opened(magnitude(stated), bound, 0.0) * 0.01
        candidates = _percentages(
            Interval(max(size.low, _LEAST if statement.direction != "none" else 0.0), size.high),
            statement.direction,
            by_speed,
            lower_is_better,
        )
    else:
        opened = _opened(stated, statement.bound, min(1.0, stated.low))
        level = stated.high < 1.0
        candidates = _factors(Interval(max(opened.low, 0.0), opened.high), statement.direction, level, lower_is_better)
    if lower_is_better and by_speed:
        return tuple(1.0 / item for item in candidates)
    return candidates


def magnitude(stated: Interval) -> Interval:
    """The size of a difference, whatever its sign."""
    if stated.high <= 0:
        return Interval(-stated.high, -stated.low)
    return stated


def _percentages(size: Interval, direction: Direction, by_speed: bool, lower_is_better: bool) -> tuple[Interval, ...]:
    up, down = 1.0 + size, size * -1.0 + 1.0
    match direction:
        case "equal":
            return (Interval(1.0 - size.high, 1.0 + size.high),)
        case "up":
            return (up,)
        case "down":
            return (down, 1.0 / up) if by_speed else (down,)
        case "better":
            return (down, 1.0 / up) if lower_is_better else (up,)
        case "worse":
            return (up,) if lower_is_better else (down, 1.0 / up)
    return (up, down)


def _factors(stated: Interval, direction: Direction, level: bool, lower_is_better: bool) -> tuple[Interval, ...]:
    if level or direction == "equal":
        return (stated,)
    if direction == "none":
        return (stated, 1.0 / stated)
    fell = direction == "down" or direction == ("better" if lower_is_better else "worse")
    return (1.0 / stated,) if fell else (stated,)


# Words between two numbers of which the first may be the later one: `38 ms instead of 41 ms`.
_AGAINST = re.compile(r"\b(?:vs\.?|versus|instead\sof|against|compared|over)\b", re.IGNORECASE)


def agrees(item: Statement, metric: Metric, result: MetricResult, a: float | None, b: float | None) -> tuple[bool, str]:
    """Whether the stated difference is the one that the receipts give, and what they give, in words."""
    assert result.a.value is not None
    assert result.b.value is not None
    if item.kind == "change":
        return _change(item, metric, a if a is not None else result.a.value, b if b is not None else result.b.value)
    ratio = result.b.value / result.a.value if result.a.value else float("inf")
    effect = result.effect
    given = (
        Interval(effect.low, effect.high)
        if effect.low is not None and effect.high is not None
        else Interval.exact(ratio)
    )
    expected = ratios(item, lower_is_better=metric.better == "lower")
    span = f", 95 % interval {given.low:.4g} to {given.high:.4g}" if given.low != given.high else ""
    return any(one.meets(given) for one in expected), f"the receipts give {metric.title} × {ratio:.4g}{span}"


def _change(item: Statement, metric: Metric, a: float, b: float) -> tuple[bool, str]:
    reading = f"the receipts read {metrics.shown(metric, a)} and {metrics.shown(metric, b)}"
    expected = readings(item)
    if len(expected) == 2:
        first, second = expected
        after = _AGAINST.search(item.text) is not None and first.contains(b) and second.contains(a)
        return after or (first.contains(a) and second.contains(b)), reading
    difference = abs(b - a)
    rose = b >= a
    better = rose if metric.better == "higher" else b <= a
    directions = {"up": rose, "down": b <= a, "better": better, "worse": not better}
    matches = any(magnitude(one).contains(difference) for one in expected)
    return matches and directions.get(item.direction, True), reading


TOLERANCE: Final = 0.01  # a page rounds, and its figure may be of a neighboring step
_LINK: Final = re.compile(r"\]\(([^()\s]{1,400})\)")
_HOSTED: Final = re.compile(r"https?://(?:www\.)?github\.com/[\w.-]+/([\w.-]+)/(?:tree|blob)/[\w.-]+/([^#?]+)")
_LOGS: Final = ("README.md", "*.log", "*.txt")
_METRICS: Final = ("tokens_per_second_per_chip", "tflops_per_second_per_chip", "step_seconds")
MAX_LOG: Final = 4 << 20
MAX_ABOVE: Final = 6


class RecipeFigure(NamedTuple):
    """A metric's value in a recipe's log, in the registry's unit."""

    value: float
    file: str


def disagreeing(item: Statement) -> RecipeFigure | None:
    """What the linked recipe says of the statement's metric, where it says another number; else None."""
    if item.kind != "reading" or len(item.values) != 1:
        return None
    for path in _linked(Path(item.file), item.line):
        figure = _figures(path).get(item.metric)
        if figure is not None:
            size = factor_of(item)
            off = abs(item.values[0] * size - figure.value)
            return None if off <= item.halves[0] * size + TOLERANCE * figure.value else figure
    return None


@cache
def _figures(path: Path) -> dict[str, RecipeFigure]:
    """Figures of the steps that a recipe's log prints, by metric; MFU where the path names the chip."""
    from receipts.ingest.evidence import read

    known: dict[str, RecipeFigure] = {}
    files = [path] if path.is_file() else [file for pattern in _LOGS for file in sorted(path.glob(pattern))]
    for file in (one for one in files if one.is_file() and one.stat().st_size <= MAX_LOG):
        for reading in read(file).readings:
            for metric in _METRICS:
                values = [value for value in reading.steps.column(metric) if value is not None and value > 0]
                if values:
                    known.setdefault(metric, RecipeFigure(median(values), str(file)))
    machine = next((accelerator for part in reversed(path.parts) if (accelerator := find_accelerator(part))), None)
    peak, each = machine.peak("bf16") if machine is not None else None, known.get("tflops_per_second_per_chip")
    if peak and each:
        known["mfu"] = RecipeFigure(each.value * 1e12 / peak, each.file)
    return known


def _linked(page: Path, line: int) -> Iterator[Path]:
    """The files and folders of this tree that a line links to."""
    for target in _LINK.findall("".join(_lines(page)[line - 1 : line])):
        hosted = _HOSTED.match(target)
        if hosted:
            places = [folder / hosted[1] / unquote(hosted[2]) for folder in list(page.absolute().parents)[:MAX_ABOVE]]
        else:
            places = [] if "://" in target else [page.parent / unquote(target.partition("#")[0])]
        yield from (place for place in places if place.exists() and place != page)


@cache
def _lines(page: Path) -> tuple[str, ...]:
    try:
        return tuple(read_small(page, 64 << 20).decode("utf-8", "replace").splitlines())
    except OSError:
        return ()
