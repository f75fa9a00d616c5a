"""What a share or a factor says of its metric: that it fell by it, rose by it, came to it, or became better or worse.

The words right behind the number decide (`a third less`), then those before it (`fell to half`, `cut by 30 %`).
"""

from __future__ import annotations

import re

from receipts.publish.lint.change import BETTER, CHANGES, DOWN, FASTER, SLOWER, UP, WORSE, Sense
from receipts.publish.lint.quantity import QUALIFIED, Quantity

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
