"""Shares and multiples in words: `two thirds`, `twice`, `three times`, `twofold`, `an order of magnitude`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from receipts.publish.lint.quantity import Quantity, bound_before, quantities

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
