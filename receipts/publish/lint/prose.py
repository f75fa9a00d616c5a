"""Performance statements in a sentence: which of its numbers speak of speed, memory or fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from receipts.publish.lint import cues
from receipts.publish.lint.amounts import duration, size
from receipts.publish.lint.cues import Sentence
from receipts.publish.lint.phrases import fits, verbs
from receipts.publish.lint.quantity import Quantity
from receipts.publish.lint.rates import bandwidth, labelled, rate, sibling
from receipts.publish.lint.reading import last_of
from receipts.publish.lint.relative import relative
from receipts.publish.lint.statement import StatementDraft
from receipts.publish.lint.worded import in_order

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
