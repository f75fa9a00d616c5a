"""Statements in a sentence: numbers whose unit or whose nearest words say what they are of.

Tokens/s, FLOP/s and a time per step say it themselves. A percentage, a factor, a size or a time is of what is named
right beside it: `13 % more throughput`, `step time fell by 160 ms`. A number that names nothing is not a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from receipts.plugins.lint.arithmetic import beyond_hardware, contradicted, known_peaks
from receipts.plugins.lint.statement import (
    QUALIFIED,
    SOFT,
    UNIT,
    UNNAMED,
    Direction,
    Kind,
    Quantity,
    Statement,
    quantities,
    si,
)

# What a number may be of; of `other` no receipt has a figure.
_NOUNS: Final = {
    "mfu": r"MFU|(?:model[- ])?flops?[- ]utili[sz]ation|(?:the\s|dense\s|bf16\s)*peak"
    r"(?!\s(?:memory|alloc|HBM|use|band|T?FLOP|l))",
    "other": r"HFU|goodput|(?:GPU\s)?utili[sz]ation|occupancy|(?:scaling|parallel)\sefficiency"
    r"|(?:steps?|its?|iters?|iterations?|samples?|images?|sequences?)/s(?:ec)?"
    r"|(?:training|epoch|run|train)[-_ ]?time|wall[- ]?(?:clock|time)(?:\stime)?"
    r"|(?P<part>(?:latenc(?:y|ies)|kernels?|forward|backward|(?:all|reduce)[- ]?(?:reduce|gather|scatter)|matmuls?"
    r"|gemms?|interconnect|optimi[sz]er|load(?:er|ing)|start-?up|generation|decod\w+|inference|eval\w*|checkpoint\w*"
    r"|attention|dispatch|communication)(?:\s(?:pass|step|time|kernel))?)",
    "tokens_per_second_per_chip": r"per[- ](?:GPU|chip|device)[- ]throughput|throughput\sper\s(?:GPU|chip|device)"
    r"|tok(?:en)?s?/s(?:ec)?/(?:GPU|chip|device)",
    "tokens_per_second": r"throughputs?|tok(?:en)?s?/s(?:ec)?|tokens?\s(?:per|a)\ssecond|(?:training\s)?speed"
    r"(?!-?\s?up)",
    "compile_seconds": r"(?:re)?compil(?:e|ation)(?:[- ](?:times?|overhead))?",
    "step_seconds": r"(?:step|iteration)[-_ ]?times?|time\sper\s(?:step|iteration)|time(?!\sto\b|\sper\b)",
    "peak_bytes": r"(?:peak\s|activation\s|GPU\s|device\s)*(?:memory|HBM|VRAM)(?:\s(?:footprint|use|usage|peak))?"
    r"|footprint|allocated\speak|peak\sallocation",
}
_NOUN: Final = re.compile(
    rf"(?<![\w.-])(?:{'|'.join(f'(?P<{name}>{text})' for name, text in _NOUNS.items())})(?![\w-])", re.IGNORECASE
)
# A rate that is faster and a time that is shorter are both better; more and less are said of the number itself.
_SENSES: Final[dict[Direction, str]] = {
    "equal": r"unchanged|within|equal\w*|var(?:y|ie[sd])|differ\w*",
    "worse": r"g[ia]ves?\s(?:up|back)|trad(?:es?|ed)|pa(?:ys?|id)|regress\w*|degrad\w*|costs?|"
    r"slow(?:s|ed)?[\s-]?downs?|worse|overheads?|penalt(?:y|ies)",
    "better": r"improv\w*|gain\w*|boost\w*|speeds?\sup|sped\sup|better",
    "down": r"cut\w*|reduc\w+|shr[aiu]nks?|lower\w*|fell|fall(?:s|en|ing)?|drop\w*|decreas\w*|declin\w*|"
    r"sav(?:e[sd]?|ings?)|shav\w*|trim\w*|los(?:t|s|es?|ing)|slash\w*|freed?s?|down|halv\w+|less|fewer|shorter|smaller|slower|below|off",
    "up": r"r[io]se[sn]?|rising|increas\w*|grew|grow\w*|climb\w*|jump\w*|rais\w*|add(?:s|ed)|more|higher|longer|larger|"
    r"bigger|greater|faster|quicker|speed-?\s?ups?|above|up|doubl\w+|tripl\w+|quadrupl\w+",
}
_ANY: Final = "|".join(_SENSES.values())
_SENSE: Final = re.compile(
    rf"(?<![\w-])(?:{'|'.join(f'(?P<{sense}>{words})' for sense, words in _SENSES.items())})(?![\w-])", re.IGNORECASE
)
# Right behind a share or a factor: how it is meant, and of what.
_AFTER: Final = re.compile(
    rf"\)?[\s-]?(?P<as>as\s(?:fast|quick\w*|slow|much|many|high|low|long)\b(?:\sof)?)?(?:(?P<sense>{_ANY})\b)?"
    r"(?:\s?(?P<whole>(?:of|in|off)\s)?(?:(?:the|its|our|their|overall|total|average|mean|median|additional|extra|"
    rf"training|end-to-end)\s)*(?:(?<=of\s)[\w-]+\s)?(?P<noun>{_NOUN.pattern}))?"
    r"(?:\s(?P<loss>loss|reduction|increase|improvement|gain|higher|lower)\b)?",
    re.IGNORECASE,
)
_SPEED: Final = re.compile(r"faster|quicker|slower|speed-?\s?ups?|slow-?downs?|as\s(?:fast|quick|slow)", re.IGNORECASE)
_ALL_OF: Final = re.compile(r"\b(?:steps?|iterations?|training|throughput|runs?|end-to-end|it)\b|[.;]\s", re.IGNORECASE)
_BASELINE: Final = re.compile(
    r"\sof\s(?:(?:the|its|our)\s)?(?:\w+\s)?(?:baseline|reference|original|that|those|what)\b", re.IGNORECASE
)
# Between a noun and its number: verbs and words that soften, and no other noun.
_FILL: Final = re.compile(
    r"(?:[\s:*(=_~≈]|\b(?:by|to|of|at|from|in|is|are|was|were|be|has|have|had|been|now|goes|went|comes?|came|stays?|"
    r"reach(?:es|ed)?|hits?|remains?|runs?|takes?|took|changed|moved|sits|we|got|used|peaked|peaks|than|as|"
    rf"{_ANY})\b|{SOFT[:-1]}+)*",
    re.IGNORECASE,
)
_DIRECT: Final = re.compile(rf"(?<![\w-])(?P<verb>{_ANY})\s{SOFT}$", re.IGNORECASE)
_BY: Final = re.compile(rf"\b(?:by|of)\s{SOFT}$", re.IGNORECASE)
_TO: Final = re.compile(rf"(?<!\bup\s)(?<!\bdown\s)\b(?:to|in)\s{SOFT}$", re.IGNORECASE)
_CLAUSE: Final = re.compile(
    r";\s|,\s(?:and|but|while|so)\b|\s[—–|]\s|\b(?:but|while|whereas|although)\b", re.IGNORECASE
)
_TIMED: Final = re.compile(
    r"(?P<step>(?<!first\s)\b(?:steps?|iterations?)(?=[\s:]+(?:now\s|only\s)?(?:takes?|took|is|was|were|are|costs?|completed|"
    rf"finished|from|fell|went|dropped|[(:=])|\s?[(:=])|\b(?:step|iteration)[-_ ]times?\b)|{_NOUN.pattern}",
    re.IGNORECASE,
)
# A spread, or what a number is out of.
_ASIDE: Final = re.compile(
    r"(?:\b(?:std|stdev|stddev|sd|spread|jitter|variance|margin|deviation|noise)|σ)(?:\s?(?:of|is|[:=]))?\W{0,3}$"
    r"|\d\s?(?:[GMT]i?B?)?\)?\s(?:(?:out\s)?of|/)\s(?:the\s)?$",
    re.IGNORECASE,
)
_OF: Final = re.compile(r"\s?of\s")
_BRACKET: Final = re.compile(r"[\s*_]*[(,]\s?")
_TIME_BEHIND: Final = re.compile(rf"\s(?:of\s)?(?:the\s)?{_NOUN.pattern}", re.IGNORECASE)
_CHIP: Final = (
    r"(?:[ABHL]\d{2,3}s?|G[BH]\d{2,3}|MI\d{3}\w*|RTX\w*|TPU\w*|v\d[ep]?|\d090|(?:GPU|card|chip|node|device|host)s?)\b"
)
_HAS: Final = re.compile(rf"\b{_CHIP}[\s:-]*(?:SXM\s|PCIe\s)?(?:has|have|with|of|offers)?\s?$", re.IGNORECASE)
_OF_CHIP: Final = re.compile(
    rf"[\s-]*(?:of\s)?(?:{_CHIP}|(?:HBM\w*|VRAM|memory)\b(?!\s(?:used|peak|usage|use|less|more)))", re.IGNORECASE
)
_USED: Final = re.compile(
    r"\b(?:us(?:e[sd]?|ing)|peak\w*|takes?|took|needs?|sav\w+|less|more|allocat\w+|by|reserv\w+)\b[^,;.]*$|\+\s?$",
    re.IGNORECASE,
)
_MEMORY: Final = re.compile(
    rf"{_NOUNS['peak_bytes']}|\bmemory\b|\breserv\w+|\ballocat\w+|\bpeak(?:s|ed)?\b|\bper\s(?:rank|GPU|chip|device)\b",
    re.IGNORECASE,
)
_TAKEN: Final = re.compile(r"\b(?:takes?|took|fits?|holds?|uses?|plan(?:s|ned)|asked|needs?|tried)\b", re.IGNORECASE)
_OTHER_BYTES: Final = re.compile(
    r"\b(?:disks?|datasets?|corpus|downloads?|uploads?|checkpoints?|files?|buckets?|buffers?|host|CPU|system|storage|"
    r"traces?|logs?|NVMe|SSD|bandwidth|cache|swap|traffic|transfers?|RAM|limits?|capacity|equipped|free|headroom|left|"
    r"spare|available|minimum|at\sleast|params?)\b",
    re.IGNORECASE,
)
_SPECIFIED: Final = re.compile(
    r"\b(?:theoretical\w*|data\s?sheets?|spec(?:s|ification)?s?|rated|nominal|advertis\w+|promis\w+|on\spaper|vendor|"
    r"denominator|roofline|(?:dense|sparse|hardware|compute)\speak|peak\s(?:of|is|at|bf16|fp8|dense|compute|T?FLOPs?))\b",
    re.IGNORECASE,
)
_PEAK: Final = re.compile(r"\s(?:(?:dense|sparse|theoretical|bf16|fp8)\s)*(?:peak|ceiling|roofline)\b", re.IGNORECASE)
_ALL_CHIPS: Final = re.compile(r"\b(?:aggregate|total|combined)\b|\bexa|\bE(?=FLOP)", re.IGNORECASE)
_OPEN: Final = re.compile(
    r"\b(?:would|should|could(?!\snot)|might|goals?|targets?|aim(?:s|ed|ing)?|hop(?:e|es|ed|ing)|in\stheory|theoretical(?:ly)?|"
    r"whether|todo|ideal\w*|expect(?:s|ed|ing)?|projected|suppos(?:e|ing)|estimate[sd]?|needs?\s(?:at\sleast|to)|must|ought|"
    r"wish|if|unless|next\s(?:week|month|quarter|year)|(?:does|do|did|is|was|were|are|can)(?:\snot|n['’]t)\s(?:show|mean|"
    r"imply|prove|claim|say)|shall|may\sbe)\b(?!.*\b(?:we\s(?:measured|got|saw|see|get|have)|reality|in\spractice|actually)\b)"
    r"|\b(?:when(?:ever)?|once|until)\b[^,;]*\b(?:exceeds?|below|above|over|under|beyond)\b[^,;]*$",
    re.IGNORECASE,
)
_WOULD: Final = re.compile(
    r"[^.;,]{0,24}?\b(?:would|should|theoretical\w*|is\s(?:our|the)\s(?:goal|target))\b", re.IGNORECASE
)
_SENTENCE: Final = re.compile(
    r"(?<=[.!?…])[\"')\]]*\s+(?=[\"'(\[>~]*[^\W_])(?<!e\.g\. )(?<!i\.e\. )(?<!vs\. )(?<!ca\. )(?<!approx\. )"
)
_MAX_SENTENCE: Final = 1000  # characters of a sentence, so that the work for each number is bounded
# One of these stands in every sentence that states something without a link; most sentences have none.
_PLAIN: Final = re.compile(
    r"tok|tk/|[twg][pg]s|flop|MFU|utili|/s|per s| a s|step|iter|/it|compil|time|mem|hbm|vram|alloc|reserv"
    r"|footprint|[gmt]ib|gig|per (?:rank|gpu|chip|device)| peak|peaks at|peaked",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(
    rf"(?<![\w])(?:{UNIT}|(?P<mfu>MFU|flops\sutili[sz]ation)|(?P<hfu>HFU|goodput))\s?[)\]]?(?:[:=*_\s]|\b(?:of|is|was|at|to|"
    r"from|reache[sd]|goes|went|rose|fell|up|improve[sd]|now|only|about|roughly|are|stays|drop(?:s|ped)|rises)\b)*[~≈]?$",
    re.IGNORECASE,
)
_NOT_ALONE: Final = re.compile(
    r"\s(MFU|HFU)\b|\s?(?!\s?(?:after|and|at|before|by|for|from|in|of|on|per|than|to|when|while|with\w*)\b)[A-Za-z%×]"
)
_SAVED: Final = re.compile(
    rf"\b(?:by|up|down|sav\w+|shav\w+|cuts?|(?<!compilation\s)costs?|adds?|added|another|extra)\s{SOFT}$", re.IGNORECASE
)
_MORE: Final = re.compile(
    r"\s(faster|slower|less|more|lower|higher|shorter|longer|smaller|larger|(?:reduc|increas|decreas|improve|regress|overhead|"
    r"penalt|gain|sav|cut|drop|off|slow|speed|win|freed|worse|better)\w*)\b(?!\sthan\s\d)",
    re.IGNORECASE,
)


def statements(text: str, links: Sequence[tuple[int, int]] = ()) -> Iterator[Statement]:
    """Every statement of a paragraph, in order; every number inside ``links``, spans of the text, is one."""
    for start, end in sentences(text):
        spans = tuple((low - start, high - start) for low, high in links if low < end and start < high)
        sentence = text[start:end]
        if spans or _PLAIN.search(sentence):
            for draft in in_sentence(sentence, spans):
                yield replace(draft, start=draft.start + start, end=draft.end + start)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a paragraph begin and end; one without a full stop comes in parts."""
    start = 0
    for match in [*_SENTENCE.finditer(text), None]:
        end = match.start() if match else len(text)
        while end - start > _MAX_SENTENCE:
            blank = text.rfind(" ", start, start + _MAX_SENTENCE)
            part = blank + 1 if blank > start else start + _MAX_SENTENCE
            yield start, part
            start = part
        yield start, end
        start = match.end() if match else end


@lru_cache(maxsize=4096)  # a page repeats itself: table cells, boilerplate, quoted results
def in_sentence(text: str, links: tuple[tuple[int, int], ...] = ()) -> tuple[Statement, ...]:
    """Statements of one sentence. A question, a target, a condition and a denial state nothing unless linked.

    A share or a factor without a link is a statement only if the two numbers beside it contradict it.
    """
    known: list[Statement] = []
    unlinked: set[int] = set()
    asked = text.rstrip(" *_\"')+").endswith("?")
    for quantity in quantities(text, tuple(at for span in links for at in span)):
        linked = any(low < quantity.end and quantity.start < high for low, high in links)
        draft = _draft(text, quantity, known, linked=linked)
        if draft is None or _ASIDE.search(text, max(0, quantity.start - 24), quantity.start):
            continue
        # Whether a target, an expectation, a denial or a condition governs a number.
        if linked or not (
            asked or bool(_OPEN.search(_clause(text, quantity.start, 300)) or _WOULD.match(text, quantity.end))
        ):
            known.append(draft)
            unlinked |= set() if linked else {draft.start}
    checked = contradicted(beyond_hardware(known, text), text)
    relative = [item for item in checked if item.kind == "ratio" or item.unit == "points"]
    return tuple(item for item in checked if item not in relative or item.contradiction or item.start not in unlinked)


def _clause(text: str, end: int, reach: int = 90) -> str:
    """The words before a number, from the beginning of its clause."""
    start = max(0, end - reach)
    return text[max((match.end() for match in _CLAUSE.finditer(text, start, end)), default=start) : end]


def _draft(text: str, quantity: Quantity, known: list[Statement], *, linked: bool) -> Statement | None:
    draft = None
    match quantity.dimension:
        case "rate" | "flops" | "period":
            draft = _rate(text, quantity)
        case "bytes":
            draft = _size(text, quantity, linked=linked)
        case "time":
            metric = _timed(text, quantity)
            draft = reading(text, quantity, metric, quantity.unit) if metric else None
        case "percent" | "ratio" | "points":
            draft = _relative(text, quantity, known)
        case "none":
            return _labelled(text, quantity) or (_sibling(text, quantity, known) if linked else None)
    counted = quantity.dimension == "ratio" and re.match(rf"\s?(?:{_CHIP}|\d)", text[quantity.end :], re.IGNORECASE)
    return stated(quantity, "reading", UNNAMED, quantity.unit) if draft is None and linked and not counted else draft


def stated(quantity: Quantity, kind: Kind, metric: str, unit: str, direction: Direction = "none") -> Statement:
    """The statement that a quantity makes."""
    values, halves = quantity.values, quantity.halves
    return Statement(quantity.start, quantity.end, kind, metric, values, unit, direction, halves, quantity.bound)


def reading(text: str, quantity: Quantity, metric: str, unit: str) -> Statement:
    """A number with a unit as a statement: a reading of the metric, or a change if the words beside it say so."""
    if quantity.joined == "change":
        low, high = quantity.values
        return stated(quantity, "change", metric, unit, "up" if high > low else "down" if high < low else "equal")
    if quantity.signed and not text.startswith(QUALIFIED, quantity.start):
        return stated(quantity, "change", metric, unit, "down" if quantity.values[0] < 0.0 else "up")
    more = _MORE.match(text, quantity.end)
    if not more and not _SAVED.search(text, max(0, quantity.start - 40), quantity.start):
        return stated(quantity, "reading", metric, unit)
    word = more[1].lower() if more else ""
    sense = {"faster": "better", "slower": "worse"}.get(word) or _sense(text, quantity, word)
    low, high = min(quantity.values), max(quantity.values)  # two ends of one difference: `by 120-140 ms`
    middle = replace(quantity, values=((low + high) / 2,), halves=((high - low) / 2 + max(quantity.halves),))
    return stated(middle, "change", metric, unit, "none" if sense == "level" else sense)  # type: ignore[arg-type]


def rate_metric(quantity: Quantity) -> str:
    """The metric of a rate, of FLOP/s, or of a time per step; empty for samples and steps a second."""
    if quantity.dimension in ("flops", "period"):
        return "tflops_per_second_per_chip" if quantity.dimension == "flops" else "step_seconds"
    unit = quantity.unit.lower()
    if not re.search(r"\b(?:tok|tk|tps|wps|tgs)", unit):
        return ""
    each = re.search(r"gpu|chip|device|card|rank|accelerator|core|node|die|tgs", unit)
    return "tokens_per_second_per_chip" if each else "tokens_per_second"


def _rate(text: str, quantity: Quantity) -> Statement | None:
    metric, behind = rate_metric(quantity), text[quantity.end : quantity.end + 40]
    near = re.split(r"[,;(]", text[max(0, quantity.start - 40) : quantity.start])[-1]
    if quantity.dimension == "flops":
        known = all(round(value * (si(quantity.unit) or 1.0) / 1e12, 1) in known_peaks() for value in quantity.values)
        measured = re.search(r"\b(?:measur|reach|achiev|sustain|got|saw|ran|runs)", near)
        if _PEAK.match(behind) or _SPECIFIED.search(near) or (known and not measured):
            return None
        if _ALL_CHIPS.search(near + quantity.unit) or re.match(r"\s(?:across|over|in\stotal|on\sall)\b", behind):
            return None
    elif metric == "tokens_per_second" and re.search(
        rf"\b(?:each|every|per)[\s-]{_CHIP}[^.;:,()]*$", near, re.IGNORECASE
    ):
        metric = "tokens_per_second_per_chip"
    return reading(text, quantity, metric, quantity.unit) if metric else None


def _size(text: str, quantity: Quantity, *, linked: bool) -> Statement | None:
    """A size as a statement on peak memory; None for a device's or a file's, or if the words beside it name none."""
    start, end = quantity.start, quantity.end
    near = _clause(text, start)[-50:] + " # " + re.split(r"[.;,(]", text[end : end + 18])[0]
    of_chip = _HAS.search(text, max(0, start - 30), start) or _OF_CHIP.match(text, end)
    taken = "i" in quantity.unit and _TAKEN.search(near)  # binary units are those of allocators
    named = taken or _MEMORY.search(near) or (linked and quantity.unit.lower() != "g")
    used = _USED.search(text, max(0, start - 25), start + 1)
    if quantity.unit[:1] in "kK" or not named or _OTHER_BYTES.search(near) or (of_chip and not used):
        return None
    return reading(text, quantity, "peak_reserved_bytes" if "reserved" in near else "peak_bytes", quantity.unit)


def _timed(text: str, quantity: Quantity) -> str:
    """The metric of a time, by the noun before it in its clause, or right behind it; empty without one."""
    behind = _TIME_BEHIND.match(text, quantity.end)
    before = re.split(r"[.](?=\s)|[;|]", text[max(0, quantity.start - 80) : quantity.start])[-1]
    if re.match(r"\s?\d+\s?(?:m|min|s|sec|h)", text[quantity.end : quantity.end + 40]) or re.search(
        r"\d\s?(?:h|m|min\w*|hours?)\s$", before
    ):
        return ""  # a part of `1 h 23 min`
    if behind and (behind["compile_seconds"] or behind["step_seconds"] or behind["part"]) and behind[0] != " time":
        return _metric(behind)
    last = max(_TIMED.finditer(f"{before}\x00"), key=lambda match: match.start(), default=None)
    if last is None or last[0].lower() == "time" or re.search(r"\bfirst\s(?:step|iteration)\b|\btime\sto\b", before):
        return ""
    metric = "step_seconds" if last["step"] else _metric(last)
    return metric if metric.endswith("_seconds") else ""


def _relative(text: str, quantity: Quantity, known: list[Statement]) -> Statement | None:
    """A percentage, percentage points or a factor of the quantity named behind or before it; None without one."""
    start, end, before = quantity.start, quantity.end, _clause(text, quantity.start)
    after = _AFTER.match(text, end)
    assert after is not None  # every part of it is optional
    word, noun = after["as"] or after["sense"] or after["loss"] or "", _NOUN.match(after["noun"] or "")
    baseline = _BASELINE.match(text, end)
    whole = (after["whole"] or "").strip() == "of" or word.endswith(" of") or bool(noun and not word) or bool(baseline)
    metric = _metric(noun) if noun else ""
    if noun and noun[0].lower().endswith("peak") and re.search(r"\b(?:learning|LR|rate)\b|^$", text[:start]):
        return None
    if re.match(r"[\s-]?(?:longer|shorter|as\slong)\b", text[end : end + 16], re.IGNORECASE):
        metric = "step_seconds" if re.search(r"\b(?:step|iteration)s?\b", before) else ""
    elif noun and noun[0].lower() == "time" and not word:
        metric = metric if re.search(r"\b(?:takes?|took|needs?|in|costs?)\s(?:\w+\s){0,2}$", before) else ""
    elif noun is None and _SPEED.search(word):
        # A part of a step that is faster is not the rate.
        part = max((one.end() for one in _NOUN.finditer(before) if one["part"]), default=None)
        of_part = part is not None and not _ALL_OF.search(before, part)
        metric = _named_before(before, "" if of_part else "tokens_per_second")
    elif noun is None and known and quantity.signed and _BRACKET.fullmatch(text, known[-1].end, start):
        metric = known[-1].metric  # `98k tok/s (+13 %)`
    elif noun is None and (baseline or not _OF.match(text, end) or re.search(r"\bwithin\W*$", before)):
        metric = _named_before(before)
    if not metric:
        return None
    unit = {"percent": "%", "points": "points"}.get(quantity.dimension, "×")
    quantity = replace(quantity, end=max(end, *(after.end(name) for name in ("as", "sense", "noun", "loss"))))
    share = metric == "mfu" and unit == "%"
    if share and (quantity.joined == "change" or not (quantity.signed or word or re.search(r"\bby\W*$", before))):
        return reading(text, quantity, metric, unit)
    sense = _sense(text, quantity, word, whole=whole)
    if sense == "level" and unit != "points":
        size = 0.01 if unit == "%" else 1.0
        values, halves = (tuple(one * size for one in part) for part in (quantity.values, quantity.halves))
        quantity, unit, sense = replace(quantity, values=values, halves=halves), "×", "up" if values[0] >= 1 else "down"
    return stated(
        quantity, "change" if unit == "points" else "ratio", metric, unit, "none" if sense == "level" else sense
    )


def compares(words: str) -> bool:
    """Whether words compare without a number: `twice as fast`, `less memory`, `cut by a third`."""
    return bool(
        _SENSE.search(words) or re.search(r"\b(?:twice|thrice|half|halv\w+|as\s\w+|thirds?|quarters?)\b", words)
    )


def _metric(noun: re.Match[str]) -> str:
    """The metric that a noun names; empty if no receipt has it."""
    return next((name for name in _NOUNS if noun[name] is not None and name != "other"), "")


def _named_before(before: str, unnamed: str = "") -> str:
    """The metric that the words before a number name as its quantity: only verbs stand between."""
    last = max(_NOUN.finditer(before), key=lambda match: match.start(), default=None)
    if last is None or not _FILL.fullmatch(before, last.end()) or last[0].lower().endswith("peak"):
        return unnamed
    return _metric(last)


def _sense(text: str, quantity: Quantity, word: str, *, whole: bool = False) -> Direction:
    """Which way a share or a factor goes, by the word right behind it, then by those before it."""
    before, behind = _clause(text, quantity.start), _sense_of(word)
    if text.startswith(QUALIFIED, quantity.start):
        return "equal"
    if quantity.signed:
        sign: Direction = "down" if quantity.values[0] < 0 else "up"
        return behind if behind in ("better", "worse") and sign == "up" else sign
    direct, to, by = _DIRECT.search(before), _TO.search(before), _BY.search(before)
    verb = _sense_of(direct["verb"]) if direct else "none"
    verbs = [_sense_of(one[0]) for one in _SENSE.finditer(before, 0, by.start() if by else len(before))]
    if verb == "equal":
        return verb
    if word.startswith("as"):
        return "down" if word.endswith("slow") else "level"
    if behind != "none" or verb != "none":
        return behind if behind != "none" else verb
    if (to and verbs) or (whole and not by):
        return "level"
    return verbs[-1] if verbs else "none"


def _sense_of(word: str) -> Direction:
    match = _SENSE.match(word)
    return (match.lastgroup or "none") if match else "none"  # type: ignore[return-value]  # the groups are senses


def _labelled(text: str, quantity: Quantity) -> Statement | None:
    """A number whose unit is before it, `samples/s went up from 412 to 455`, `MFU: 41.2`; or a fraction, `0.42 MFU`."""
    start, behind = quantity.start, _NOT_ALONE.match(text, quantity.end)
    label = _LABEL.search(text, max(0, start - 70), start) if behind is None else None
    if (behind and behind[1]) or (label and (label["mfu"] or label["hfu"])):
        mfu = (behind and behind[1] == "MFU") or (label and label["mfu"])
        return reading(text, quantity, "mfu", "" if max(quantity.values) <= 1.0 else "%") if mfu else None
    dimension = next((one for one in ("rate", "flops", "period", "bytes", "time") if label and label[one]), "")
    if label is None or not dimension:
        return None
    named = replace(quantity, dimension=dimension, unit=label[dimension])
    head = re.split(r"[.;,]", text[: label.start(dimension)])[-1]
    noun = _NOUN.search(head) if head.rstrip().endswith("(") else None  # `peak memory (GiB): 54.9`
    metric = _metric(noun) if noun else ""
    if dimension in ("bytes", "time"):
        return reading(text, named, metric, named.unit) if metric in ("step_seconds", "peak_bytes") else None
    metric = rate_metric(named)
    return reading(text, named, metric, named.unit) if metric else None


def _sibling(text: str, quantity: Quantity, known: list[Statement]) -> Statement | None:
    """A linked number joined to a statement that has its unit: `Tokens/s: 98,112 → [101,950](…)`."""
    last = known[-1] if known else None
    if last is None or not re.fullmatch(r"\s?(?:→|->|=>|to|vs\.?|and|from|was)\s?", text[last.end : quantity.start]):
        return None
    return stated(quantity, "reading", last.metric, last.unit) if last.kind == "reading" else None
