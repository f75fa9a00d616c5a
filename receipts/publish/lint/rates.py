"""Rates, FLOP/s and bandwidth, and numbers whose unit is elsewhere: statements, unless they are a specification."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from receipts.publish.lint import cues
from receipts.publish.lint.cues import Sentence, nearest
from receipts.publish.lint.quantity import Quantity, quantities, si
from receipts.publish.lint.reading import direction_of, reading, stated
from receipts.publish.lint.statement import Kind, StatementDraft

_SIBLINGS = (
    "tokens_per_second",
    "tokens_per_second_per_chip",
    "tflops_per_second_per_chip",
    "samples_per_second",
    "steps_per_second",
)
_JOINS = re.compile(r"\b(?:and|vs\.?|versus|against|from|to|was|up|down|or)\s+(?:\w+\s+){0,2}$")
_COUNTED = re.compile(r"[\s-]*(?!with|without|on|for|before|after|in|at|when|to|and|under|using|per)[A-Za-z\ufffc]")
# A share of the peak says that what is beside it was measured.
_SHARE = re.compile(r"\d\s?%?\s?(?:MFU|HFU)\b|\d\s?%\sof\s(?:the\s)?(?:\w+\s)?peak\b")
_PEAK = re.compile(r"\s(?:(?:dense|sparse|theoretical|bf16|fp16|fp8)\s)*peak\b", re.IGNORECASE)
_EACH_CHIP = re.compile(
    rf"\b(?:(?:each|every)\s|per[\s-])(?:{cues.CHIP_NAME}|GPU|chip|device|card|rank|accelerator)\b[^.;:,()]*$",
    re.IGNORECASE,
)
_FRACTION = re.compile(r"(?<![\w.])(?P<numbers>0?\.\d+)\s(?:MFU|HFU)\b")
# FLOP/s of all chips together, which no receipt states.
_ALL_CHIPS = re.compile(
    r"\b(?:aggregate|cluster|in total|combined)\b|\bE(?:xa)?FLOP"
    r"|FLOPS?(?:/s(?:ec)?)?\s(?:across|over|on all)\s(?:\d+\s|all\s)",
    re.IGNORECASE,
)
_LABEL = re.compile(r"/s|MFU|HFU|FLOP|[twps]{2}s\s?[:=]|tgs", re.IGNORECASE)
_LABELLED = re.compile(
    r"\b(?P<unit>tok(?:en)?s?\s?(?:/|per )\s?s(?:ec(?:ond)?)?(?:/(?:GPU|chip|device|core))?|(?:samples|steps|"
    r"its?|iters?|images)/s(?:ec)?|(?:tps|wps|tgs|tflops)(?=\s?[:=])|[TP]FLOPS?/s(?:ec)?(?:/(?:GPU|chip|device))?|MFU|HFU|"
    r"flops utili[sz]ation)\b\s?\W?\s?"
    r"(?:(?:goes|went|go|rose|fell|dropped|rises|drops|improve[sd]|climb(?:s|ed)|grew|reache[sd]|is|was|are|of|at|"
    r"up|down|by|now|stays|from|about|roughly|only|to)\s){0,4}"
    r"(?P<numbers>~?\d[\d.,]*\d?[kM]?(?:\s?(?:→|->|to|vs\.?)\s?~?\d[\d.,]*\d?[kM]?)?)(?=[\s,;.)]|"
    r"$)(?!\s?(?:%|percent|GPUs?|chips?|x\b|×))",
    re.IGNORECASE,
)


@cache
def known_peaks() -> frozenset[float]:
    """Peaks of known accelerators in TFLOP/s: such a number is a specification unless it was measured."""
    from receipts.receipt.accelerators import ACCELERATORS

    return frozenset(
        printed
        for machine in ACCELERATORS
        for table in (machine.dense_peak_flops_per_second, machine.sparse_peak_flops_per_second)
        for value in table.values()
        for printed in (round(value / 1e12, 1), float(round(value / 1e12)))
    )


def rate(sentence: Sentence, quantity: Quantity) -> StatementDraft | None:
    """A rate, FLOP/s, or time a step as a statement; None for a machine's specification or an amount of work."""
    if quantity.dimension == "flops":
        amount = "/" not in quantity.unit and "per" not in quantity.unit and quantity.unit[-1] == "P"
        if amount or _PEAK.match(sentence.text, quantity.end) or _specified(sentence, quantity):
            return None
    metric = rate_metric(quantity)
    if quantity.dimension == "flops" and _ALL_CHIPS.search(
        sentence.text[max(0, quantity.start - 30) : quantity.end + 30]
    ):
        metric = "aggregate_flops"
    if metric == "tokens_per_second" and _EACH_CHIP.search(sentence.text, 0, quantity.start):
        metric = "tokens_per_second_per_chip"
    return reading(quantity, metric, sentence.text)


def rate_metric(quantity: Quantity) -> str:
    """The metric of a rate, of FLOP/s, or of a time a step."""
    unit = quantity.unit.lower()
    if quantity.dimension == "flops":
        return "tflops_per_second_per_chip"
    if quantity.dimension == "period":
        return "step_seconds" if re.search(r"step|it|batch", unit) else "latency_seconds"
    if re.match(r"tok|tk|[tw]ps|tgs", unit):
        each = re.search(r"gpu|chip|device|card|rank|accelerator|core|node|die|tgs", unit)
        return "tokens_per_second_per_chip" if each else "tokens_per_second"
    return "steps_per_second" if re.match(r"it|step", unit) else "samples_per_second"


def _specified(sentence: Sentence, quantity: Quantity) -> bool:
    away, _ = nearest(sentence, quantity.start, quantity.end, cues.SPECIFICATION)
    measured, _ = nearest(sentence, quantity.start, quantity.end, cues.MEASURED)
    factor = si(quantity.unit) or 1.0
    if any(round(value * factor / 1e12, 1) in known_peaks() for value in quantity.values):
        return measured > 25 or away < measured
    share, _ = nearest(sentence, quantity.start, quantity.end, _SHARE)
    return away < 40 and away < min(measured, share)


def bandwidth(sentence: Sentence, quantity: Quantity) -> StatementDraft | None:
    """Bytes a second as a statement, where the sentence says that they were measured; else None."""
    spec, _ = nearest(sentence, quantity.start, quantity.end, cues.SPECIFICATION)
    measured, _ = nearest(sentence, quantity.start, quantity.end, cues.MEASURED)
    named, _ = nearest(
        sentence, quantity.start, quantity.end, re.compile(r"\b(?:has|have|with|disks?|offers?|network)\b")
    )
    if measured < 40 and measured < min(spec, named):
        return reading(quantity, "bandwidth", sentence.text)
    return None


def sibling(sentence: Sentence, quantity: Quantity, drafts: list[StatementDraft]) -> StatementDraft | None:
    """A number without a unit beside one with it: `14.2k tokens a second with it and 9k without`."""
    if not drafts or drafts[-1].metric not in _SIBLINGS or drafts[-1].unit in ("%", "×"):
        return None
    last = drafts[-1]
    between = sentence.text[last.end : quantity.start]
    if len(between) > 60 or not _JOINS.search(between) or _COUNTED.match(sentence.text, quantity.end):
        return None
    if not 0.2 < quantity.values[0] / (last.values[-1] or 1.0) < 5:
        return None
    return stated(quantity, "reading", last.metric, last.unit)


def labelled(sentence: Sentence) -> Iterator[StatementDraft]:
    """Numbers whose unit is before them: `samples/s went up from 412 to 455`, `MFU: 41.2`."""
    if not _LABEL.search(sentence.text):
        return
    for match in (*_LABELLED.finditer(sentence.text), *_FRACTION.finditer(sentence.text)):
        first = next(quantities(f"1 {match.groupdict().get('unit', 'MFU')}"), None)
        if first is None or first.dimension not in ("rate", "flops"):
            metric, unit = "utilisation" if "HFU" in match[0].upper() else "mfu", "%"
        else:
            metric, unit = rate_metric(first), first.unit
        numbers = list(quantities(match["numbers"]))
        start = match.start("numbers")
        own = next((item for item in quantities(sentence.text) if item.end > start), None)
        if not numbers or any(item.dimension != "none" for item in (*numbers, *([own] if own else []))):
            continue
        values = tuple(value for item in numbers for value in item.values)
        halves = tuple(half for item in numbers for half in item.halves)
        kind: Kind = "change" if len(values) > 1 else "reading"
        if unit == "%" and max(values) <= 1.0:  # a fraction
            unit = ""
        yield StatementDraft(start, match.end("numbers"), kind, metric, values, unit, direction_of(match[0]), halves)
