"""Percentages and factors: statements where a metric is the nearest thing that they can be about."""

from __future__ import annotations

import re
from dataclasses import replace

from receipts.plugins.lint import cues
from receipts.plugins.lint.cues import AMOUNTS, COMPARATIVES, NOUNS, Sentence, nearest
from receipts.plugins.lint.quantity import Quantity
from receipts.plugins.lint.reading import (
    ARTICLE,
    CARRIED,
    PERFORMANCE,
    REACH,
    direction_of,
    metric_near,
    sense_of,
    stated,
)
from receipts.plugins.lint.statement import Kind, StatementDraft

_NOUN_OF = re.compile(
    r"\s*of\s+(?:the\s+|its\s+|our\s+|all\s+|a\s+|that\s+|each\s+|every\s+)?([\w-]+(?:\s[\w-]+)?)", re.IGNORECASE
)
_OF_GOOD = re.compile(
    r"(?:same |old |new |per[- ](?:GPU|chip|device) )?"
    r"(?:(?:peak|roofline|step|time|wall|iteration|throughput|speed|memory|"
    r"HBM|VRAM|bandwidth|runtime|training(?=\s(?:time|throughput|speed|memory|step))|device|GPU|"
    r"forward|backward|kernel|compile|dense|theoretical|total|whole|end|performance|compute|baseline|reference|original|"
    r"default|other|previous)\b|utili)",
    re.IGNORECASE,
)
_OF_RATE = re.compile(rf"\s{PERFORMANCE}\b", re.IGNORECASE)  # of one side's: `of BF16 throughput`
_AFTER_RATIO = re.compile(
    rf"\s?-?(?:\d|{cues.HARDWARE_NAME}|(?:larger|bigger|deeper|wider|longer|as (?:many|long as|"
    rf"large|wide|deep)|the (?:size|number|data|batch|parameters|params|length|depth|width|price|"
    rf"cost of))\b)"
)
# What is more or fewer by it is a count, and no metric.
_COUNTED = re.compile(
    r"\s?(?:more|fewer|less)\s(?:\w+\s)?(?:steps?|iterations?|updates?|param\w*|weights|layers|heads|experts|epochs?|data|"
    r"kernels?|launch\w*|lines|GPUs?|chips?|nodes?|"
    r"(?:GPU|TPU|chip)[- ]?hours|flops?(?!\s?/|\sper)|(?:tokens|samples|sequences)(?!\s?/|\sper))\b",
    re.IGNORECASE,
)
_COMPARED = re.compile(rf"\s?(?:the|as|{COMPARATIVES})\b", re.IGNORECASE)
_HIGHER = re.compile(rf"\s?(?:{COMPARATIVES}|improvement)")


# What is behind a share or multiple in words.
_MORE = rf"{AMOUNTS}|as\s(?:much|many|high|low|large)"
_NOUN = re.compile(
    r"\s(?:(?P<fast>as\s(?:fast|quick\w*|slow|efficient)|faster|quicker|slower|speed-?ups?(?!\sin))\b|(?P<long>as\slong)\b"
    rf"|(?:(?:{_MORE})\s|(?:{NOUNS})\s(?:in|of)\s|(?:off\s)?of\s|off\s)?{ARTICLE}(?:(?P<what>{PERFORMANCE})|(?P<time>time))\b)",
    re.IGNORECASE,
)
_CLOSED = re.compile(
    rf"(?:\s(?:{_MORE}|{NOUNS}))?(?:\s?(?:$|[,.;:)\]!])|\s(?:than|at|with|on|for|in|and|but|when|while|after|from|over|"
    r"against|that\sof|of\s(?:what|the\s(?:baseline|original|reference)|its\s(?:former|previous|original)))\b)",
    re.IGNORECASE,
)
_TAKES = re.compile(r"\b(?:takes?|took|needs?|needed|spends?|in|costs?|saves?d?)\s(?:\w+\s){0,2}$", re.IGNORECASE)
_LONGER = re.compile(r"\W?\s?(?:longer|shorter)\b", re.IGNORECASE)
_TIME = re.compile(r"\s?(?:(?:more|less|extra|additional)\s)?time\b", re.IGNORECASE)
_AS_LONG = re.compile(r"\s?as long\b(?! as)", re.IGNORECASE)
_STEPS = re.compile(r"\b(?:steps?|iterations?|epochs?)\s(?:\w+\s){0,3}(?:[~≈]|\W)?$", re.IGNORECASE)
_BY = re.compile(r"\b(?:by|higher|lower|more|less)\W*$|^\s?(?:higher|lower|more|less|better|improvement)")
_METRIC_NOUN = re.compile(rf"\b(?:{PERFORMANCE}|sped\sup|speeds\sup|slow(?:s|ed)\sdown)\b", re.IGNORECASE)
_WITHIN = re.compile(r"\bwithin\s(?:(?:about|roughly|less than)\s|[~≈±<]\s?)?$", re.IGNORECASE)
_SCHEDULE = re.compile(r"\b(?:learning[- ]rates?|LR|warm-?up|anneal\w*|cosine)\b", re.IGNORECASE)
# A share of what a device has: no receipt is held against it.
_OF_DEVICE = re.compile(
    r"\s?of\s(?:(?:the|its|all|available|total|each)\s)*(?:GPU|device|card|chip|HBM|VRAM)(?:'s)?(?:\s(?:memory|HBM|VRAM|capacity))?\b(?!\sof)",
    re.IGNORECASE,
)
# Whose speed it is, where that is only a part of a step: `the optimizer step is 3x faster`.
_FASTER = re.compile(r"\s?-?(?:faster|slower|quicker)\b", re.IGNORECASE)
_PART = re.compile(
    r"(?:^|[,;:(—–]\s?|\b(?:and|but|while|so|that)\s)(?:(?!\b(?:with|of|by|using|from|for|in|on|at|when|without)\b)[^,;:()])*?"
    r"(?P<part>\b[\w-]+(?:\s(?:time|pass|phase|step|kernels?))?)\s(?:is|are|was|were|becomes?|became|gets?|got)\s"
    r"(?:(?:now|about|also|up to|roughly|nearly|almost|around|over|only)\s)*[~≈]?$",
    re.IGNORECASE,
)
_EACH = re.compile(
    r"\bper[- ](?:GPU|chip|device|rank|card)[- ]throughput|\bthroughput per (?:GPU|chip|device|rank|card)\b"
    r"|\btok(?:en)?s?/s(?:ec)?/(?:GPU|chip|device)\b",
    re.IGNORECASE,
)
_SUBJECT = 45  # characters before it


def relative(
    sentence: Sentence, before: Sentence, quantity: Quantity, drafts: list[StatementDraft]
) -> StatementDraft | None:
    """A percentage, percentage points or a factor as a statement on a metric; None where it is about something else.

    ``drafts`` are the statements before it in the sentence: one right beside it may tell its metric.
    """
    if _COUNTED.match(sentence.text, quantity.end):
        return None
    if _of_capacity(sentence.text, quantity, drafts):
        return stated(quantity, "reading", "utilisation", "%")
    lasting = _lasting(sentence.text, quantity)
    if quantity.dimension == "ratio" and not (quantity.worded or lasting or _is_factor(sentence.text, quantity)):
        return None
    of = _worded_metric if quantity.worded else _metric
    metric = "step_seconds" if lasting else of(sentence, before, quantity, drafts)
    if metric is None:
        return None
    text = sentence.text
    if metric == "tokens_per_second" and _EACH.search(text, max(0, quantity.start - 60), quantity.end + 40):
        metric = "tokens_per_second_per_chip"
    unit = {"percent": "%", "points": "points"}.get(quantity.dimension, "×")
    level = unit == "%" and metric in ("mfu", "utilisation") and not quantity.worded and _is_level(text, quantity)
    kind: Kind = "reading" if level else "change" if unit == "points" else "ratio"
    if level and quantity.joined == "change":
        kind = "change"
    return of_ratio(text, quantity, kind, metric, unit)


def of_ratio(
    text: str, quantity: Quantity, kind: Kind, metric: str, unit: str, offset: int = 0
) -> StatementDraft | None:
    """A percentage or factor as a statement with its sense; None for one in words of which the text does not say it."""
    if kind == "change" and len(quantity.values) == 2:
        low, high = quantity.values
        return stated(quantity, kind, metric, unit, "up" if high > low else "down" if high < low else "equal", offset)
    sense = sense_of(text, quantity)
    if sense is None and quantity.worded:
        return None
    if sense == "level" and kind == "ratio":
        share = 0.01 if unit == "%" else 1.0
        values = tuple(value * share for value in quantity.values)
        quantity = replace(quantity, values=values, halves=tuple(half * share for half in quantity.halves))
        return stated(quantity, kind, metric, "×", "down" if values[0] < 1.0 else "up", offset)
    if sense is None or sense == "level":
        near = text[max(0, quantity.start - 40) : quantity.end + 30]
        return stated(quantity, kind, metric, unit, direction_of(near), offset)
    return stated(quantity, kind, metric, unit, sense, offset)


def _of_capacity(text: str, quantity: Quantity, drafts: list[StatementDraft]) -> bool:
    """Whether a percentage is a share of a device's memory: `45.6 GiB (57 %)`, `80 % of GPU memory`."""
    if quantity.dimension != "percent" or quantity.signed or quantity.worded:
        return False
    if drafts and drafts[-1].kind == "reading" and drafts[-1].metric in ("peak_bytes", "peak_reserved_bytes"):
        between, after = text[drafts[-1].end : quantity.start], text[quantity.end : quantity.end + 1]
        if between.strip() == "(" and after == ")":
            return True
    return bool(_OF_DEVICE.match(text, quantity.end)) and not _BY.search(
        text[max(0, quantity.start - 8) : quantity.start]
    )


def _lasting(text: str, quantity: Quantity) -> bool:
    """Whether a step is longer or shorter by it, or takes so many times as long; a context may be longer, too."""
    takes = _AS_LONG.match(text, quantity.end) or _TIME.match(text, quantity.end)
    words = _STEPS if _LONGER.match(text, quantity.end) else _TAKES if takes else None
    return words is not None and words.search(text, 0, quantity.start) is not None


def _worded_metric(sentence: Sentence, before: Sentence, quantity: Quantity, _: list[StatementDraft]) -> str | None:
    """The metric of a share or multiple in words: the noun behind it, or else the subject close before it.

    Words count so much else that nothing farther away speaks for them.
    """
    text = sentence.text
    noun = _NOUN.match(text, quantity.end)
    if noun is None:
        return _subject(sentence, quantity) if _CLOSED.match(text, quantity.end) else None
    if noun["time"]:
        return "step_seconds" if _TAKES.search(text, 0, quantity.start) else None
    cue = cues.METRIC_CUE.search(noun["fast"] or noun["what"] or "")
    return cue.lastgroup if cue else "step_seconds" if noun["long"] else "tokens_per_second"


def _subject(sentence: Sentence, quantity: Quantity) -> str | None:
    """The metric that the words before a quantity name, where none of other things is nearer."""
    start = max(0, quantity.start - _SUBJECT)
    nouns = list(_METRIC_NOUN.finditer(sentence.text, start, quantity.start))
    other, _ = nearest(sentence, quantity.start, quantity.end, cues.OTHER)
    if not nouns or other < quantity.start - nouns[-1].end():
        return None
    cue = cues.METRIC_CUE.search(nouns[-1][0])
    return cue.lastgroup if cue else None


def _metric(sentence: Sentence, before: Sentence, quantity: Quantity, drafts: list[StatementDraft]) -> str | None:
    """The metric that a percentage or factor is about; None where another quantity is nearer, or none at all."""
    text, percent = sentence.text, quantity.dimension == "percent"
    metric_away, metric = metric_near(sentence, before, quantity)
    if quantity.joined == "change" and percent:  # from 41 % to 47 %: a metric that is itself a share
        share_away, share = metric_near(sentence, before, quantity, ("mfu", "utilisation"))
        metric_away, metric = (share_away, share) if share_away < REACH else (metric_away, metric)
    if metric == "mfu" and _SCHEDULE.search(text, max(0, quantity.start - 80), quantity.start):
        return None
    part = (
        _PART.search(text, max(0, quantity.start - 80), quantity.start) if _FASTER.match(text, quantity.end) else None
    )
    cue = cues.METRIC_CUE.match(part["part"]) if part else None
    if cue and cue.lastgroup in ("compile_seconds", "latency_seconds") and not cue[0].endswith("ed"):
        return cue.lastgroup
    # A signed percentage is a difference; shapes and degrees beside it are what was changed.
    about = cues.OTHER_QUANTITY if quantity.signed else cues.OTHER
    other_away, _ = nearest(sentence, quantity.start, quantity.end, about)
    of = _NOUN_OF.match(text, quantity.end) if percent else None
    if of and not (_OF_GOOD.match(of[1]) or _OF_RATE.search(of[1])):
        return _subject(sentence, quantity) if _WITHIN.search(text, 0, quantity.start) else None
    if of and metric_away > REACH and other_away > REACH:
        metric_away, metric = 0, "step_seconds"
    if percent and quantity.signed and metric_away > REACH and other_away > REACH:
        metric_away, metric = 0, "tokens_per_second"
    if drafts and _beside(text, quantity, drafts[-1]):
        return metric if metric_away <= REACH else drafts[-1].metric
    if metric_away > REACH or other_away < metric_away:
        return None
    carried = metric_away >= CARRIED and before.text
    if carried and percent and not quantity.signed and other_away < REACH:
        return None
    return metric


def _beside(text: str, quantity: Quantity, last: StatementDraft) -> bool:
    """Whether a number is right behind a statement, signed or in brackets: `98k tok/s (+13 %)`."""
    signed = quantity.signed or text[quantity.start - 1 : quantity.start] == "("
    return quantity.start - last.end <= 14 and signed


def _is_level(text: str, quantity: Quantity) -> bool:
    """Whether a percentage of the peak is a reading (`at 46 % MFU`) and not a change of one (`46 % higher MFU`)."""
    before = text[max(0, quantity.start - 8) : quantity.start]
    return not (quantity.signed or _BY.search(before) or _HIGHER.match(text, quantity.end))


def _is_factor(text: str, quantity: Quantity) -> bool:
    """Whether `×`, `x`, `-fold` or `times` makes a factor here, and no count of cards or a size."""
    if _AFTER_RATIO.match(text, quantity.end):
        return False
    if quantity.unit.lower() == "times":
        return _COMPARED.match(text, quantity.end) is not None
    return True
