"""Performance statements in a sentence: which of its numbers speak of speed, memory or fit, and what a verb states.

Verbs make statements without a number: halved the step time, runs out of memory, fits in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from receipts.plugins.lint import cues
from receipts.plugins.lint.cues import Sentence, nearest
from receipts.plugins.lint.markdown import CODE
from receipts.plugins.lint.measurements import bandwidth, duration, labelled, rate, sibling, size
from receipts.plugins.lint.quantity import Quantity, bound_before, in_order, quantities
from receipts.plugins.lint.reading import ARTICLE, PERFORMANCE, SOFT, last_of
from receipts.plugins.lint.relative import relative
from receipts.plugins.lint.statement import MIRRORED, Direction, StatementDraft

_FACTORS = {"doubl": 2.0, "tripl": 3.0, "quadrupl": 4.0, "halv": 0.5}
_FACTOR = re.compile(
    rf"\b(?:(?P<verb>doubl|tripl|quadrupl|halv)(?:e[sd]?|ing)\s{ARTICLE}{PERFORMANCE}\b"
    rf"|{PERFORMANCE}\s(?:(?:has|was|were|is)\s)?{SOFT}(?P<passive>doubl|tripl|quadrupl|halv)e[sd]\b)",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(
    r"(?<![\w-])(?:MBS|micro[-_ ]?batch(?:es)?(?:[_ ]size)?|batch(?:es)?(?:[_ ]size)?|bs|GBS|"
    r"seq(?:uence)?(?:[-_ ]?len(?:gth)?)?|context|depth|EP|TP|PP)"
    r"\s?(?:=|of|at|is)?\s?(\d[\d,]*[kK]?)(?!\w|\.\d)|"
    r"(?<![\w.,])(\d[\d,]*[kK]?)[\s-](?:context|sequence(?: length)?)\b",
    re.IGNORECASE,
)
_OOM = re.compile(
    r"\b(?:no OOMs?\b|(?:does not|doesn't|did not|didn't|never) OOM\b|OOM(?:s|ed|ing)?\b|OOM'(?:s|ed|d)\b|"
    r"r[ua]n(?:s|ning)? out of (?:memory|HBM|VRAM|device memory)|out[- ]of[- ]memory (?:error|failure)s?|"
    r"(?:goes|went|go|going|dies|died) (?:out of memory|OOM)|exceed(?:s|ed|"
    r"ing)? (?:the )?(?:[\d.,]+ ?[GT]i?B )?(?:of )?(?:device |GPU |HBM |chip )?(?:memory|HBM|VRAM|"
    r"limit)(?: of \w+)?)",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    r"\b(?:dies|died|hits?|got|gets|gives|gave|crash\w*|ends?|ended|fails?|"
    r"failed)\s(?:\w+\s){0,3}$|(?::|=|→|->|—|–)\s?\W?$",
    re.IGNORECASE,
)
# Cheap looks before the long patterns: most sentences hold none of these.
_FACTOR_WORD = re.compile(r"doubl|tripl|quadrupl|halv", re.IGNORECASE)
_FIT_WORD = re.compile(r"OOM|memory|fit|exceed|out of|ceiling|limit|maximum", re.IGNORECASE)
_CODE = re.compile(CODE)
_FITS = re.compile(
    r"\b(?P<no>(?:does|do|did|would|could|can|will)\s?(?:n['’]t|not) (?:even )?fit|cannot fit|"
    r"can['’]t fit|no longer fits?|never fit(?:s)?)\b(?P<where>[^.;,]{0,12}?\b(?:in|into|on|"
    r"within)?\b[^.;,]{0,25}?[\d.]+ ?[GT]i?B)?"
    r"|\b(?:fits?|fitted) (?:comfortably |easily |just |barely |well )?(?:in|into|within|inside|"
    r"under|on)\b[^.;,]{0,30}?[\d.]+ ?[GT]i?B\b"
    r"|\bfits\b(?=\W*$|\W*[,;.]|\s(?:for me|again|now|fine|and|with|but|on|at)\b)",
    re.IGNORECASE,
)
_ON_CHIP = re.compile(rf"\s(?:on|in|into|within)\s(?:an?\s|one\s|single\s|\d+\s?[x×]?\s?)*{cues.CHIP_NAME}(?:-\d+)?")
_BEFORE = re.compile(r"\bbefore\s(?:(?:an?|it|hitting|the)\s)*$", re.IGNORECASE)
# A limit is a fact only where somebody tried it: that of a context is the model's design.
_CEILING = re.compile(
    r"\b(?:validated|measured|verified|tested|proven)\s(?:ceiling|limit|maximum)\s(?:is|was|of|at)\s"
    r"(?P<number>\d[\d,]*[kKM]?)\stokens\b",
    re.IGNORECASE,
)
_GENERIC = re.compile(
    r"\b(?:handl\w+|ladder|detect\w*|class(?:es|ify)?|retry|retries|if|when(?:ever)?|whether|"
    r"avoid\w*|prevent\w*|risk\w*|an OOM|on OOM|OOMs? (?:are|is|can|may|killer|report\w*|check\w*|"
    r"errors? (?:are|is))|why)\b",
    re.IGNORECASE,
)


def verbs(sentence: Sentence) -> Iterator[StatementDraft]:
    """Factors that a verb says of a metric beside it: `halves the step time`, `throughput doubled`."""
    if not _FACTOR_WORD.search(sentence.text):
        return
    for match in _FACTOR.finditer(sentence.text):
        value = _FACTORS[(match["verb"] or match["passive"]).lower()]
        cue = cues.METRIC_CUE.search(match[0])
        metric = (cue.lastgroup if cue else None) or "tokens_per_second"
        half = value / 4.0 if value > 1.0 else 0.05
        direction: Direction = "down" if value < 1.0 else "up"
        bound = bound_before(sentence.text, match.start(match.lastgroup or 0))
        bound = bound if value > 1.0 else MIRRORED.get(bound, bound)
        yield StatementDraft(match.start(), match.end(), "ratio", metric, (value,), "×", direction, (half,), bound)


def fits(sentence: Sentence) -> Iterator[StatementDraft]:
    """Shapes that fit in memory or do not. Talk of out-of-memory failures that names no shape is no statement."""
    text = sentence.text
    if not _FIT_WORD.search(text):
        return
    for match in _OOM.finditer(text):
        away = _shape_away(sentence, match)
        generic, _ = nearest(sentence, match.start(), match.end(), _GENERIC)
        # A bare noun is most often the topic; what happened is shown by a verb, or by the shape right beside it.
        noun = re.fullmatch(r"OOMs?|out[- ]of[- ]memory \w+", match[0], re.IGNORECASE) is not None
        happened = noun and _HAPPENED.search(text, 0, match.start()) is not None
        if away > (25 if noun and not happened else 70) or generic < min(away, 30):
            continue
        good = re.match(r"no |does|did|never", match[0], re.IGNORECASE)
        yield _fit(sentence, match, "up" if good or _BEFORE.search(text, 0, match.start()) else "down")
    for match in _FITS.finditer(text):
        chip = _ON_CHIP.match(text, match.end())
        if chip and _shape_away(sentence, match) > 60:
            yield StatementDraft(
                match.start(), chip.end(), "fit", "fit_on_chip", (), "", "down" if match["no"] else "up"
            )
            continue
        limit = any(item.dimension == "bytes" for item in quantities(match[0]))
        if not limit and _shape_away(sentence, match) > 60:
            continue
        yield _fit(sentence, match, "down" if match["no"] else "up")
    for match in _CEILING.finditer(text):
        (most,) = quantities(match["number"])
        yield StatementDraft(
            match.start(), match.end(), "reading", "largest_fit", most.values, "tokens", "none", most.halves
        )


def _shape_away(sentence: Sentence, match: re.Match[str]) -> int:
    """The distance of the nearest shape: a batch or a sequence with its number, inline code, or a size in bytes."""
    shape, _ = nearest(sentence, match.start(), match.end(), _QUALIFIED)
    code, _ = nearest(sentence, match.start(), match.end(), _CODE)
    sizes = [
        sentence.distance(match.start(), match.end(), (item.start, item.end))
        for item in quantities(sentence.text)
        if item.dimension == "bytes"
    ]
    return min(shape, code, *sizes, 10_000)


def _fit(sentence: Sentence, match: re.Match[str], direction: Direction) -> StatementDraft:
    """The statement with its limit in bytes, or else with the number of the shape that is nearest."""
    text = sentence.text
    limit = [item for item in quantities(match[0]) if item.dimension == "bytes"]
    if limit:
        return StatementDraft(
            match.start(), match.end(), "fit", "peak_bytes", limit[0].values, limit[0].unit, direction, limit[0].halves
        )
    end = match.end()
    after = re.compile(rf"\s(?:at|with|on|for|beyond|from|in) (?:a )?{_QUALIFIED.pattern}", re.IGNORECASE).match(
        text, end
    )
    if after:
        end = after.end()
    away, shape = nearest(sentence, match.start(), match.end(), _QUALIFIED)
    if shape is None or away >= 60:
        return StatementDraft(match.start(), end, "fit", "outcome", (), "", direction)
    number = (shape[1] or shape[2]).replace(",", "").lower()
    # `32K` tokens are 32,768, and may be 32,000.
    value = float(number.rstrip("k")) * (1012.0 if number.endswith("k") else 1.0)
    half = value * 12.0 / 1012.0 if number.endswith("k") else 0.0
    unit = re.split(r"[\s=]?\s?(?:=|of|at|is)?\s?\d", shape[0])[0].strip() if shape[1] else "seq"
    return StatementDraft(match.start(), end, "fit", "outcome", (value,), unit, direction, (half,))


_TRIGGER = re.compile(
    r"\d|fold\b|\bper\s?cent|\b(?:twice|thrice|doubl|tripl|quadrupl|hal[fv]|third|quarter|fifth|sixth|eighth|tenth|order|times|factor|OOM|memory|fit)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(
    r"(?<=[.!?…])[\"')\]*_]*\s+(?=[\"'(\[*_>~]*[^\W_])(?<!e\.g\. )(?<!i\.e\. )(?<!vs\. )(?<!ca\. )(?<!approx\. )"
)
_LONGEST = 1000  # characters of a sentence
_HALF = re.compile(r";\s|\s[—–]\s|, (?:but|yet|reality|and we|we|and the reality|instead)\b")
_TAIL = re.compile(
    r"\s?(?:\*\*|_)?\s?(?:as\s(?:fast|quickly|slow|long|efficient)|(?:as\smuch\s)?(?:of\s)?(?:the\s)?(?:peak\s)?"
    r"(?:throughput|memory|step time)|faster|slower|quicker|speed-?ups?|slow-?downs?|(?:more|less|higher|"
    r"lower|better|additional)?\s?"
    r"(?:throughput|memory|MFU|HFU|step time|TFLOP/s|tok/s|latency|utili[sz]ation|overhead|"
    r"regression)|improvement|of peak|of (?:the|each|every|an?) (?:step|iteration)(?! time))\b",
    re.IGNORECASE,
)
_WOULD_AFTER = re.compile(
    r"[^.;,]{0,24}?\b(?:would|should|is (?:our|the) (?:goal|target)|or better|is enough)\b", re.IGNORECASE
)
# A threshold is no fact: `if MFU drops below 30 %`, `an alert when a step exceeds 3 s`.
_CONDITION = re.compile(
    r"\b(?:if|(?:when(?:ever)?|once|until|unless)\b[^,;]*"
    r"\b(?:exceeds?|below|above|over|under|beyond|more than|less than))\b[^,;]*$",
    re.IGNORECASE,
)
_KEEPS = re.compile(r"\b(?:keep|leave|reserve)s?\b", re.IGNORECASE)
_HEADROOM = re.compile(r"[^a-z]{0,8}(?:GB|GiB)?(?: of)? (?:headroom|margin|slack)\b", re.IGNORECASE)


def statements(text: str, heading: str = "") -> Iterator[StatementDraft]:
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


def sentence_at(text: str, offset: int) -> tuple[int, int]:
    """Where the sentence begins and ends that holds a character of a paragraph; at most a part away from it."""
    start, end = max(0, offset - _LONGEST), min(len(text), offset + _LONGEST)
    for match in _SENTENCE.finditer(text, start, end):
        if match.start() > offset:
            return start, match.start()
        start = match.end()
    return start, end


def in_sentence(text: str, before: str = "") -> tuple[StatementDraft, ...]:
    """Statements of one sentence; ``before`` is the sentence or heading before it.

    Each statement looks at all words of its sentence, so that a text without a full stop is read in parts.
    """
    drafts: list[StatementDraft] = []
    start, before = 0, before[-_LONGEST:]
    while start < len(text):
        end = len(text)
        if end - start > _LONGEST:
            blank = text.rfind(" ", start, start + _LONGEST)
            end = blank + 1 if blank > start else start + _LONGEST
        part = text[start:end]
        drafts += (replace(item, start=item.start + start, end=item.end + start) for item in _in_part(part, before))
        before, start = part, end
    return tuple(drafts)


@lru_cache(maxsize=4096)  # a page repeats itself: table cells, boilerplate, quoted results
def _in_part(text: str, before: str) -> tuple[StatementDraft, ...]:
    if text.rstrip(" *_\"')+").endswith("?"):
        return ()
    sentence, earlier = Sentence(text), Sentence(before)
    drafts: list[StatementDraft] = []
    fitting = list(fits(sentence))
    for quantity in in_order(text):
        if quantity.dimension == "none" and not drafts:
            continue
        if any(item.start < quantity.end and quantity.start < item.end for item in fitting):
            continue
        draft = _judge(sentence, earlier, quantity, drafts)
        if draft is not None and not hypothetical(text, draft.start):
            drafts.append(_extended(draft, text))
    for draft in (*fitting, *verbs(sentence), *labelled(sentence)):
        clear = all(draft.end <= other.start or draft.start >= other.end for other in drafts)
        if clear and not hypothetical(text, draft.start):
            drafts.append(draft)
    return tuple(sorted(drafts, key=lambda draft: draft.start))


def hypothetical(text: str, at: int) -> bool:
    """Whether a target, an expectation or a condition governs what is at a place: its part of the sentence says so
    before it, and nothing measured is named in between."""
    start = 0
    for match in _HALF.finditer(text, 0, at):
        start = match.end() if match[0][0] != "," else match.start()
    part = text[start:at]
    last = last_of(cues.HYPOTHETICAL.finditer(part))
    if last is not None and not cues.ENDS_HYPOTHESIS.search(part, last.end()):
        return True
    if _CONDITION.search(part):
        return True
    if _KEEPS.search(part) and _HEADROOM.match(text, at):
        return True
    return _WOULD_AFTER.match(text, at) is not None


def _extended(draft: StatementDraft, text: str) -> StatementDraft:
    tail = _TAIL.match(text, draft.end)
    return replace(draft, end=tail.end()) if tail else draft


def _judge(
    sentence: Sentence, before: Sentence, quantity: Quantity, drafts: list[StatementDraft]
) -> StatementDraft | None:
    text = sentence.text
    if text[: quantity.start].endswith("=") and quantity.dimension != "percent":
        return None
    match quantity.dimension:
        case "rate" | "flops" | "period":
            return rate(sentence, quantity)
        case "bandwidth":
            return bandwidth(sentence, quantity)
        case "percent" | "ratio" | "points":
            return relative(sentence, before, quantity, drafts)
        case "bytes":
            return size(sentence, before, quantity)
        case "time":
            return duration(sentence, before, quantity, drafts)
        case _:
            return sibling(sentence, quantity, drafts)
