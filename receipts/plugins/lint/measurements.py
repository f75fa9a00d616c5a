"""Rates, FLOP/s, bandwidth, sizes in bytes and durations as statements.

A rate is one unless it is a specification, also where its unit is elsewhere. A size or a duration is one where memory
was used or a step took time; every other amount is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from receipts.plugins.lint import cues
from receipts.plugins.lint.cues import Sentence, nearest
from receipts.plugins.lint.quantity import Quantity, quantities, si
from receipts.plugins.lint.reading import CARRIED, REACH, direction_of, metric_near, reading, stated
from receipts.plugins.lint.statement import Kind, StatementDraft

_NAMED = re.compile(rf"(?:{cues.HARDWARE_NAME}|\bSXM\d?|\bPCIe|\bwith|\bhas|\bhave|\bof)[\s-]*$")
_GPU_AFTER = re.compile(
    rf"[\s-]*(?:per\s(?:chip|GPU|card|device)\s)?(?:of\s)?(?:fast\s|slow\s|main\s|total\s|"
    rf"unified\s|GPU\s|device\s|on-chip\s)?(?:HBM\d?\w*|[VSD]?RAM|GDDR\w*|memory\b(?! (?:peak|use|"
    rf"used))|{cues.HARDWARE_NAME}|each\b|variants?\b|versions?\b|models?\b)"
)
_TIGHT = re.compile(
    r"\b(?:us(?:e[sd]?|ing)|peak(?:s|ed)?(?: at| memory)?|allocat\w+|reserv\w+|fell|dropped|"
    r"down to|allocator|fits? in|went|reached)\b",
    re.IGNORECASE,
)
_USED = re.compile(
    r"\b(?:us(?:e[sd]?|ing|age)|takes?|took|occup\w+|needs?|asked for|allocat\w+|reserv\w+|"
    r"peak\w*|fits?|left|leav\w+|free[ds]?|sav\w+|consum\w+|resident|footprint|"
    r"drop\w*|fell|reduc\w+|shr[aiu]nk\w*|grew|down to|less|more|leak\w*|spike\w*|pool|overhead|"
    r"exceed\w*|OOM\w*|tried|headroom|eats|costs?|plan(?:s|ned)|holds?|hold|at|to)\b",
    re.IGNORECASE,
)
_TIMED = re.compile(
    r"\b(?:took|takes|median|mean|average|cost\w*|sav\w+|shav\w+|los\w+|cache|warm|cold|was|before|after|down|from|per|by)\b"
)
# What a time can be of; of a rate it is the time that it takes.
_TIMES = ("step_seconds", "latency_seconds", "compile_seconds", "tokens_per_second")
# The time of a whole run, which no receipt is held to.
_WHOLE = re.compile(r"\b(?:training|epoch)[- ]times?\b|\btime[- ]to[- ]\w+|\bwall[- ]?(?:clock|time)\b", re.IGNORECASE)
_FREE_BEFORE = re.compile(r"\b(?:leav(?:es?|ing)|left)\s(?:\w+\s){0,2}$", re.IGNORECASE)
_FREE_AFTER = re.compile(
    r"\s(?:free|headroom|spare|available|left|to spare|of\s(?:free|headroom|slack))\b", re.IGNORECASE
)
OUT_OF = re.compile(r"\d\s?(?:[GM]i?B)?\s?(?:out of|/)\s?$")
_SPAN = re.compile(r"\b(?:every|each|after|within|last|first|past|for)\s(?:the\s|about\s)?\Z", re.IGNORECASE)
_STALLS = re.compile(r"\b(?:stall|block|paus|hang|wait|idl)\w*", re.IGNORECASE)


_TRAFFIC = re.compile(
    r"\sof\s(?:[\w-]+\s){0,2}(?:traffic|transfers?)\s(?:(?:in\s)?(?:every|each)|per|an?)\s(?:step|iteration)\b",
    re.IGNORECASE,
)


@cache
def known_capacities() -> frozenset[float]:
    """Memory of known accelerators, in the GB or GiB that their makers print."""
    from receipts.receipt.accelerators import ACCELERATORS

    return frozenset(
        round(machine.hbm_bytes / factor, 1)
        for machine in ACCELERATORS
        if machine.hbm_bytes
        for factor in (1e9, 2.0**30)
    )


def _capacity(quantity: Quantity) -> bool:
    """Whether a size is that of a known device: such a number is a specification unless something used it."""
    return all(value in known_capacities() for value in quantity.values) and quantity.unit.lower()[0] == "g"


def size(sentence: Sentence, before: Sentence, quantity: Quantity) -> StatementDraft | None:
    """A size in bytes as a statement on peak memory; None where it is a device's capacity, a file, or about nothing."""
    text, start, end = sentence.text, quantity.start, quantity.end
    if OUT_OF.search(text, 0, start):
        return None
    if _TRAFFIC.match(text, end):
        return reading(quantity, "bytes_per_step", text)
    used_away, _ = nearest(sentence, start, end, _USED)
    metric_away, metric = metric_near(sentence, before, quantity)
    memory_away, _ = nearest(sentence, start, end, cues.MEMORY)
    if memory_away < 40:
        metric_away, metric = memory_away, "peak_bytes"
    other_away, _ = nearest(sentence, start, end, cues.OTHER_BYTES)
    if "i" in quantity.unit and used_away <= 10 and other_away > 40 and not _NAMED.search(text[:start]):
        # Binary units are those of allocators: something that takes so many GiB takes memory.
        metric_away, metric = min(metric_away, used_away), "peak_bytes"
    if re.match(
        r"\sof\s(?:[\w-]+\s){0,2}(?:disk|storage|traffic|transfers?|data|tokens|text|logs)\b", text[end:], re.IGNORECASE
    ):
        return None
    if _capacity(quantity) and memory_away > 0 and not _TIGHT.search(text[max(0, start - 28) : end + 14]):
        return None
    if _GPU_AFTER.match(text, end) and not re.match(
        r"\s(?:per (?:chip|GPU|rank|card|device)|of VRAM used)", text[end:]
    ):
        return None
    if _NAMED.search(text[:start]) and metric != "peak_bytes":
        return None
    if re.search(rf"{cues.HARDWARE_NAME}[\s-]*(?:SXM\s|PCIe\s)?(?:has|have|with|offers|at)?\s?$", text[:start]):
        return None
    if (
        metric not in ("peak_bytes", "step_seconds", "tokens_per_second", "latency_seconds", "compile_seconds")
        or metric_away > REACH
    ):
        return None
    if metric != "peak_bytes" and used_away > 12:
        return None
    if other_away < min(metric_away, used_away) or other_away < min(memory_away, 25):
        return None
    if used_away > 60 and metric_away > 30:
        return None
    if _FREE_BEFORE.search(text, 0, start) or _FREE_AFTER.match(text, end):
        return reading(quantity, "free_bytes", text)
    return reading(
        quantity,
        "peak_reserved_bytes"
        if re.search(r"\b(?:reserved|pool)\b", text[end : end + 12] + text[max(0, start - 25) : start])
        else "peak_bytes",
        text,
    )


def duration(
    sentence: Sentence, before: Sentence, quantity: Quantity, drafts: list[StatementDraft]
) -> StatementDraft | None:
    """A time as a statement on a step, a latency or a compilation; None where it is a span of anything else.

    ``drafts`` are the statements before it in the sentence: a time beside one of them is of the same metric.
    """
    text, start, end = sentence.text, quantity.start, quantity.end
    metric_away, metric = metric_near(sentence, before, quantity, _TIMES)
    other_away, _ = nearest(sentence, start, end, cues.OTHER_TIME)
    compiles = metric == "compile_seconds" and metric_away < CARRIED
    if _SPAN.search(text, 0, start) and not compiles and not _STALLS.search(text, max(0, start - 40), start):
        return None
    small = (si(quantity.unit) or 1.0) < 1.0
    sibling = any(item.metric in ("step_seconds", "latency_seconds", "compile_seconds") for item in drafts)
    if metric not in _TIMES or metric_away > REACH:
        if not (sibling or small):
            return None
        metric = drafts[-1].metric if sibling else "latency_seconds"
        metric_away = min(metric_away, 60)
    if metric == "tokens_per_second":
        metric = "step_seconds"
    if metric == "step_seconds" and (
        (si(quantity.unit) or 1.0) >= 60.0 or nearest(sentence, start, end, _WHOLE)[0] <= metric_away
    ):
        metric = "wall_seconds"
    if other_away < metric_away:
        return None
    vague = metric_away >= CARRIED and not sibling and not small
    if vague and nearest(sentence, start, end, cues.MEASURED)[0] > 40 and not _TIMED.search(text):
        return None
    return reading(quantity, metric, text)


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
