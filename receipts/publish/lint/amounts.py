"""Sizes in bytes and durations: statements where memory was used or a step took time, and not every other amount."""

from __future__ import annotations

import re
from functools import cache

from receipts.publish.lint import cues
from receipts.publish.lint.cues import Sentence, nearest
from receipts.publish.lint.quantity import Quantity, si
from receipts.publish.lint.reading import CARRIED, REACH, metric_near, reading
from receipts.publish.lint.statement import StatementDraft

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
