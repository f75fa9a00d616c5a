"""Arithmetic that needs no receipt: a change beside its two numbers, MFU beside FLOP/s and a peak, a figure above the
hardware's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Final, NamedTuple

from receipts.plugins.lint.statement import Statement, factor_of, quantities, si
from receipts.receipt.accelerators import ACCELERATORS
from receipts.stats.rounding import Interval

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
