"""What a page states: a number about speed, memory or fit, with its place and what it means.

Numbers have units as people write them in prose: `98k tok/s`, `2.6 s/step`, `1.3×`, `from 3018 ms to 2664 ms`. What a
digit and a unit mean is `receipts.base.units`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from receipts.base.units import LETTERS, SCALES, UNSIGNED, factor, half_place, plain
from receipts.stats.rounding import Interval

Kind = Literal["reading", "change", "ratio", "fit"]
# `better` and `worse` say of a rate that it rose, and of a time or of memory that it fell.
Direction = Literal["up", "down", "better", "worse", "equal", "level", "none"]
# What the words before a number leave open: `at least`, `at most`, `up to`. With `about` its rounding is wider.
Bound = Literal["", "least", "most", "reach", "about"]
# Below no change a bound is one above it of the size: `at least −3 %` is at most 3 % down.
MIRRORED: Final[dict[Bound, Bound]] = {"least": "most", "most": "least"}

# A linked number of which the sentence names no metric that a receipt has.
UNNAMED: Final = "unnamed"


@dataclass(frozen=True, slots=True)
class NamedReceipt:
    """A receipt or claim that a page names beside a number.

    ``receipts`` holds one id (a reading) or two (baseline, candidate); ``claim`` is empty unless a claim is named.
    """

    target: str
    receipts: tuple[str, ...] = ()
    claim: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Statement:
    """A number about speed, memory or fit, with what it means and where it stands.

    ``reading`` is a value in ``unit``; ``change`` two values (before, after), or one that was added or saved;
    ``ratio`` a factor (unit ``×``) or a percentage (unit ``%``); ``fit`` says that a shape fits, or does not (its
    value, where it has one, is the shape's number or the limit). ``halves`` are half the last printed digit of each
    value, in the same unit; ``bound`` says which side of the values is open. ``contradiction`` is what the figures
    beside it give instead.

    ``start`` and ``end`` count the characters of the readable text, or of cell ``cell`` of a row. The page fills in the
    rest: ``line`` and ``column`` count from 1, ``order`` names what ranks its MFU (`receipts.plugins.lint.page`),
    and ``about`` has the words that name its lane.
    """

    start: int
    end: int
    kind: Kind
    metric: str
    values: tuple[float, ...] = ()
    unit: str = ""
    direction: Direction = "none"
    halves: tuple[float, ...] = field(default=(), repr=False)
    bound: Bound = ""
    contradiction: str = ""
    cell: int = 0
    link: NamedReceipt | None = None
    order: str = ""
    about: str = field(default="", repr=False)
    ignored: str = ""
    text: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Each value with its rounding, in the printed unit."""
        return tuple(Interval.around(*one) for one in zip(self.values, self.halves, strict=True))

    @property
    def place(self) -> str:
        """``file:line:column``."""
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class PageRemark:
    """A note on the page itself: an ignore without a reason, or a link to no number."""

    file: str
    line: int
    column: int
    text: str
    do: str


_EACH = r"(?:\s?(?:/|per\s|a\s|each\s)\s?(?:GPU|chip|device|card|rank|accelerator|core|node|die)s?)?"
_PER = r"\s?(?:/|per\s|an?\s|each\s)\s?"
_COUNTED = r"samples?|sequences?|seqs?|images?|imgs?|examples?|iterations?|iters?|its?|steps?"
_TIME = r"(?:ms|µs|μs|us|ns|s|secs?|seconds?|milliseconds?|microseconds?|mins?|minutes?|h|hrs?|hours?)"
_UNITS: Final = {
    "rate": rf"(?:(?:tokens?|toks?|tk){_EACH}{_PER}(?:seconds?|secs?|s)\b{_EACH}|(?:tps|wps|tgs)\b{_EACH}"
    rf"|(?:{_COUNTED}){_PER}(?:seconds?|secs?|s)\b)",
    "flops": r"(?:[GTPE]|giga|tera|peta|exa)\s?flop(?:s?\s?/\s?s(?:ec)?\b|s?\sper\ssecond|s)"
    rf"(?!\w)(?!\s?(?:/|per|a)\s?(?:tok|step|byte|layer|sample|forward|param)){_EACH}",
    "bandwidth": r"(?:[kMGTP]i?[Bb]|gigabytes|terabytes)(?:/s(?:ec)?\b|ps\b|\sper\ssecond)",
    "period": rf"{_TIME}{_PER}(?:optimizer\s)?(?:steps?|iterations?|iters?|its?)\b",
    "bytes": r"(?:[kKMGTP]i?B|G|(?:kilo|mega|giga|tera)bytes?|gigs?)(?![\w/])",
    "time": rf"{_TIME}(?![\w/])",
    "points": r"(?:%\s?points?|percentage\spoints?|points?|pp)\b",
    "percent": r"(?:%|percent\b|per\s?cent\b|pct\b)",
    "ratio": r"(?:×|[xX](?![\w])|-?fold\b|times\b)",
}
UNIT: Final = "|".join(f"(?P<{name}>{text})" for name, text in _UNITS.items())
# One word may stand before a rate's unit: `779 model TFLOP/s`, `5,215 decode tok/s`.
_NO_KIND = r"(?!(?:and|at|for|gives?|in|of|on|reach\w*|the|to|with|x)\s)"
_KIND = rf"(?:{_NO_KIND}[a-z][a-z-]+\s(?={_UNITS['rate']}|{_UNITS['flops']}))?"
_SCALE = r"(?:[kKM](?![A-Za-z])|\s(?:thousand|million|billion)\b|\s[kM](?=\s?tok))"
_QUANTITY: Final = re.compile(
    r"(?=[\d.+\-−–±~≈])(?:(?<![\w$€£#@\\.,])(?<![\w.,%)][.,/−–-])(?<![\d.,%)]:)|(?<=\d)(?=±))"
    rf"(?P<sign>\+/?[-−]\s?|±\s?|[+\-−–]|~|≈)?(?P<a>{UNSIGNED})(?P<plus>\+)?(?P<scale>{_SCALE})?"
    rf"(?:\s?(?:-|–|—|~)\s?(?P<b>{UNSIGNED})(?P<scale_b>{_SCALE})?(?=\s?-?(?:{'|'.join(_UNITS.values())})))?"
    rf"(?:\s?-?{_KIND}(?:{UNIT}))?(?![\d]|[.,]\d|[A-Za-z_])",
    re.IGNORECASE,
)
SOFT: Final = (
    r"(?:(?:about|around|roughly|approximately|nearly|almost|some|only|just|barely|slightly|well|further|over|under|"
    r"up\sto|a\s(?:bit|little)|(?:(?:no|not)\s)?(?:more|less|fewer)\sthan|at\s(?:least|most)|as\smuch\sas|another|an?|"
    r"the|full|whole|factor\sof|[~≈])\s?)*"
)
_JOIN: Final = re.compile(
    rf"\s?(?:(?P<arrow>→|-->?|=>|⇒|➜)|(?P<to>\b(?:(?:down|up)\s)?to\b)|(?P<both>\band\b)|[,(]?\s?(?P<back>\b(?:(?:down|"
    r"up)\sfrom|from|vs\.?|versus|instead\sof|rather\sthan|against|compared\s(?:with|to)|over)))"
    rf"\s?{SOFT}",
    re.IGNORECASE,
)
_FROM: Final = re.compile(rf"\bfrom\s{SOFT}$", re.IGNORECASE)
_BETWEEN: Final = re.compile(rf"\bbetween\s{SOFT}$", re.IGNORECASE)
_BY: Final = re.compile(rf"\b(?:by|up|down)\s{SOFT}$", re.IGNORECASE)
_BOUNDS: Final = re.compile(
    r"(?:(?P<least>at\sleast|(?:no|not)\s(?:less|fewer)\sthan|more\sthan|above|exceed(?:s|ed|ing)|(?<![-=])>=?|≥|"
    r"(?<![%×x\d]\s)(?<!\w(?:nt|up|in|on)\s)over)|(?P<most>at\smost|(?:no|not)\smore\sthan|(?:never|not|n['’]t)\s"
    r"(?:\w+\s){0,2}(?:more\sthan|above|over|exceed\w*)|(?:less|fewer)\sthan|under|below|<=?|≤)"
    r"|(?P<reach>up\sto|as\s(?:much|high|low|many)\sas)|(?P<about>about|around|roughly|approximately|some|nearly|almost|"
    r"close\sto|(?:just|slightly|a\slittle)\s(?:over|under|above|below|more\sthan|less\sthan)|[~≈]))\s?(?:an?\s)?$",
    re.IGNORECASE,
)
# How a bound's words end: most numbers have none before them.
_BOUND_ENDS: Final = (
    *("than", "least", "most", "above", "over", "under", "below", "to", "as", "an", "a", "some", "about", "around"),
    *("roughly", "approximately", "nearly", "almost", "exceed", "exceeds", "exceeded", "exceeding", *"<>=≤≥~≈"),
)
_HUGE: Final = re.compile(r"[eE][+-]?\d{3}|\d{300}")  # no float, and no measurement
_ABOUT: Final = 0.05  # of the number: what "about" allows at most
QUALIFIED: Final = ("±", "+/-", "+-", "+/−")


@dataclass(frozen=True, slots=True)
class Quantity:
    """One or two printed numbers of one unit; ``joined`` says how two are joined: ``change``, ``range`` or nothing.

    Of a change the earlier value is first, however it is written. ``bound`` is the side that the words before it leave
    open.
    """

    start: int
    end: int
    values: tuple[float, ...]
    halves: tuple[float, ...]
    dimension: str
    unit: str
    joined: str = ""
    signed: bool = False
    bound: Bound = ""


def quantities(text: str, breaks: tuple[int, ...] = ()) -> Iterator[Quantity]:
    """Every number of a text with its unit, in order; numbers of one unit that words join come as one.

    No two are joined across one of ``breaks``, the ends of links.
    """
    last: Quantity | None = None
    for match in _QUANTITY.finditer(text):
        if _HUGE.search(match[0]):
            continue
        one = _printed(text, match)
        joined = _joined(text, last, one) if last and not any(last.end <= at <= one.start for at in breaks) else None
        if last is not None and joined is None:
            yield last
        last = joined or one
    if last is not None:
        yield last


def _printed(text: str, match: re.Match[str]) -> Quantity:
    dimension = match.lastgroup if match.lastgroup in _UNITS else "none"
    sign = (match["sign"] or "").strip()
    near = text[max(0, match.start() - 24) : match.start()]
    before = _BOUNDS.search(near) if near.rstrip().lower().endswith(_BOUND_ENDS) else None
    bound: Bound = "least" if match["plus"] else before.lastgroup if before else ""  # type: ignore[assignment]
    bound = "about" if sign in ("~", "≈") else bound
    printed = [(match["a"], match["scale"] or match["scale_b"] or ""), (match["b"], match["scale_b"] or "")]
    pairs = [_value(number, scale, about=bound == "about") for number, scale in printed if number]
    low = -1.0 if sign in ("-", "−", "–") else 1.0
    return Quantity(
        match.start(),
        match.end(),
        (low * pairs[0][0], *(value for value, _ in pairs[1:])),
        tuple(half for _, half in pairs),
        dimension,
        match[dimension].strip() if dimension != "none" else "",
        joined="range" if len(pairs) == 2 else "",
        signed=sign not in ("", "~", "≈"),
        bound=bound,
    )


def _value(number: str, scale: str, *, about: bool) -> tuple[float, float]:
    """A printed number and half its last digit; the trailing zeros of an approximate one are not digits, up to 5 %.

    Somebody who says `about 15` counts in fives.
    """
    digits, word = plain(number), scale.strip()
    size = SCALES[word.upper() if len(word) == 1 else word.lower()]
    value, half = float(digits) * size, half_place(digits) * size
    if about:
        rough = 5.0 * half if digits.endswith("5") else half_place(digits, approximate=True) * size
        half = max(half, min(rough, _ABOUT * value))
    return value, half


def _joined(text: str, first: Quantity, second: Quantity) -> Quantity | None:
    """Both numbers as one, where words join them and they share a unit; None otherwise."""
    between, before, behind = text[first.end : second.start], text[: first.start], text[second.end :]
    if text.startswith(QUALIFIED, second.start) and not between.strip() and len(first.values) == 1:
        named = second if first.dimension == "none" else first
        spread = (max(second.values[0] * relative(second.unit, named.unit), *first.halves),)
        return replace(first, end=second.end, halves=spread, dimension=named.dimension, unit=named.unit)
    match = _JOIN.fullmatch(between) if len(between) < 60 else None
    dimensions = {first.dimension, second.dimension} - {"none"}
    single = len(first.values) == len(second.values) == 1
    if match is None or len(dimensions) > 1 or not single or second.signed:
        return None
    trailing, began = second.dimension == "none" and bool(dimensions), bool(_FROM.search(before[-24:]))
    unlike = (
        (trailing and (match["to"] or match["both"] or re.match(r"[\s-]*[A-Za-z\ufffc]", behind)))
        or (match["both"] and not _BETWEEN.search(before[-24:]))
        or ("flops" in dimensions and re.match(r"\s(?:[\w-]+\s)?peak\b", behind))
        # It rose by so much, to so much.
        or (match["to"] and first.dimension not in ("none", "percent", "ratio") and _BY.search(before[-40:]))
        or (not dimensions and not (match["arrow"] or began))
        or (first.dimension == "none" and (before.endswith("=") or (match["back"] and second.dimension == "time")))
    )
    if unlike:
        return None
    named = first if trailing else second
    scale = relative(first.unit, named.unit) if first.unit else 1.0
    a, b = (first.values[0] * scale, first.halves[0] * scale), (second.values[0], second.halves[0])
    earlier, later = (b, a) if match["back"] else (a, b)
    change = match["arrow"] or match["back"] or began or (match["to"] or "to").lower() != "to"
    values, halves = (earlier[0], later[0]), (earlier[1], later[1])
    joined = "change" if change else "range"
    return Quantity(first.start, second.end, values, halves, named.dimension, named.unit, joined, first.signed)


def si(unit: str) -> float | None:
    """Factor of a unit to seconds, bytes or FLOP/s; None if it has none. In prose case says nothing."""
    flops = re.search(r"([gtpe])(?:iga|era|eta|xa)?\s?flop", unit, re.IGNORECASE)
    if flops:
        return 1e18 if flops[1] in "eE" else LETTERS[flops[1].upper()]
    word = re.split(r"[/\s]", unit.lower())[0] if unit else ""
    size = re.fullmatch(r"([kgtp]|m(?=i?b))(i?)b?", word)
    if size or word.startswith("gig"):  # of HBM, XLA prints G for GiB
        return factor(f"{size[1].upper()}{'i' if word == 'g' else size[2]}B" if size else "GB")
    known = factor(word)
    return known if known != 1.0 or re.fullmatch(r"s|secs?|seconds?", word) else None


def relative(unit: str, to: str) -> float:
    """Factor from one unit to another of the same dimension: minutes to seconds is 60."""
    left, right = si(unit), si(to)
    return left / right if left and right else 1.0


def factor_of(statement: Statement) -> float:
    """Factor from the statement's unit to its metric's."""
    if statement.unit in ("%", "points"):
        return 0.01
    if statement.metric == "tflops_per_second_per_chip":
        return (si(statement.unit) or 1e12) / 1e12
    if statement.metric in ("tokens_per_second", "tokens_per_second_per_chip"):
        return 1.0
    return si(statement.unit) or 1.0
