"""What a claim says of a number, read from the words that people use: "at least 1.10", "about 1.3 ± 5 %", "+13.3 %".

A bound is a closed band. A plain factor and a percentage *faster* or *slower* speak of the improvement (how many
times as good), a signed percentage of the change of the metric itself, and a number with a unit of the value.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from receipts.base.units import read_printed

Of = Literal["improvement", "metric", "value"]
State = Literal["holds", "fails", "open"]

_FORM = re.compile(
    r"""^\s*(?:(?P<form>at\ least|at\ most|about|within|between|≥|>=|≤|<=|~|≈|±)\s*)?
        (?P<number>.+?)
        (?:\s*(?:±|\+/-|\+-)\s*(?P<tolerance>.+?))?\s*$""",
    re.VERBOSE | re.IGNORECASE,
)
_FORMS = {">=": "at least", "≥": "at least", "<=": "at most", "≤": "at most", "~": "about", "≈": "about", "±": "within"}
_WORDS = re.compile(r"\s*\b(faster|slower|less|more|higher|lower)\b\s*$", re.IGNORECASE)
_MINUS = str.maketrans({"−": "-", "–": "-", "\u00a0": " ", "\u202f": " "})
_PER_CENT = re.compile(r"\b(?:per ?cent|pct)\b", re.IGNORECASE)
_POINTS = re.compile(r"pp\b|%?[ -]?(?:pts?|points?)\b")
_WORSE, _MORE, _LESS = ("slower",), ("more", "higher"), ("less", "lower")
EXAMPLES = '"at least 1.10", "about 1.3 ± 5 %", "+13.3 %", "10 % faster", "within ±1 %", "at most 115 GiB"'


@dataclass(frozen=True, slots=True)
class Bound:
    """The claim holds where the number lies in ``low`` to ``high``, both ends in; either may be infinite or zero.

    ``of`` says which number: the *improvement* of candidate over baseline, the ratio of the *metric* itself, or the
    candidate's *value* in the metric's own unit (bytes, fraction, seconds, tokens a second).
    """

    low: float
    high: float
    of: Of
    text: str

    def judge(self, low: float, high: float) -> State:
        """Hold an interval against the band: inside it *holds*, wholly outside it *fails*, else it is *open*."""
        if low >= self.low and high <= self.high:
            return "holds"
        return "fails" if high < self.low or low > self.high else "open"


class NotABound(ValueError):
    """The words do not state a bound; the text says why."""


def read(text: str, *, share: bool = False) -> Bound:
    """Read a bound. ``share`` marks a metric that is itself a percentage (MFU): there "29.2 %" is a value.

    Raises NotABound.
    """
    match = _FORM.match(_plain(text))
    if match is None:
        raise NotABound(f"it says nothing; write {EXAMPLES}")
    form = (match["form"] or "").lower()
    form = _FORMS.get(form, re.sub(r"\s+", " ", form)) or "about"
    number, tolerance = match["number"], match["tolerance"]
    if form == "within":
        if tolerance is not None:
            raise NotABound('write "within ±1 %"')
        printed = read_printed(number.lstrip("±+ "))
        if printed is None or not 0.0 < printed.value < 1.0 or not printed.unit.startswith("%"):
            raise NotABound(f'"within" takes a percentage: "within ±1 %", and not {number!r}')
        return Bound(1.0 / (1.0 + printed.value), 1.0 + printed.value, "metric", text)
    if form == "between":
        first, separator, second = number.partition(" and ")
        if not separator or tolerance is not None:
            raise NotABound('write "between 1.06 and 1.27"')
        (low, _, of), (high, _, other) = _number(first, share), _number(second, share)
        if of != other:
            raise NotABound("both ends must be of one kind: two factors, two percentages or two values with a unit")
        return Bound(min(low, high), max(low, high), of, text)
    center, half, of = _number(number, share)
    if tolerance is not None:
        if form != "about":
            raise NotABound(f"a tolerance belongs to *about*: {EXAMPLES}")
        half = _tolerance(tolerance, center, of)
    worse = re.search(r"\b(slower|less|lower)\b", text, re.IGNORECASE) is not None
    # "At least 10 % slower" bounds the ratio from above: 0.90 or below.
    if form in ("at least", "at most") and worse and of != "value":
        form = "at most" if form == "at least" else "at least"
    if form == "at least":
        return Bound(center, math.inf, of, text)
    if form == "at most":
        return Bound(0.0, center, of, text)
    return Bound(center - half, center + half, of, text)


def unit_of(text: str) -> str:
    """The unit behind the first number of a bound: `GB` of `at least 140 GB`; empty if there is none."""
    match = _FORM.match(_plain(text))
    number = match["number"].partition(" and ")[0] if match is not None else ""
    printed = read_printed(number)
    return printed.unit if printed is not None else ""


def difference(text: str) -> str | None:
    """Why an effect is a difference (`+13 ± 2 %`, `-3 GiB`, `0.3 pp`), which no number is held against; else None.

    It is asked of claims that are new: one that a store keeps reads as it was judged.
    """
    match = _FORM.match(_plain(text))
    printed = read_printed(match["number"]) if match is not None else None
    if match is None or printed is None:
        return None
    if _POINTS.match(printed.unit.lower()):
        return f"{text!r} is a difference of points; write the value itself, or the change in per cent"
    if match["number"].strip()[:1] in ("+", "-") and not printed.unit.startswith("%"):
        return f"{text!r} is a difference; write it in per cent (+13 % ± 2 %), or the value or the factor itself"
    return None


def _plain(text: str) -> str:
    return _PER_CENT.sub("%", text.translate(_MINUS))


def _number(text: str, share: bool) -> tuple[float, float, Of]:
    """A number, half its last printed digit, and what it speaks of."""
    text = text.strip()
    word = _WORDS.search(text)
    sense = word[1].lower() if word else ""
    bare = text[: word.start()] if word else text
    printed = read_printed(bare)
    if printed is None:
        raise NotABound(f"{text!r} is not one number; write {EXAMPLES}")
    unit = printed.unit.lower()
    of: Of = "metric" if sense in (*_MORE, *_LESS) else "improvement"
    down = sense in (*_WORSE, *_LESS)
    if unit.startswith("%"):
        if sense:
            return (1.0 - printed.value if down else 1.0 + printed.value), printed.half, of
        if bare.strip()[:1] in ("+", "-"):
            return 1.0 + printed.value, printed.half, "metric"
        if share:
            return printed.value, printed.half, "value"
        per_cent = f"{printed.mantissa:g} %"
        raise NotABound(f"{per_cent} of what: write +{per_cent}, or {per_cent} faster")
    if unit in ("", "x", "×", "times"):
        if printed.value <= 0.0:
            raise NotABound("a factor is more than zero")
        if down:
            low, high = 1.0 / (printed.value + printed.half), 1.0 / max(printed.value - printed.half, 1e-12)
            return 1.0 / printed.value, (high - low) / 2.0, of
        return printed.value, printed.half, of
    if sense:
        raise NotABound(f"{text!r}: say by which factor or by how many per cent it is {sense}")
    return printed.value, printed.half, "value"


def _tolerance(text: str, center: float, of: Of) -> float:
    printed = read_printed(text)
    if printed is None or printed.value < 0.0:
        raise NotABound(f"the tolerance {text!r} is not one number; write ± 5 %")
    if printed.unit.startswith("%"):
        return abs(center) * printed.value
    if of == "value" and printed.scale == 1.0 and not printed.unit:
        raise NotABound(f"give the tolerance {text!r} its unit, or write it in per cent")
    return printed.value
