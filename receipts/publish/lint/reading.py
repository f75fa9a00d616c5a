"""A number as a statement: its kind, its direction, and the word of a metric that is nearest."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from receipts.publish.lint import cues
from receipts.publish.lint.change import AMOUNTS, BETTER, COMPARATIVES, FASTER, SLOWER, WORSE
from receipts.publish.lint.cues import Sentence
from receipts.publish.lint.quantity import QUALIFIED, Quantity
from receipts.publish.lint.sense import SOFT, sense_of
from receipts.publish.lint.statement import Direction, Kind, StatementDraft

# How far, in characters, a word may be from the number that it is about.
REACH = 110
# A previous sentence or a heading speaks less for a number than its own sentence does.
CARRIED = 45

# Words before and behind an amount that was added or saved, and is no level.
_CHANGED = re.compile(
    r"(?:\b(?:sav|shav|cut|cost|fre|add|extra|regress|reduc|lost|los)\w*(?: \w+){0,3} (?:by |about |around |roughly |"
    rf"another )*|\b(?:by|up|down) {SOFT})[~≈]?$",
    re.IGNORECASE,
)
# What a colon says the number is of: `Throughput: +8.8 %`.
_LABEL = re.compile(r"([^,;:.|()]{1,50}):[*_\s]*[+−~≈-]?$")
# Before the noun that a number is of: `8 % higher throughput`, `10x faster compilation`.
_NOUN = re.compile(rf"\s?-?(?:(?:{COMPARATIVES})\s)(?!than\b)", re.IGNORECASE)
_COMPARED = re.compile(
    rf"\s(?:(?P<better>{FASTER.comparatives}|{BETTER.nouns})|(?P<worse>{SLOWER.comparatives}|{WORSE.nouns})|{AMOUNTS}"
    r"|reduction|savings?|increase|decrease)\b(?!\sthan\s\d)",
    re.IGNORECASE,
)


def reading(quantity: Quantity, metric: str, text: str) -> StatementDraft:
    """A number with a unit as a statement: a reading of the metric, or a change where the words around it say so."""
    near = text[max(0, quantity.start - 45) : quantity.end + 25]
    compared = _COMPARED.match(text, quantity.end)
    kind: Kind = "change" if quantity.joined == "change" else "reading"
    direction: Direction = direction_of(near)
    if kind == "change" and len(quantity.values) == 2:
        low, high = quantity.values
        direction = "up" if high > low else "down" if high < low else "equal"
    elif kind == "reading" and quantity.signed and not text.startswith(QUALIFIED, quantity.start):
        kind, direction = "change", "down" if quantity.values[0] < 0.0 else "up"
    elif kind == "reading" and (compared or _changed(text, quantity, metric)):
        kind = "change"
        sense = sense_of(text, quantity)
        if compared and compared.lastgroup:
            direction = "better" if compared["better"] else "worse"
        elif sense is not None and sense != "level":
            direction = sense
        quantity = _spanned(quantity)
    return stated(quantity, kind, metric, quantity.unit, direction)


def _changed(text: str, quantity: Quantity, metric: str) -> bool:
    """Whether the words before an amount say that it was added or saved; what a compilation costs is its time."""
    words = _CHANGED.search(text, 0, quantity.start)
    return words is not None and not (metric == "compile_seconds" and words[0].lower().startswith("cost"))


def _spanned(quantity: Quantity) -> Quantity:
    """Two ends of one difference as its middle: `by 120-140 ms` is no `from` and `to`."""
    if len(quantity.values) != 2:
        return quantity
    low, high = sorted(quantity.values)
    return replace(quantity, values=((low + high) / 2,), halves=((high - low) / 2 + max(quantity.halves),))


def stated(
    quantity: Quantity, kind: Kind, metric: str, unit: str, direction: Direction = "none", offset: int = 0
) -> StatementDraft:
    """The statement that a quantity makes, which is behind so many characters."""
    start, end = quantity.start + offset, quantity.end + offset
    return StatementDraft(start, end, kind, metric, quantity.values, unit, direction, quantity.halves, quantity.bound)


def direction_of(text: str) -> Direction:
    """Which way the words of a text point: *equal* before *down* before *up*, since "no slower" holds two of them."""
    if cues.EQUAL.search(text):
        return "equal"
    down, up = cues.DOWN.search(text), cues.UP.search(text)
    if down:
        return "down"
    return "up" if up else "none"


def metric_near(
    sentence: Sentence, before: Sentence, quantity: Quantity, among: tuple[str, ...] = ()
) -> tuple[int, str]:
    """Distance to the nearest word of a metric (``among`` some), and the metric; the sentence before is far away."""
    noun = _NOUN.match(sentence.text, quantity.end)
    direct = cues.METRIC_CUE.match(sentence.text, noun.end()) if noun else None
    if direct is not None and direct.lastgroup != "step_seconds" and (not among or direct.lastgroup in among):
        return 0, direct.lastgroup or ""
    best = (10_000, "")
    label = _LABEL.search(sentence.text, max(0, quantity.start - 60), quantity.start)
    named = last_of(cues.METRIC_CUE.finditer(label[1])) if label else None
    if named is not None and (not among or named.lastgroup in among):
        return 0, named.lastgroup or ""
    for match in sentence.matches(cues.METRIC_CUE):
        away = sentence.distance(quantity.start, quantity.end, match.span())
        if away < best[0] and (not among or match.lastgroup in among):
            best = (away, match.lastgroup or "")
    if best[1]:
        return best
    last = last_of(before.matches(cues.METRIC_CUE))
    return (CARRIED, last.lastgroup or "") if last is not None else (10_000, "")


def last_of(matches: Iterable[re.Match[str]]) -> re.Match[str] | None:
    """The last match; None where there is none."""
    last = None
    for match in matches:
        last = match
    return last
