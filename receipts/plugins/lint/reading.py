"""A number as a statement: its kind, its direction, and the word of a metric that is nearest.

A share or a factor says of its metric that it fell by it, rose by it, came to it, or became better or worse. The words
right behind the number decide (`a third less`), then those before it (`fell to half`, `cut by 30 %`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from receipts.plugins.lint import cues
from receipts.plugins.lint.cues import (
    AMOUNTS,
    BETTER,
    CHANGES,
    COMPARATIVES,
    DOWN,
    FASTER,
    SLOWER,
    UP,
    WORSE,
    Sense,
    Sentence,
)
from receipts.plugins.lint.quantity import QUALIFIED, Quantity
from receipts.plugins.lint.statement import Direction, Kind, StatementDraft

PERFORMANCE = (
    r"(?:throughput|speed|tokens? (?:per|a) second|tok/s|step[- ]times?|iteration[- ]times?|"
    r"latency|memory(?: footprint| use| usage)?|"
    r"peak(?: memory)?|MFU|TFLOP/s|compile[- ]times?|compilation(?: time)?|start-?up(?: time)?|"
    r"training time|optimizer step|utili[sz]ation|"
    r"wall[- ]clock(?: time)?|rate|performance|cold start|footprint)"
)
ARTICLE = r"(?:(?:the|our|its|their|training|peak|overall|total|end-to-end|average|median|GPU|device|host)\s){0,3}"
_SENSES: dict[Sense, str] = {
    sense: "|".join(row.every for row in CHANGES if row.sense == sense) for sense in ("better", "worse", "down", "up")
}
_SENSES |= {"worse": rf"{_SENSES['worse']}|costs?", "down": f"{_SENSES['down']}|down", "up": f"{_SENSES['up']}|up"}
_EVERY = "|".join(f"(?P<{sense}>{words})" for sense, words in _SENSES.items())
_VERB = re.compile(rf"(?<![\w-])(?:{_EVERY})(?![\w-])", re.IGNORECASE)
_ADJECTIVES: tuple[tuple[Sense, str], ...] = (
    ("level", r"as\s(?:fast|quick\w*|much|many|high|low|large|efficient|long)"),
    ("down", f"{DOWN.nouns}|{DOWN.comparatives}|{SLOWER.comparatives}|below|off"),
    ("up", f"{UP.nouns}|{UP.comparatives}|{FASTER.nouns}|{FASTER.comparatives}|above"),
    ("better", f"{BETTER.nouns}|{BETTER.comparatives}"),
    ("worse", f"{WORSE.nouns}|{WORSE.comparatives}|{SLOWER.nouns}"),
)
_AFTER = re.compile(
    rf"(?:\*\*|_|\))?[\s-](?:(?:of\s)?{ARTICLE}{PERFORMANCE}\s)?(?:(?P<slow>as\sslow)|"
    + "|".join(f"(?P<s{index}>{words})" for index, (_, words) in enumerate(_ADJECTIVES))
    + r")(?!\w)",
    re.IGNORECASE,
)
_OF = re.compile(
    rf"\s(?:of\s(?!peak\b)|the\s|its\s|our\s){ARTICLE}(?:(?:[\w'’-]+\s)?{PERFORMANCE}|time|baseline|original|reference|"
    r"(?:that|those|what)(?=\s(?:of|with|without|before|on|in|at|it|we)))\b",
    re.IGNORECASE,
)
SOFT = (
    r"(?:(?:about|around|roughly|approximately|nearly|almost|some|only|just|barely|slightly|well|typically|further|"
    r"a\s(?:bit|little)|over|under|up\sto|(?:(?:no|not)\s)?(?:more|less|fewer)\sthan|at\s(?:least|most)|as\smuch\sas|another|an?|the|full|"
    r"whole|factor\sof|[~≈])\s?)*"
)
_BY = re.compile(rf"\b(?:by|of)\s{SOFT}$", re.IGNORECASE)
_TO = re.compile(rf"(?<!\bup\s)\bto\s{SOFT}$", re.IGNORECASE)
_IN = re.compile(r"\bin\s$", re.IGNORECASE)  # cut in half
_WITHIN = re.compile(
    rf"\b(?:within|unchanged\sto|equal\sto|(?:var(?:y|ie[sd])|varying|differ(?:s|ed)?|fluctuat\w+)\sby)\s{SOFT}$",
    re.IGNORECASE,
)
_TAKEN = re.compile(
    rf"\b(?:(?P<down>sav(?:e[sd]?|ing)|shav(?:e[sd]?|ing)|los(?:t|es?|ing)|frees?|freed|cuts?)|(?P<up>adds?|added))\s"
    rf"{SOFT}$|\b(?P<worse>costs?|g[ia]ves?\s(?:up|back)|sacrific\w+|forfeits?|trad(?:es?|ed|ing)|pa(?:ys?|id))\s{SOFT}$",
    re.IGNORECASE,
)
_DIRECT = re.compile(rf"(?<![\w-])(?:{_EVERY})\s{SOFT}$", re.IGNORECASE)
_CLAUSE = re.compile(r"[;:]|,\s(?:and|but|while)\b|\s[—–]\s")
_FAR = 60
_LOSS = re.compile(rf"\)?\s{ARTICLE}{PERFORMANCE}\sloss\b", re.IGNORECASE)
_GONE = re.compile(
    r"[^.;,]{0,30}?\b(?:is|are|was|were)\s(?:gone|saved|lost|eliminated|removed|shaved)\b", re.IGNORECASE
)
_SMALL = 10.0  # 3 % of the throughput is a part of it, and not what is left


def sense_of(text: str, quantity: Quantity) -> Sense | None:
    """The sense of a share or a factor by the words around it; None where they do not say."""
    if text.startswith(QUALIFIED, quantity.start):
        return "equal"
    after = _AFTER.match(text, quantity.end)
    behind = next((sense for index, (sense, _) in enumerate(_ADJECTIVES) if after and after[f"s{index}"]), None)
    if quantity.signed:
        if behind in ("better", "worse") and quantity.values[0] > 0:  # `+4 % improvement` of a time
            return behind
        return "down" if quantity.values[0] < 0 else "up"
    before = _clause(text, quantity.start)
    if _WITHIN.search(before):
        return "equal"
    if after and after["slow"]:
        return "down" if quantity.dimension == "ratio" else None
    if behind is not None:
        return behind
    taken = _TAKEN.search(before)
    if taken:
        return taken.lastgroup  # type: ignore[return-value]  # the groups are senses
    # A word of change among those that soften a number is none of its own: `fell by more than 3 %`.
    by = _BY.search(before)
    if by:
        return _verb(before[: by.start()], text[quantity.end : quantity.end + 12])
    to = _TO.search(before) or (_IN.search(before) if quantity.worded else None)
    if to and _verb(before[: to.start()]) is not None:
        return "level"
    direct = _DIRECT.search(before)
    if direct:
        return direct.lastgroup  # type: ignore[return-value]  # the groups are senses
    if _LOSS.match(text, quantity.end) or (_OF.match(text, quantity.end) and _GONE.match(text, quantity.end)):
        return "down"
    small = quantity.dimension == "percent" and quantity.values[0] < _SMALL
    return "level" if not small and _OF.match(text, quantity.end) else None


def _clause(text: str, end: int) -> str:
    start = max(0, end - _FAR)
    for match in _CLAUSE.finditer(text, start, end):
        start = match.end()
    return text[start:end]


def _verb(before: str, after: str = "") -> Sense | None:
    """The sense of the last verb or noun of change."""
    last = None
    for match in _VERB.finditer(before):
        last = match
    last = last or _VERB.search(after)
    return None if last is None else last.lastgroup  # type: ignore[return-value]  # the groups are senses


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
    if cues.EQUAL_CUE.search(text):
        return "equal"
    down, up = cues.DOWN_CUE.search(text), cues.UP_CUE.search(text)
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
