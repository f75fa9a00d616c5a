"""Performance statements in a sentence: which of its numbers speak of speed, memory or fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache

from receipts.lint import cues
from receipts.lint.cues import Sentence, nearest
from receipts.lint.phrases import fits, words
from receipts.lint.quantity import Quantity, quantities, si
from receipts.lint.statement import Direction, Draft, Kind

# How far, in characters, a word may stand from the number that it speaks of.
REACH = 110
# A previous sentence or a heading speaks less for a number than its own sentence does.
CARRIED = 45
_TRIGGER = re.compile(
    r"\d|\b(?:twice|thrice|doubl|tripl|quadrupl|halv|half|third|quarter|order|OOM|memory|fit)", re.IGNORECASE
)
_SENTENCE = re.compile(
    r"(?<=[.!?…])[\"')\]*_]*\s+(?=[\"'(\[*_>~]*[^\W_])(?<!e\.g\. )(?<!i\.e\. )(?<!vs\. )(?<!ca\. )(?<!approx\. )"
)
_HALF = re.compile(r";\s|\s[—–]\s|, (?:but|yet|reality|and we|we|and the reality|instead)\b")
_NOUN_OF = re.compile(
    r"\s*of\s+(?:the\s+|its\s+|our\s+|all\s+|a\s+|that\s+|each\s+|every\s+)?([\w-]+(?:\s[\w-]+)?)", re.IGNORECASE
)
_OF_GOOD = re.compile(
    r"(?:same |old |new )?(?:(?:peak|roofline|step|time|wall|iteration|throughput|speed|memory|"
    r"HBM|VRAM|bandwidth|runtime|training|device|GPU|"
    r"forward|backward|kernel|compile|dense|theoretical|total|whole|end|performance|compute)\b|utili)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\s?(?:\*\*|_)?\s?(?:faster|slower|quicker|speed-?ups?|slow-?downs?|(?:more|less|higher|"
    r"lower|better|additional)?\s?"
    r"(?:throughput|memory|MFU|HFU|step time|TFLOP/s|tok/s|latency|utili[sz]ation|overhead|"
    r"regression)|improvement|of peak)\b",
    re.IGNORECASE,
)
_AFTER_RATIO = re.compile(
    rf"\s?-?(?:\d|{cues.HARDWARE_NAME}|(?:larger|bigger|deeper|wider|longer|as (?:many|long as|"
    rf"large|wide|deep)|the (?:size|number|data|batch|parameters|params|length|depth|width|price|"
    rf"cost of))\b)"
)
_COMPARED = re.compile(
    r"\s?(?:the|as|more|less|faster|slower|quicker|higher|lower|better|fewer|longer)\b", re.IGNORECASE
)
_WOULD_AFTER = re.compile(
    r"[^.;,]{0,24}?\b(?:would|should|is (?:our|the) (?:goal|target)|or better|is enough)\b", re.IGNORECASE
)
_KEEPS = re.compile(r"\b(?:keep|leave|reserve)s?\b", re.IGNORECASE)
_HEADROOM = re.compile(r"[^a-z]{0,8}(?:GB|GiB)?(?: of)? (?:headroom|margin|slack)\b", re.IGNORECASE)
_BARE_NOT = re.compile(r"\b(?:steps?|layers?|iterations?)\s$", re.IGNORECASE)
_NAMED = re.compile(rf"(?:{cues.HARDWARE_NAME}|\bSXM\d?|\bPCIe|\bwith|\bhas|\bhave|\bof)[\s-]*$")
_GPU_AFTER = re.compile(
    rf"[\s-]*(?:per\s(?:chip|GPU|card|device)\s)?(?:of\s)?(?:fast\s|slow\s|main\s|total\s|"
    rf"unified\s|GPU\s|device\s|on-chip\s)?(?:HBM\d?\w*|[VSD]?RAM|GDDR\w*|memory\b(?! (?:peak|use|"
    rf"used))|{cues.HARDWARE_NAME}|each\b|variants?\b|versions?\b|models?\b)"
)
_SIBLINGS = (
    "tokens_per_second",
    "tokens_per_second_per_chip",
    "tflops_per_second_per_chip",
    "samples_per_second",
    "steps_per_second",
)
_JOINS = re.compile(r"\b(?:and|vs\.?|versus|against|from|to|was|up|down|or)\s+(?:\w+\s+){0,2}$")
_COUNTED = re.compile(r"[\s-]*(?!with|without|on|for|before|after|in|at|when|to|and|under|using|per)[A-Za-z\ufffc]")
_LABEL = re.compile(r"/s|MFU|HFU|FLOP", re.IGNORECASE)
_LABELLED = re.compile(
    r"\b(?P<unit>tok(?:en)?s?\s?(?:/|per )\s?s(?:ec(?:ond)?)?(?:/(?:GPU|chip))?|(?:samples|steps|"
    r"its?|iters?|images)/s(?:ec)?|[TP]FLOPS?/s(?:/GPU)?|MFU|HFU)\b"
    r"\W?\s?(?:(?:goes|went|go|rose|fell|dropped|rises|drops|is|was|are|of|at|up|down|by|now|"
    r"stays|from|about|roughly|only|to)\s){0,4}"
    r"(?P<numbers>~?\d[\d.,]*\d?[kM]?(?:\s?(?:→|->|to|vs\.?)\s?~?\d[\d.,]*\d?[kM]?)?)(?=[\s,;.)]|"
    r"$)(?!\s?(?:%|percent|GPUs?|chips?|x\b|×))",
    re.IGNORECASE,
)
_TIGHT = re.compile(
    r"\b(?:us(?:e[sd]?|ing)|peak(?:s|ed)?(?: at| memory)?|allocat\w+|reserv\w+|fell|dropped|"
    r"down to|allocator|fits? in|went|reached)\b",
    re.IGNORECASE,
)
_SPAN = re.compile(r"\b(?:every|each|after|within|last|first|past|for)\s(?:the\s|about\s)?\Z", re.IGNORECASE)
_STALLS = re.compile(r"\b(?:stall|block|paus|hang|wait|idl)\w*", re.IGNORECASE)
_USED = re.compile(
    r"\b(?:us(?:e[sd]?|ing|age)|takes?|took|occup\w+|needs?|asked for|allocat\w+|reserv\w+|"
    r"peak\w*|fits?|left|leav\w+|free[ds]?|sav\w+|consum\w+|resident|footprint|"
    r"drop\w*|fell|reduc\w+|shr[aiu]nk\w*|grew|down to|less|more|leak\w*|spike\w*|pool|overhead|"
    r"exceed\w*|OOM\w*|tried|headroom|eats|costs?|holds?|at|to)\b",
    re.IGNORECASE,
)


def statements(text: str, heading: str = "") -> Iterator[Draft]:
    """Every statement of a paragraph, in order. ``heading`` is the title above it, for context."""
    if not _TRIGGER.search(text):
        return
    before, start = heading, 0
    for match in [*_SENTENCE.finditer(text), None]:
        end = match.start() if match else len(text)
        sentence = text[start:end]
        if _TRIGGER.search(sentence):
            for draft in in_sentence(sentence, before):
                yield replace(draft, start=draft.start + start, end=draft.end + start)
        before = sentence
        start = match.end() if match else end


@lru_cache(maxsize=4096)  # a page repeats itself: table cells, boilerplate, quoted results
def in_sentence(text: str, before: str = "") -> tuple[Draft, ...]:
    """Statements of one sentence; ``before`` is the sentence or heading before it."""
    if text.rstrip(" *_\"')+").endswith("?"):
        return ()
    sentence, earlier = Sentence(text), Sentence(before)
    found: list[Draft] = []
    fitting = list(fits(sentence))
    for quantity in quantities(text):
        if quantity.dimension == "none" and not found:
            continue
        if any(item.start < quantity.end and quantity.start < item.end for item in fitting):
            continue
        draft = _judge(sentence, earlier, quantity, found)
        if draft is not None and not hypothetical(text, draft.start):
            found.append(_extended(draft, text))
    for draft in (*fitting, *words(sentence), *labelled(sentence)):
        clear = all(draft.end <= other.start or draft.start >= other.end for other in found)
        if clear and not hypothetical(text, draft.start):
            found.append(draft)
    return tuple(sorted(found, key=lambda draft: draft.start))


def hypothetical(text: str, at: int) -> bool:
    """Whether a target, an expectation or a condition governs what stands at a place: its part of the sentence says so
    before it, and nothing measured is named in between."""
    start = 0
    for match in _HALF.finditer(text, 0, at):
        start = match.end() if match[0][0] != "," else match.start()
    part = text[start:at]
    last = _last(cues.HYPOTHETICAL.finditer(part))
    if last is not None and not cues.ENDS_HYPOTHESIS.search(part, last.end()):
        return True
    if _KEEPS.search(part) and _HEADROOM.match(text, at):
        return True
    return _WOULD_AFTER.match(text, at) is not None


def _last(found: Iterable[re.Match[str]]) -> re.Match[str] | None:
    last = None
    for match in found:
        last = match
    return last


def _extended(draft: Draft, text: str) -> Draft:
    tail = _TAIL.match(text, draft.end)
    return replace(draft, end=tail.end()) if tail else draft


def _judge(sentence: Sentence, before: Sentence, quantity: Quantity, found: list[Draft]) -> Draft | None:
    text = sentence.text
    if text[: quantity.start].endswith("=") and quantity.dimension != "percent":
        return None
    match quantity.dimension:
        case "rate" | "flops" | "period":
            return _rate(sentence, quantity)
        case "bandwidth":
            return _bandwidth(sentence, quantity)
        case "percent" | "ratio" | "points":
            return _relative(sentence, before, quantity, found)
        case "bytes":
            return _bytes(sentence, before, quantity)
        case "time":
            return _time(sentence, before, quantity, found)
        case _:
            return _sibling(sentence, quantity, found)


@cache
def known_peaks() -> frozenset[float]:
    """Peaks of known accelerators in TFLOP/s: such a number is a specification unless it was measured."""
    from receipts.accelerators import ACCELERATORS

    return frozenset(
        round(value / 1e12, 1)
        for machine in ACCELERATORS
        for table in (machine.dense_peak_flops_per_second, machine.sparse_peak_flops_per_second)
        for value in table.values()
    )


def _rate(sentence: Sentence, quantity: Quantity) -> Draft | None:
    text = sentence.text
    if quantity.dimension == "flops" and _specified(sentence, quantity):
        return None
    if (
        quantity.dimension == "flops"
        and "/" not in quantity.unit
        and "per" not in quantity.unit
        and quantity.unit[-1] == "P"
    ):
        return None
    metric = rate_metric(quantity)
    return _reading(quantity, metric, text)


def rate_metric(quantity: Quantity) -> str:
    """The metric of a rate, of FLOP/s, or of a time a step."""
    unit = quantity.unit.lower()
    if quantity.dimension == "flops":
        return "tflops_per_second_per_chip"
    if quantity.dimension == "period":
        return "step_seconds" if re.search(r"step|it|batch", unit) else "latency_seconds"
    if re.match(r"tok|tk|tps", unit):
        each = re.search(r"gpu|chip|device|card|rank|accelerator|core|node|die", unit)
        return "tokens_per_second_per_chip" if each else "tokens_per_second"
    return "steps_per_second" if re.match(r"it|step", unit) else "samples_per_second"


def _specified(sentence: Sentence, quantity: Quantity) -> bool:
    away, _ = nearest(sentence, quantity.start, quantity.end, cues.SPECIFICATION)
    measured, _ = nearest(sentence, quantity.start, quantity.end, cues.MEASURED)
    factor = si(quantity.unit) or 1.0
    if any(round(value * factor / 1e12, 1) in known_peaks() for value in quantity.values):
        return measured > 25 or away < measured
    return away < 40 and away < measured


def _bandwidth(sentence: Sentence, quantity: Quantity) -> Draft | None:
    spec, _ = nearest(sentence, quantity.start, quantity.end, cues.SPECIFICATION)
    measured, _ = nearest(sentence, quantity.start, quantity.end, cues.MEASURED)
    named, _ = nearest(
        sentence, quantity.start, quantity.end, re.compile(r"\b(?:has|have|with|disks?|offers?|network)\b")
    )
    if measured < 40 and measured < min(spec, named):
        return _reading(quantity, "bandwidth", sentence.text)
    return None


def _reading(quantity: Quantity, metric: str, text: str) -> Draft:
    near = text[max(0, quantity.start - 45) : quantity.end + 25]
    kind: Kind = "change" if quantity.joined == "change" else "reading"
    direction = _direction(near)
    if kind == "change" and len(quantity.values) == 2:
        low, high = quantity.values
        direction = "up" if high > low else "down" if high < low else "equal"
    elif kind == "reading" and re.search(
        r"\b(?:sav|shav|cut|cost|fre|add|extra|regress|reduc|lost|los)\w*(?: \w+){0,3} (?:by |about |"
        r"around |roughly |another )*$|\bby (?:about |around |roughly )?$",
        text[: quantity.start],
    ):
        kind = "change"
    return Draft(quantity.start, quantity.end, kind, metric, quantity.values, quantity.unit, direction, quantity.halves)


def _direction(text: str) -> Direction:
    if cues.EQUAL.search(text):
        return "equal"
    down, up = cues.DOWN.search(text), cues.UP.search(text)
    if down:
        return "down"
    return "up" if up else "none"


def _metric_near(sentence: Sentence, before: Sentence, quantity: Quantity) -> tuple[int, str]:
    """Distance to the nearest word of a metric, and the metric; a word of the sentence before counts as far away."""
    away, match = nearest(sentence, quantity.start, quantity.end, cues.METRIC_CUE)
    if match is not None:
        return away, match.lastgroup or ""
    last = _last(before.matches(cues.METRIC_CUE))
    return (CARRIED, last.lastgroup or "") if last is not None else (10_000, "")


def _relative(sentence: Sentence, before: Sentence, quantity: Quantity, found: list[Draft]) -> Draft | None:
    text, end = sentence.text, quantity.end
    unit_percent = quantity.dimension == "percent"
    if quantity.dimension == "ratio" and not _is_factor(text, quantity):
        return None
    metric_away, metric = _metric_near(sentence, before, quantity)
    # A signed percentage is a difference; shapes and degrees beside it are what was changed.
    about = cues.OTHER_QUANTITY if quantity.signed else cues.OTHER
    other_away, _ = nearest(sentence, quantity.start, end, about)
    beside = (
        found
        and quantity.start - found[-1].end <= 14
        and (quantity.signed or text[quantity.start - 1 : quantity.start] == "(")
    )
    of = _NOUN_OF.match(text, end) if quantity.dimension == "percent" else None
    if of and not _OF_GOOD.match(of[1]):
        return None
    if of and metric_away > REACH:
        metric_away, metric = 0, "step_seconds"
    lonely = unit_percent and quantity.signed and metric_away > REACH and other_away > REACH
    if lonely:
        metric_away, metric = 0, "tokens_per_second"
    if not beside:
        if metric_away > REACH or other_away < metric_away:
            return None
        if (
            metric_away >= CARRIED
            and before.text
            and not quantity.signed
            and quantity.dimension == "percent"
            and other_away < REACH
        ):
            return None
    elif metric_away > REACH:
        metric = found[-1].metric
    unit = {"percent": "%", "points": "points"}.get(quantity.dimension, "×")
    level = (
        unit == "%"
        and metric in ("mfu", "utilisation")
        and not quantity.signed
        and not re.search(
            r"\b(?:by|higher|lower|more|less)\W*$|^\s?(?:higher|lower|more|less|better|improvement)",
            text[max(0, quantity.start - 8) : quantity.start],
        )
        and not re.match(r"\s?(?:higher|lower|more|less|better|faster|slower|improvement)", text[end:])
    )
    near = text[max(0, quantity.start - 40) : end + 30]
    direction = _relative_direction(text, quantity, near)
    kind: Kind = "reading" if level else "change" if unit == "points" else "ratio"
    if level and quantity.joined == "change":
        kind = "change"
    return Draft(quantity.start, end, kind, metric, quantity.values, unit, direction, quantity.halves)


def _relative_direction(text: str, quantity: Quantity, near: str) -> Direction:
    if quantity.signed:
        return "down" if quantity.values[0] < 0 else "up"
    after = text[quantity.end : quantity.end + 24]
    for piece in (after, near):
        found = _direction(piece)
        if found != "none":
            return found
    return "none"


def _is_factor(text: str, quantity: Quantity) -> bool:
    """Whether `×`, `x`, `-fold` or `times` makes a factor here, and no count of cards or a size."""
    if _AFTER_RATIO.match(text, quantity.end):
        return False
    if quantity.unit.lower() == "times":
        return _COMPARED.match(text, quantity.end) is not None
    return True


@cache
def known_capacities() -> frozenset[float]:
    """Memory of known accelerators, in the GB or GiB that their makers print."""
    from receipts.accelerators import ACCELERATORS

    return frozenset(
        round(machine.hbm_bytes / factor, 1)
        for machine in ACCELERATORS
        if machine.hbm_bytes
        for factor in (1e9, 2.0**30)
    )


def _capacity(quantity: Quantity) -> bool:
    """Whether a size is that of a known device: such a number is a specification unless something used it."""
    return all(value in known_capacities() for value in quantity.values) and quantity.unit.lower()[0] == "g"


def _bytes(sentence: Sentence, before: Sentence, quantity: Quantity) -> Draft | None:
    text, start, end = sentence.text, quantity.start, quantity.end
    used_away, _ = nearest(sentence, start, end, _USED)
    metric_away, metric = _metric_near(sentence, before, quantity)
    memory_away, _ = nearest(sentence, start, end, cues.MEMORY)
    if memory_away < 40:
        metric_away, metric = memory_away, "peak_bytes"
    other_away, _ = nearest(sentence, start, end, cues.OTHER_BYTES)
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
    return _reading(
        quantity,
        "peak_reserved_bytes"
        if re.search(r"\b(?:reserved|pool)\b", text[end : end + 12] + text[max(0, start - 25) : start])
        else "peak_bytes",
        text,
    )


def _time(sentence: Sentence, before: Sentence, quantity: Quantity, found: list[Draft]) -> Draft | None:
    text, start, end = sentence.text, quantity.start, quantity.end
    metric_away, metric = _metric_near(sentence, before, quantity)
    other_away, _ = nearest(sentence, start, end, cues.OTHER_TIME)
    compiles = metric == "compile_seconds" and metric_away < CARRIED
    if _SPAN.search(text, 0, start) and not compiles and not _STALLS.search(text, max(0, start - 40), start):
        return None
    small = (si(quantity.unit) or 1.0) < 1.0
    sibling = any(item.metric in ("step_seconds", "latency_seconds", "compile_seconds") for item in found)
    if metric in ("", "peak_bytes", "mfu", "utilisation") or metric_away > REACH:
        if not (sibling or small):
            return None
        metric = found[-1].metric if sibling else "latency_seconds"
        metric_away = min(metric_away, 60)
    if metric == "tokens_per_second":
        metric = "step_seconds"
    if other_away < metric_away:
        return None
    if metric_away >= CARRIED and not sibling and not small and nearest(sentence, start, end, cues.MEASURED)[0] > 40:
        if not re.search(
            r"\b(?:took|takes|median|mean|average|cost\w*|sav\w+|shav\w+|los\w+|cache|warm|cold|was|"
            r"before|after|down|from|per|by)\b",
            text,
        ):
            return None
    return _reading(quantity, metric, text)


def _sibling(sentence: Sentence, quantity: Quantity, found: list[Draft]) -> Draft | None:
    """A number without a unit beside one with it: `14.2k tokens a second with it and 9k without`."""
    if not found or found[-1].metric not in _SIBLINGS or found[-1].unit in ("%", "×"):
        return None
    last = found[-1]
    between = sentence.text[last.end : quantity.start]
    if len(between) > 60 or not _JOINS.search(between) or _COUNTED.match(sentence.text, quantity.end):
        return None
    if not 0.2 < quantity.values[0] / (last.values[-1] or 1.0) < 5:
        return None
    return Draft(
        quantity.start, quantity.end, "reading", last.metric, quantity.values, last.unit, "none", quantity.halves
    )


def labelled(sentence: Sentence) -> Iterator[Draft]:
    """Numbers whose unit stands before them: `samples/s went up from 412 to 455`, `MFU: 41.2`."""
    if not _LABEL.search(sentence.text):
        return
    for match in _LABELLED.finditer(sentence.text):
        first = next(quantities(f"1 {match['unit']}"), None)
        if first is None or first.dimension not in ("rate", "flops"):
            metric, unit = "mfu", "%"
        else:
            metric, unit = rate_metric(first), first.unit
        numbers = [item for item in quantities(match["numbers"]) if item.dimension == "none"]
        start = match.start("numbers")
        if not numbers or any(item.dimension != "none" for item in quantities(match["numbers"])):
            continue
        values = tuple(value for item in numbers for value in item.values)
        halves = tuple(half for item in numbers for half in item.halves)
        kind: Kind = "change" if len(values) > 1 else "reading"
        yield Draft(start, match.end("numbers"), kind, metric, values, unit, _direction(match[0]), halves)
