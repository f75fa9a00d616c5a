"""What a statement is held against: figures beside it, what hardware can do, two receipts, and a linked recipe's log.

Some arithmetic needs no receipt: a change beside its two numbers, MFU beside FLOP/s and a peak, a figure above the
hardware's. An interval is half the last digit around what is printed. A stated difference agrees where it is the one
that two receipts give. A link to ``github.com/OWNER/REPO/tree/REF/PATH`` names a file here where REPO lies beside the
page, or beside a folder above it; a relative link names the file itself. The log is read as `receipts ingest` reads it,
prose and all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from receipts import metrics
from receipts.base.files import read_small
from receipts.metrics import Metric
from receipts.plugins.lint.statement import MIRRORED, Bound, Direction, Statement, factor_of, quantities, si
from receipts.receipt.accelerators import ACCELERATORS, find_accelerator
from receipts.stats.distributions import median
from receipts.stats.rounding import Interval

if TYPE_CHECKING:
    from receipts.judging.verdict import MetricResult


_SPEEDS: Final = frozenset(
    {"step_seconds", "tokens_per_second", "tokens_per_second_per_chip", "tflops_per_second_per_chip"}
)
_PAIRED: Final = re.compile(r"\b(?:with|without|before|after|baseline|versus|vs|instead|was|now)\b", re.IGNORECASE)
_TAIL: Final = re.compile(
    r"\s?(?:(?:faster|slower|quicker|higher|lower|less|more|speed-?\s?ups?|slow-?downs?|improvement|reduction|increase|gain|drop|savings?)"
    r"(?:\s(?:in|of)\s(?:\w+\s){0,2}\w+)?)?[*_]*\s?(?:[.,;:)!]|$)",
    re.IGNORECASE,
)
_EACH: Final = re.compile(
    r"/\s?(?:GPU|chip|device)|\b(?:per|each|every|an?|one|single)[\s-](?:GPU|chip|device|rank|card|[AHB]\d{2,3}|MI\d+X|TPU\sv\w+|v\d[ep])\b"
    r"(?!\s(?:cluster|node|pod|system|server|host|machine))",
    re.IGNORECASE,
)
_PEAK: Final = re.compile(
    r"(?P<before>\d[\d.,]*\s?[TP]FLOPs?(?:/s)?)\s(?:[\w-]+\s){0,2}peak\b|\bpeak\s(?:[\w-]+\s){0,2}(?:of|is|=|at)\s(?P<after>\d[\d.,]*\s?[TP]FLOPs?(?:/s)?)",
    re.IGNORECASE,
)
_WIDE: Final = 1.02  # what a printed peak and rounding allow


class _Pair(NamedTuple):
    """Two numbers that a sentence sets against each other, earlier and later, and where they stand."""

    a: Interval
    b: Interval
    metric: str
    start: int
    end: int


def contradicted(drafts: Sequence[Statement], text: str) -> list[Statement]:
    """The statements of a sentence, of which a change says what the two numbers beside it give where it is another."""
    checked = list(drafts)
    shares = [item for item in drafts if item.kind == "ratio" and item.bound in ("", "about")]
    for share in shares if len(shares) <= 2 else ():
        # A change of tokens/s may be that of any speed, and any speed's that of tokens/s.
        alike = _SPEEDS if share.metric == "tokens_per_second" else {share.metric}
        alike = alike | {"tokens_per_second"} if share.metric in _SPEEDS else alike
        pairs = [one for one in _pairs(drafts, text) if one.metric in alike and _beside(one, share, text)]
        if len(pairs) == 1 and (wrong := disagreement(pairs[0].a, pairs[0].b, share)):
            checked[drafts.index(share)] = replace(share, contradiction=wrong)
    # MFU beside FLOP/s of a chip and a peak of one sentence.
    shares, rates = _single(checked, "mfu"), _single(checked, "tflops_per_second_per_chip")
    peaks = list(_PEAK.finditer(text)) if shares and rates else []
    if not len(peaks) == len(shares) == len(rates) == 1 or shares[0].bound not in ("", "about"):
        return checked
    peak, share, rate = next(quantities(peaks[0]["before"] or peaks[0]["after"])), shares[0], rates[0]
    ratio = rate.intervals[0] * (factor_of(rate) * 1e12 / (peak.values[0] * (si(peak.unit) or 1e12)))
    stated = Interval.around(share.values[0], 2 * share.halves[0]) * factor_of(share)
    if Interval(stated.low / _WIDE, stated.high * _WIDE).meets(ratio):
        return checked
    wrong = f"{rate.values[0]:,g} of {peak.values[0]:,g} {peak.unit} are {ratio.low:.1%}"
    return [replace(item, contradiction=wrong) if item is share else item for item in checked]


def disagreement(a: Interval, b: Interval, share: Statement) -> str:
    """What two numbers give where no reading of a share or factor agrees with it; empty if one does."""
    if a.low <= 0 or b.low <= 0 or len(share.values) != 1:
        return ""
    # A printed share may be cut off, not rounded.
    size = Interval.around(abs(share.values[0]), 2 * share.halves[0]) * factor_of(share)
    meant = (1.0 + size, size * -1.0 + 1.0, size) if share.unit == "%" else (size,)
    if any(one.meets(way) for one in meant for way in (b / a, a / b)):
        return ""
    change = (b.low + b.high) / (a.low + a.high)
    words = f"the two figures beside it give {change - 1:+.1%}, and {1 / change - 1:+.1%} the other way"
    return words.replace("-", "−")


def _pairs(drafts: Sequence[Statement], text: str) -> list[_Pair]:
    changes = [item for item in drafts if item.kind == "change" and len(item.values) == 2]
    pairs = [_Pair(item.intervals[0], item.intervals[1], item.metric, item.start, item.end) for item in changes]
    readings = _single(drafts)
    for first, second in pairwise(readings):
        alone = [item.metric for item in readings].count(first.metric) == 2 and first.metric == second.metric
        words = _PAIRED.findall(text, max(0, first.start - 40), second.end + 20)
        if alone and len(words) >= 2:
            a, b = (one.intervals[0] * factor_of(one) for one in (first, second))
            pairs.append(_Pair(a, b, first.metric, first.start, second.end))
    return pairs


def _single(drafts: Sequence[Statement], metric: str = "") -> list[Statement]:
    of = [item for item in drafts if item.kind == "reading" and len(item.values) == 1]
    return [item for item in of if metric in ("", item.metric)]


def _beside(pair: _Pair, share: Statement, text: str) -> bool:
    """Whether a share closes what is said of a pair, or the pair stands in brackets behind it."""
    if pair.end <= share.start:
        between = text[pair.end : share.start]
        return re.fullmatch(r"[^\d;]{0,60}", between) is not None and _TAIL.match(text, share.end) is not None
    return (
        re.fullmatch(r"[^);,.\d]*\([^);,.\d]*", text[share.end : pair.start]) is not None
        and text[pair.end :][:1] == ")"
    )


@cache
def known_peaks() -> frozenset[float]:
    """Peaks of known accelerators in TFLOP/s: such a number is a specification unless it was measured."""
    tables = [(chip.dense_peak_flops_per_second, chip.sparse_peak_flops_per_second) for chip in ACCELERATORS]
    peaks = [value / 1e12 for pair in tables for table in pair for value in table.values()]
    return frozenset(shown for peak in peaks for shown in (round(peak, 1), float(round(peak)), float(int(peak))))


@cache
def _chip_words() -> re.Pattern[str]:
    names = {name for chip in ACCELERATORS for name in chip.names if name not in ("cpu", "v4")}
    longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?<![\w-])(?:{longest_first})(?![\w])", re.IGNORECASE)


def beyond_hardware(drafts: Sequence[Statement], text: str) -> list[Statement]:
    """The statements of a text; those above what one of its accelerators can do say so."""
    return [item if item.contradiction else replace(item, contradiction=_beyond(item, text)) for item in drafts]


def _beyond(item: Statement, text: str) -> str:
    rate = item.metric == "tflops_per_second_per_chip"
    judged = rate or item.metric in ("mfu", "peak_bytes")
    if not judged or item.kind == "ratio" or not item.values or item.direction in ("better", "worse"):
        return ""
    value = max(one.low for one in item.intervals) * factor_of(item)
    if item.metric == "mfu":
        return "an MFU above 100 % is not possible" if value > 1.0 else ""
    if not (_EACH.search(item.unit + text[item.end : item.end + 16]) or (rate and _EACH.search(text))):
        return ""
    words = {match[0].lower() for match in _chip_words().finditer(text)}
    limits: list[float] = []
    # Of an accelerator that is sold in several forms, all are meant.
    for chip in (one for one in ACCELERATORS if any(name.startswith(word) for name in one.names for word in words)):
        peaks = (*chip.dense_peak_flops_per_second.values(), *chip.sparse_peak_flops_per_second.values())
        limits.append(max(peaks, default=0.0) / 1e12 if rate else float(chip.hbm_bytes or 0))
    if not limits or not all(limits) or value <= max(limits) * _WIDE:
        return ""
    highest = f"{max(limits):,g} TFLOP/s" if rate else f"{max(limits) / 2**30:,g} GiB"
    return f"no accelerator that is named here has more than {highest}"


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
