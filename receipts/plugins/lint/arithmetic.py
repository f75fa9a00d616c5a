"""Arithmetic that needs no receipt: a change beside its two numbers, MFU beside FLOP/s and a peak, a figure above the
hardware's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Final

from receipts.plugins.lint.quantity import quantities, si
from receipts.plugins.lint.statement import StatementDraft
from receipts.receipt.accelerators import ACCELERATORS, Accelerator
from receipts.stats.rounding import Interval

_TIMES: Final = frozenset({"step_seconds", "wall_seconds", "compile_seconds", "latency_seconds"})
_RATES: Final = frozenset({"tokens_per_second", "tokens_per_second_per_chip", "tflops_per_second_per_chip"})
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


def contradicted(drafts: Sequence[StatementDraft], text: str) -> list[StatementDraft]:
    """The statements of a sentence, of which a change says what the two numbers beside it give where it is another."""
    checked = list(drafts)
    shares = [item for item in drafts if item.kind == "ratio" and item.bound in ("", "about")]
    for share in shares if len(shares) <= 2 else ():
        pairs = [
            pair for pair in _pairs(drafts, text) if _comparable(pair[2], share.metric) and _beside(pair, share, text)
        ]
        if len(pairs) == 1 and (wrong := disagreement(pairs[0][0], pairs[0][1], share)):
            checked[drafts.index(share)] = replace(share, contradiction=wrong)
    return _share_of_peak(checked, text)


def disagreement(a: StatementDraft, b: StatementDraft, share: StatementDraft) -> str:
    """What two numbers give where no reading of a share or factor agrees with it; empty where one does.

    The last of a draft's values counts for ``b``, the first for ``a``. A printed share may be cut off, not rounded.
    """
    low, high = Interval.around(a.values[0], a.halves[0]), Interval.around(b.values[-1], b.halves[-1])
    if low.low <= 0 or high.low <= 0:
        return ""
    ratio = high / low
    size = Interval.around(abs(share.values[-1]), 2 * share.halves[-1]) * (0.01 if share.unit == "%" else 1.0)
    ways = (ratio, 1.0 / ratio)
    if share.unit == "%":
        meant = [1.0 + size, size * -1.0 + 1.0, size]
    else:
        meant = [size]
    if len(share.values) != 1 or any(one.meets(way) for one in meant for way in ways):
        return ""
    change = b.values[-1] / a.values[0]
    return f"the two figures beside it give {change - 1:+.1%}, and {1 / change - 1:+.1%} the other way".replace(
        "-", "−"
    )


def _pairs(drafts: Sequence[StatementDraft], text: str) -> list[tuple[StatementDraft, StatementDraft, str, int, int]]:
    pairs = [
        (item, item, item.metric, item.start, item.end)
        for item in drafts
        if item.kind == "change" and len(item.values) == 2
    ]
    readings = [item for item in drafts if item.kind == "reading" and len(item.values) == 1]
    for first, second in pairwise(readings):
        words = text[max(0, first.start - 40) : second.end + 20]
        alone = sum(item.metric == first.metric for item in readings) == 2
        if (
            first.metric == second.metric
            and alone
            and len(_PAIRED.findall(words)) >= 2
            and not first.bound == second.bound == "most"
        ):
            pairs.append(
                (
                    first,
                    replace(second, values=tuple(value * _scale(second, first) for value in second.values)),
                    first.metric,
                    first.start,
                    second.end,
                )
            )
    return pairs


def _scale(item: StatementDraft, like: StatementDraft) -> float:
    return (si(item.unit) or 1.0) / (si(like.unit) or 1.0)


def _comparable(metric: str, other: str) -> bool:
    speed = _TIMES | _RATES
    return metric == other or (metric in speed and other in speed and "tokens_per_second" in (metric, other))


def _beside(pair: tuple[StatementDraft, StatementDraft, str, int, int], share: StatementDraft, text: str) -> bool:
    """Whether a share closes what is said of a pair, or the pair stands in brackets behind it."""
    _, _, _, start, end = pair
    if end <= share.start:
        between = text[end : share.start]
        return (
            len(between) < 60
            and not any(sign.isdigit() for sign in between)
            and ";" not in between
            and bool(_TAIL.match(text, share.end))
        )
    between = text[share.end : start]
    return (
        share.end <= start
        and "(" in between
        and not any(sign in between for sign in ");,.0123456789")
        and text[end : end + 1] == ")"
    )


def _share_of_peak(drafts: list[StatementDraft], text: str) -> list[StatementDraft]:
    """MFU beside FLOP/s of a chip and a peak of one sentence."""
    peaks = list(_PEAK.finditer(text))
    shares = [item for item in drafts if item.metric == "mfu" and item.kind == "reading" and len(item.values) == 1]
    rates = [
        item
        for item in drafts
        if item.metric == "tflops_per_second_per_chip" and item.kind == "reading" and len(item.values) == 1
    ]
    if not len(peaks) == len(shares) == len(rates) == 1:
        return drafts
    peak = next(quantities(peaks[0]["before"] or peaks[0]["after"]))
    share, rate = shares[0], rates[0]
    ratio = Interval.around(rate.values[0], rate.halves[0]) * (
        (si(rate.unit) or 1e12) / (peak.values[0] * (si(peak.unit) or 1e12))
    )
    stated = Interval.around(share.values[0], 2 * share.halves[0]) * (0.01 if share.unit == "%" else 1.0)
    if Interval(stated.low / _WIDE, stated.high * _WIDE).meets(ratio) or share.bound not in ("", "about"):
        return drafts
    wrong = f"{rate.values[0]:,g} of {peak.values[0]:,g} {peak.unit} are {ratio.low:.1%}"
    return [replace(item, contradiction=wrong) if item is share else item for item in drafts]


@cache
def _chip_words() -> re.Pattern[str]:
    names = sorted(
        {name for chip in ACCELERATORS for name in chip.names if name not in ("cpu", "v4")}, key=len, reverse=True
    )
    return re.compile(rf"(?<![\w-])(?:{'|'.join(re.escape(name) for name in names)})(?![\w])", re.IGNORECASE)


def chips_in(text: str) -> frozenset[str]:
    """The accelerators that a text names, by their keys; of one that is sold in several forms, all."""
    words = {match[0].lower() for match in _chip_words().finditer(text)}
    return frozenset(
        chip.key for chip in ACCELERATORS if any(name.startswith(word) for name in chip.names for word in words)
    )


def beyond_hardware(drafts: Sequence[StatementDraft], text: str) -> list[StatementDraft]:
    """The statements of a text, of which those above what one of its accelerators can do say so."""
    named = chips_in(text) if drafts else frozenset()
    chips = [chip for chip in ACCELERATORS if chip.key in named]
    return [
        replace(item, contradiction=_beyond(item, chips, text)) if not item.contradiction else item for item in drafts
    ]


def _beyond(item: StatementDraft, chips: list[Accelerator], text: str) -> str:
    if item.kind == "ratio" or not item.values or item.direction in ("better", "worse"):
        return ""
    value = max(value - half for value, half in zip(item.values, item.halves, strict=True))
    if item.metric == "mfu" and item.unit in ("%", "") and value > (100.0 if item.unit == "%" else 1.0):
        return "an MFU above 100 % is not possible"
    behind = text[item.end : item.end + 16]
    if not chips or not (_EACH.search(item.unit + behind) or (item.metric != "peak_bytes" and _EACH.search(text))):
        return ""
    if item.metric == "tflops_per_second_per_chip":
        peaks = [
            max([*chip.dense_peak_flops_per_second.values(), *chip.sparse_peak_flops_per_second.values()], default=0.0)
            for chip in chips
        ]
        if all(peaks) and value * (si(item.unit) or 1e12) > max(peaks) * _WIDE:
            return f"no accelerator that is named here does more than {max(peaks) / 1e12:,g} TFLOP/s"
    elif item.metric == "peak_bytes":
        sizes = [chip.hbm_bytes for chip in chips]
        if None not in sizes and value * (si(item.unit) or 1.0) > max(size for size in sizes if size) * _WIDE:
            return (
                f"no accelerator that is named here has more than {max(size for size in sizes if size) / 2**30:,g} GiB"
            )
    return ""
