"""Numbers with units as people write them in prose: `98k tok/s`, `2.6 s/step`, `1.3×`, `from 3018 ms to 2664 ms`.

Shares and multiples may be words: `two thirds`, `twice`, `three times`, `twofold`, `an order of magnitude`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from receipts.base.units import BYTES, LETTERS, SCALES, SECONDS, half_place, plain
from receipts.plugins.lint.statement import Bound

Dimension = str  # rate, flops, bandwidth, period, bytes, time, percent, ratio, none

_EACH = r"(?:\s?(?:/|per\s|a\s|each\s)\s?(?:GPU|chip|device|card|rank|accelerator|core|node|die)s?)?"
_PER = r"\s?(?:/|per\s|an?\s|each\s)\s?"
_SECOND = r"(?:seconds?|secs?|s)\b"
_STEP = r"(?:steps?|iterations?|iters?|its?|batch(?:es)?|call|microbatch|optimizer step|token)\b"
_UNITS = (
    (
        "rate",
        rf"(?:(?:tokens?|toks?|tk){_EACH}{_PER}{_SECOND}{_EACH}|(?:tps|wps|tgs)\b{_EACH}|"
        rf"(?:samples?|sequences?|seqs?|images?|imgs?|examples?|iterations?|iters?|its?|"
        rf"steps?){_PER}{_SECOND}{_EACH})",
    ),
    (
        "flops",
        r"(?:[GTPE]|giga|tera|peta|exa)\s?flop(?:s?\s?/\s?s(?:ec)?\b|s?\sper\ssecond|s)?"
        rf"(?!\w)(?!\s?(?:/|per|a)\s?(?:tok|step|byte|layer|sample|forward|param)){_EACH}",
    ),
    ("bandwidth", r"(?:[kMGTP]i?[Bb]|gigabytes|terabytes)(?:/s(?:ec)?\b|ps\b|\sper\ssecond)"),
    ("period", rf"(?:ms|µs|μs|us|s|sec|secs|seconds?|milliseconds|minutes?|min){_PER}{_STEP}"),
    ("bytes", r"(?:[kKMGTP]i?B|(?:kilo|mega|giga|tera)bytes?|gigs?)(?![\w/])"),
    (
        "time",
        r"(?:ms|µs|μs|us|ns|s|secs?|seconds?|milliseconds?|microseconds?|mins?|minutes?|h|hrs?|"
        r"hours?)(?![\w/])",
    ),
    ("percent", r"(?:%|percent\b|per\s?cent\b|pct\b)(?!\s?(?:age\s)?points?\b)"),
    ("points", r"(?:%\s?points?|percentage\spoints?|points?|pp)\b"),
    ("ratio", r"(?:×|[xX](?![\w])|-?fold\b|times\b)"),
)
_UNIT = (
    r"(?:(?:model|training|total|overall|aggregate|achieved|effective)\s)?(?:"
    + "|".join(f"(?P<{{side}}{name}>{text})" for name, text in _UNITS)
    + ")"
)
_ANY = "|".join(text for _, text in _UNITS)
# `12,5 %` is twelve and a half where a unit follows, `16 789` one number, and `4 096` may be two.
_NUMBER = (
    r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:[\u00a0\u2009\u202f]\d{3})+|[1-9]\d{1,2}(?: \d{3})+(?![\d.,])"
    rf"|\d+,\d{{1,2}}(?=[kM]?[\s\u00a0\u202f]?-?(?:{_ANY}))|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)"
)
_SCALE = r"(?:[kKM](?![A-Za-z])|\s(?:thousand|million|billion)\b|\s[kM](?=\s?tok))"
_SOFT = r"(?:(?:under|about|roughly|around|only|just|over|nearly|almost|some|below|above)\s|~\s?|≈\s?)?"
_CHANGE = (
    r"\s?(?:→|->|-->|=>|⇒|➜)\s?|\s(?:down\sto|up\sto|to|vs\.?|versus|instead\sof|against|"
    r"compared\s(?:with|to)|over)\s"
)
_RANGE = r"\s?[–—]\s?|-|~(?=\d)|\sto\s|\sand\s"


def _units(side: str) -> str:
    return _UNIT.replace("{side}", side)


QUANTITY = re.compile(
    rf"(?:(?<![\w$€£#@\\])(?<![\w.][.,/:\-])|(?<=\d)(?=±))(?P<sign>(?:\+/?[-−]|[+\-−–±])\s?)?(?P<a>{_NUMBER})(?P<plus>\+)?(?P<scale_a>{_SCALE})?"
    rf"(?:[\s\u00a0\u202f]?-?(?:{_units('a_')}))?"
    rf"(?:(?:(?P<change>{_CHANGE})|"
    rf"(?P<range>{_RANGE})){_SOFT}(?P<sign_b>[+\-−]\s?)?(?P<b>{_NUMBER})(?P<scale_b>{_SCALE})?"
    rf"(?:[\s\u00a0\u202f]?-?(?:{_units('b_')}))?)?"
    r"(?![\d]|\.\d|[A-Za-z_])",
    re.IGNORECASE,
)
_SIMPLE = re.compile(
    rf"(?:(?<![\w$€£#@\\])(?<![\w.][.,/:\-])|(?<=\d)(?=±))(?P<sign>(?:\+/?[-−]|[+\-−–±])\s?)?(?P<a>{_NUMBER})(?P<plus>\+)?(?P<scale_a>{_SCALE})?"
    rf"(?:[\s\u00a0\u202f]?-?(?:{_units('a_')}))?(?![\d]|\.\d|[A-Za-z_])",
    re.IGNORECASE,
)
_NAMES = tuple(name for name, _ in _UNITS)
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d{1,2}$)")
# A unit that stands before its number: `step time (ms): 812`.
_HEADED = re.compile(rf"\((?:in\s)?{_UNIT.replace('{side}', 'a_')}\)[*_]*\s?[:=][*_]*\s?$", re.IGNORECASE)

QUALIFIED = ("±", "+/-", "+-", "+/−")


_BOUNDS = re.compile(
    r"(?:(?P<least>at\sleast|(?:no|not)\s(?:less|fewer)\sthan|more\sthan|above|exceed(?:s|ed|ing)|upwards\sof|(?<![-=])>=?|≥|"
    r"(?<![%×x\d]\s)(?<!\w(?:nt|up|in|on)\s)over)"
    r"|(?P<most>at\smost|(?:no|not)\smore\sthan|(?:never|not|n['’]t)\s(?:\w+\s){0,2}(?:more\sthan|above|over|exceed\w*)|(?:less|fewer)\sthan|under|below|<=?|≤)"
    r"|(?P<reach>up\sto|as\s(?:much|high|low|many)\sas)"
    r"|(?P<about>about|around|roughly|approximately|approx\.|circa|ca\.|some|nearly|almost|close\sto|"
    r"(?:just|slightly|a\slittle)\s(?:over|under|above|below|more\sthan|less\sthan)|[~≈∼≃]))\s?(?:an?\s)?$",
    re.IGNORECASE,
)
_SOFTENED = re.compile(r"[~≈]|\b(?:about|around|roughly|nearly|almost|some)\b", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s(?:about\s|roughly\s|[~≈]\s?)?$", re.IGNORECASE)
_FROM = re.compile(
    r"\bfrom\s(?:(?:about|around|roughly|approximately|nearly|almost|some|just|over|under|above|below|an?|the)\s|[~≈]\s?)*$",
    re.IGNORECASE,
)
_DIFFERENCE = re.compile(
    r"\b(?:by|up|down)\s(?:(?:about|around|roughly|nearly|almost|some|just|over|under|another|an?)\s|[~≈]\s?)*$",
    re.IGNORECASE,
)
_ABOUT = 0.05  # of the number: what "about" allows at most


def bound_before(text: str, start: int) -> Bound:
    """Which side of a number is open, by the words before it: `at least`, `under`, `up to`, `about`."""
    match = _BOUNDS.search(text, max(0, start - 24), start)
    return (match.lastgroup or "") if match else ""  # type: ignore[return-value]  # the groups are the bounds


@dataclass(frozen=True, slots=True)
class Quantity:
    """One or two printed numbers of one unit; ``joined`` says how two are joined: ``change``, ``range`` or nothing.

    ``bound`` is the side that the words before it leave open, and ``worded`` marks a share or multiple in words.
    """

    start: int
    end: int
    values: tuple[float, ...]
    halves: tuple[float, ...]
    dimension: Dimension
    unit: str
    joined: str
    signed: bool
    scaled: bool
    bound: Bound = ""
    worded: bool = False


def quantities(text: str) -> Iterator[Quantity]:
    """Every number of a text with its unit, in order. Numbers of one unit that are joined come as one."""
    last: Quantity | None = None
    for quantity in _each(text):
        if (
            last is not None
            and text.startswith(QUALIFIED, quantity.start)
            and not text[last.end : quantity.start].strip()
        ):
            last = _qualified(last, quantity)
            continue
        if last is not None:
            yield last
        last = quantity
    if last is not None:
        yield last


def _each(text: str) -> Iterator[Quantity]:
    position = 0
    while match := QUANTITY.search(text, position):
        quantity = _joined(match, text) or _one(match, text)
        position = max(quantity.end, match.start() + 1)
        yield quantity


def _qualified(stated: Quantity, spread: Quantity) -> Quantity:
    """A number with what is stated around it: `512 ± 3 ms`."""
    named = spread if stated.dimension == "none" else stated
    factor = _relative(spread.unit, named.unit) if spread.dimension == named.dimension else 1.0
    halves = tuple(max(half, spread.values[0] * factor) for half in stated.halves)
    return replace(stated, end=spread.end, halves=halves, dimension=named.dimension, unit=named.unit)


def _unit(match: re.Match[str], side: str) -> tuple[str, str]:
    for name in _NAMES:
        unit = match[f"{side}_{name}"]
        if unit is not None:
            return name, unit.strip()
    return "none", ""


def _joined(match: re.Match[str], text: str) -> Quantity | None:
    """Both numbers as one, where they share a unit; the second's unit holds for both."""
    if match["b"] is None:
        return None
    name_a, unit_a = _unit(match, "a")
    name_b, unit_b = _unit(match, "b")
    if name_b == "none" or name_a not in ("none", name_b):
        return None
    if (match["range"] or "").strip().lower() == "and" and not _BETWEEN.search(text, 0, match.start()):
        return None
    change = match["change"]
    if change and name_b == "flops" and text[match.end() :].lstrip().startswith("peak"):
        return None
    if name_a == "none" and change and ((name_b == "time" and "over" in change) or text[: match.start()].endswith("=")):
        return None
    scale_b = match["scale_b"] or ""
    scale_a = match["scale_a"] or (scale_b if name_a == "none" else "")
    started = _FROM.search(text, max(0, match.start() - 24), match.start()) is not None
    ranged = match["range"] is not None or (change is not None and change.strip() == "to" and not started)
    if match["range"] is not None and match["sign"] and name_a != "none":
        return None
    # It rose by so much, to so much.
    if (
        ranged
        and change
        and unit_a
        and name_b not in ("percent", "ratio")
        and _DIFFERENCE.search(text, 0, match.start())
    ):
        return None
    about = _SOFTENED.search(match[0]) is not None or bound_before(text, match.start()) == "about"
    a, half_a = _value(match["a"], scale_a, match["sign"], approximate=about)
    b, half_b = _value(match["b"], scale_b, match["sign_b"], approximate=about)
    factor = _relative(unit_a, unit_b) if unit_a else 1.0
    return Quantity(
        match.start(),
        match.end(),
        (a * factor, b),
        (half_a * factor, half_b),
        name_b,
        unit_b,
        "range" if ranged else "change",
        bool(match["sign"]),
        bool(scale_b.strip()),
    )


# In prose, where case says nothing; of FLOP/s the first letter does.
_FACTORS = {name.lower(): value for name, value in (SECONDS | BYTES).items()} | {"gig": 1e9, "gigs": 1e9}
_WORD = re.compile(r"[a-zµμ]+")


def si(unit: str) -> float | None:
    """Factor of a unit to seconds, bytes or FLOP/s; None where it has none."""
    lower = unit.lower()
    word = _WORD.match(lower)
    name = word[0] if word else lower
    if "flop" in lower:
        return 1e18 if lower[0] == "e" else LETTERS[lower[0].upper()]
    return _FACTORS.get(name)


def _relative(unit: str, to: str) -> float:
    """Factor from one unit to another of the same dimension: minutes to seconds is 60."""
    left, right = si(unit), si(to)
    return left / right if left and right else 1.0


def _value(number: str, scale: str, sign: str | None, *, approximate: bool = False) -> tuple[float, float]:
    """A printed number and half its last digit; of an approximate one its zeros at the end are no digits, up to 5 %.

    Somebody who says `about 15` counts in fives.
    """
    digits, word = plain(_DECIMAL_COMMA.sub(".", number)), scale.strip()
    factor = SCALES[word.upper() if len(word) == 1 else word.lower()]
    value, half = float(digits) * factor, half_place(digits) * factor
    if approximate:
        rough = 5.0 * half if digits.endswith("5") else half_place(digits, approximate=True) * factor
        half = max(half, min(rough, _ABOUT * value))
    return (-value if sign and sign.strip() in ("-", "−", "–") else value), half


def _one(match: re.Match[str], text: str) -> Quantity:
    alone = _SIMPLE.match(text, match.start()) or match
    name, unit = _unit(alone, "a")
    scale = alone["scale_a"] or ""
    head = _HEADED.search(text, max(0, alone.start() - 40), alone.start()) if name == "none" else None
    if head is not None:
        name, unit = _unit(head, "a")
    plus = alone["plus"] or (name != "none" and re.match(r"\+(?!\s?\d)", text[alone.end() :]))
    bound: Bound = "least" if plus else bound_before(text, alone.start())
    value, half = _value(alone["a"], scale, alone["sign"], approximate=bound == "about")
    end = alone.end() if alone is not match else match.end("a")
    start = head.start() if head is not None else alone.start()
    return Quantity(start, end, (value,), (half,), name, unit, "", bool(alone["sign"]), bool(scale), bound)


_COUNTS = {"a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0} | {
    "seven": 7.0,
    "eight": 8.0,
    "nine": 9.0,
    "ten": 10.0,
}
_PARTS = {"hal": 2.0, "thi": 3.0, "qua": 4.0, "fif": 5.0, "six": 6.0, "eig": 8.0, "ten": 10.0}
_TENS = {"five": 5.0, "ten": 10.0, "fifteen": 15.0, "twenty": 20.0, "thirty": 30.0, "forty": 40.0, "fifty": 50.0} | {
    "sixty": 60.0,
    "seventy": 70.0,
    "eighty": 80.0,
    "ninety": 90.0,
}
_MULTIPLES = {"twice": 2.0, "thrice": 3.0, "double": 2.0, "triple": 3.0, "quadruple": 4.0, "half again": 1.5}
_COUNT = "|".join(_COUNTS)
_MANY = "|".join(name for name, value in _COUNTS.items() if value > 1)
_WORDED = re.compile(
    rf"(?<![\w-])(?<!first\s)(?<!second\s)(?<!other\s)(?<!last\s)(?<!latter\s)(?:"
    rf"(?P<multiple>half\sagain|twice|thrice|double|triple|quadruple)\b(?!-)"
    rf"|(?P<times>{_MANY}|one\sand\sa\shalf)(?P<half>\sand\sa\shalf)?\stimes\b(?=\s(?:the|its|as|that|more|less|fewer|"
    rf"faster|slower|quicker|higher|lower|longer|larger|smaller)\b)"
    rf"|(?P<fold>{_MANY})-?fold\b"
    rf"|(?P<percent>{'|'.join(_TENS)})\sper\s?cent\b"
    rf"|(?:an?\s)?factor\sof\s(?:about\s|roughly\s|over\s|nearly\s)?(?P<factor>\d++(?:\.\d++)?+|{_MANY}\b)(?!\s?%)[x×]?(?!\w)"
    rf"|(?:(?P<orders>{_COUNT})\s)?orders?\sof\smagnitude\b"
    rf"|(?P<count>{_COUNT})?(?:(?<=\w)[\s-])?(?P<part>half|thirds?|quarters?|fifths?|sixths?|eighths?|tenths?)"
    rf"\b(?!-)"
    rf")",
    re.IGNORECASE,
)
_CHEAP = re.compile(
    r"twice|thrice|double|triple|times|fold|cent|factor|magnitude|half|third|quarter|fifth|sixth|eighth|tenth",
    re.IGNORECASE,
)
_ROUGH = 0.05  # of a share: a third is said of 30 as of 37 %


def in_order(text: str) -> Iterator[Quantity]:
    """Every quantity of a text, in digits and in words. Of two that overlap the words win: `by a factor of 2`."""
    in_words = list(worded(text))
    printed = (
        item for item in quantities(text) if not any(item.start < it.end and it.start < item.end for it in in_words)
    )
    return iter(sorted([*in_words, *printed], key=lambda item: item.start))


def worded(text: str) -> Iterator[Quantity]:
    """Every share (a percentage) and multiple (a ratio) that a text has in words, with the rounding of such words."""
    if not _CHEAP.search(text):
        return
    for match in _WORDED.finditer(text):
        dimension, value, half = _size(match)
        bound = bound_before(text, match.start())
        if match[0].lower().startswith("orders"):
            bound = "least"
        unit = "%" if dimension == "percent" else "times"
        yield Quantity(
            *(match.start(), match.end(), (value,), (half,), dimension, unit, "", False, False), bound, worded=True
        )


def _size(match: re.Match[str]) -> tuple[str, float, float]:
    """Dimension, value and rounding: a share in percent, or a multiple."""
    if match["part"]:
        share = _COUNTS[(match["count"] or "a").lower()] / _PARTS[match["part"][:3].lower()]
        return "percent", 100.0 * share, 100.0 * min(_ROUGH, share / 5.0)
    if match["percent"]:
        return "percent", _TENS[match["percent"].lower()], 2.5
    if "magnitude" in match[0].lower():
        value = 10.0 ** _COUNTS[(match["orders"] or "a").lower()]
        return "ratio", value, value / 2.0
    if match["factor"] and match["factor"][0].isdigit():
        value = float(match["factor"])
        return "ratio", value, 0.5 * 10.0 ** -len(match["factor"].partition(".")[2])
    if match["multiple"]:
        value = _MULTIPLES[re.sub(r"\s", " ", match["multiple"].lower())]
        return "ratio", value, value / 4.0 if value >= 2.0 else 0.1
    word = (match["times"] or match["fold"] or match["factor"]).lower()
    if word.startswith("one"):
        return "ratio", 1.5, 0.1
    if match["half"]:
        return "ratio", _COUNTS[word] + 0.5, 0.25
    return "ratio", _COUNTS[word], 0.5
