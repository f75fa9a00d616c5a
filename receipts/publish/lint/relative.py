"""Percentages and factors: statements where a metric is the nearest thing that they can be about."""

from __future__ import annotations

import re

from receipts.publish.lint import cues
from receipts.publish.lint.cues import Sentence, nearest
from receipts.publish.lint.quantity import Quantity
from receipts.publish.lint.reading import CARRIED, REACH, direction_of, metric_near, stated
from receipts.publish.lint.statement import Direction, Kind, StatementDraft

_NOUN_OF = re.compile(
    r"\s*of\s+(?:the\s+|its\s+|our\s+|all\s+|a\s+|that\s+|each\s+|every\s+)?([\w-]+(?:\s[\w-]+)?)", re.IGNORECASE
)
_OF_GOOD = re.compile(
    r"(?:same |old |new )?(?:(?:peak|roofline|step|time|wall|iteration|throughput|speed|memory|"
    r"HBM|VRAM|bandwidth|runtime|training|device|GPU|"
    r"forward|backward|kernel|compile|dense|theoretical|total|whole|end|performance|compute)\b|utili)",
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


def relative(
    sentence: Sentence, before: Sentence, quantity: Quantity, drafts: list[StatementDraft]
) -> StatementDraft | None:
    """A percentage, percentage points or a factor as a statement on a metric; None where it is about something else.

    ``drafts`` are the statements before it in the sentence: one right beside it may tell its metric.
    """
    if quantity.dimension == "ratio" and not _is_factor(sentence.text, quantity):
        return None
    metric = _metric(sentence, before, quantity, drafts)
    if metric is None:
        return None
    text, end = sentence.text, quantity.end
    unit = {"percent": "%", "points": "points"}.get(quantity.dimension, "×")
    level = unit == "%" and metric in ("mfu", "utilisation") and _is_level(text, quantity)
    kind: Kind = "reading" if level else "change" if unit == "points" else "ratio"
    if level and quantity.joined == "change":
        kind = "change"
    direction = _relative_direction(text, quantity, text[max(0, quantity.start - 40) : end + 30])
    return stated(quantity, kind, metric, unit, direction)


def _metric(sentence: Sentence, before: Sentence, quantity: Quantity, drafts: list[StatementDraft]) -> str | None:
    """The metric that a percentage or factor is about; None where another quantity stands nearer, or none at all."""
    text, percent = sentence.text, quantity.dimension == "percent"
    metric_away, metric = metric_near(sentence, before, quantity)
    # A signed percentage is a difference; shapes and degrees beside it are what was changed.
    about = cues.OTHER_QUANTITY if quantity.signed else cues.OTHER
    other_away, _ = nearest(sentence, quantity.start, quantity.end, about)
    of = _NOUN_OF.match(text, quantity.end) if percent else None
    if of and not _OF_GOOD.match(of[1]):
        return None
    if of and metric_away > REACH:
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
    """Whether a number stands right behind a statement, signed or in brackets: `98k tok/s (+13 %)`."""
    signed = quantity.signed or text[quantity.start - 1 : quantity.start] == "("
    return quantity.start - last.end <= 14 and signed


def _is_level(text: str, quantity: Quantity) -> bool:
    """Whether a percentage of the peak is a reading (`at 46 % MFU`) and not a change of one (`46 % higher MFU`)."""
    return (
        not quantity.signed
        and not re.search(
            r"\b(?:by|higher|lower|more|less)\W*$|^\s?(?:higher|lower|more|less|better|improvement)",
            text[max(0, quantity.start - 8) : quantity.start],
        )
        and not re.match(r"\s?(?:higher|lower|more|less|better|faster|slower|improvement)", text[quantity.end :])
    )


def _relative_direction(text: str, quantity: Quantity, near: str) -> Direction:
    if quantity.signed:
        return "down" if quantity.values[0] < 0 else "up"
    after = text[quantity.end : quantity.end + 24]
    for piece in (after, near):
        direction = direction_of(piece)
        if direction != "none":
            return direction
    return "none"


def _is_factor(text: str, quantity: Quantity) -> bool:
    """Whether `×`, `x`, `-fold` or `times` makes a factor here, and no count of cards or a size."""
    if _AFTER_RATIO.match(text, quantity.end):
        return False
    if quantity.unit.lower() == "times":
        return _COMPARED.match(text, quantity.end) is not None
    return True
