"""Numbers as people print them, and how far each can be trusted: half its last printed digit.

`98k` says 98,000 and means anything from 97,500 to 98,500.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from receipts.stats.interval import FLOAT_ROUNDING, Interval

# Decimal point only: `1,963` has a thousands separator, and `1,5` is refused rather than guessed.
_NUMBER = (
    r"(?=[+-]?\.?\d)[+-]?"
    r"(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?:[ _\u00a0\u2009\u202f]\d{3})+|\d+)?"
    r"(?:\.\d*)?(?:[eE][+-]?\d+)?"
)
_APPROXIMATE = r"(?:~|≈|≃|∼|about\s|approx\.?\s|around\s|roughly\s|ca\.\s?|c\.\s?)"
_PRINTED = re.compile(
    rf"\s*(?P<approximate>{_APPROXIMATE})?\s*(?P<number>{_NUMBER})(?P<unit>\s*(?:/?[^\W\d_]|[%×]).*)?", re.IGNORECASE
)
# A second number (`9.4 to 9.6`, `3 x 4`): only in brackets is it a remark and not a part of what is stated.
_SECOND_NUMBER = re.compile(r"(?<!\w)[+-]?\.?\d")
_REMARK = re.compile(r"\([^()]*\)")
_DECIMAL = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_WORDS = {
    "": 1.0,
    "%": 0.01,
    "x": 1.0,
    "×": 1.0,
    "thousand": 1e3,
    "million": 1e6,
    "billion": 1e9,
    "trillion": 1e12,
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "min": 60.0,
    "mins": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hours": 3600.0,
}
# What a prefix may stand before. Anything else is a unit of its own: `Mamba` is not a million ambas.
_STEMS = re.compile(r"(?:B|bytes?|FLOPs?|FLOPS|tok|tokens?|params?|samples?|steps?)\b")
_LOOSE_SCALES = tuple(10.0**k for k in range(-18, 19)) + tuple(
    scale for n in range(1, 6) for scale in (1024.0**n, 1024.0**-n)
) + (60.0, 3600.0)  # fmt: skip


class Printed(NamedTuple):
    """A printed number: `mantissa` ± `half` as its digits stand, times `scale` for its prefix or unit.

    Bases are 1, seconds, bytes, FLOPs and FLOP/s; a percentage is a fraction. `unit` is the text behind the digits
    and `approximate` whether the text said so (`~`).
    """

    mantissa: float
    mantissa_half: float
    scale: float
    unit: str
    approximate: bool

    @property
    def value(self) -> float:
        """The number in base units."""
        return self.mantissa * self.scale

    @property
    def half(self) -> float:
        """Half the last printed digit, in base units."""
        return self.mantissa_half * self.scale

    @property
    def interval(self) -> Interval:
        """Every number that prints so."""
        return Interval.around(self.value, self.half)


def read_printed(text: str) -> Printed | None:
    """Read one printed number; none where the text is not one number (`9.4-9.6`, `>141`, `1,5`, `n/a`).

    Trailing zeros count as printed (`90400` is ± 0.5), except where the text says that it rounds: `~90400` is ± 50.
    """
    match = _PRINTED.fullmatch(text.strip())
    if match is None:
        return None
    approximate = match["approximate"] is not None
    digits = re.sub(r"[,_\s]", "", match["number"])
    value = float(digits)
    if not math.isfinite(value):
        return None
    unit = _REMARK.sub("", match["unit"] or "").strip()
    if _SECOND_NUMBER.search(unit):
        return None
    return Printed(value, _half_place(digits, approximate), _scale(unit), unit, approximate)


def half_of(value: float, text: str | None = None) -> float:
    """How far the stated `value` may be off: half the last printed digit of `text`, in the unit of `value`.

    `text` may be in another unit than `value` (`1450 ms` beside 1.45, `29.2 %` beside 0.292): any power of ten or of
    1024 between the two is a unit. Without a text, or with one that says another number, the digits of `value`
    itself are what was printed.
    """
    printed = read_printed(text) if text is not None else None
    if printed is not None and printed.mantissa != 0.0 and value != 0.0:
        scale = value / printed.mantissa
        # The value may have been rounded or spelled out more exactly than the text: within the text's own digits.
        slack = printed.mantissa_half / abs(printed.mantissa) + FLOAT_ROUNDING
        if abs(scale / printed.scale - 1.0) <= slack:
            return printed.mantissa_half * printed.scale
        nearest = min(_LOOSE_SCALES, key=lambda known: abs(scale / known - 1.0))
        if abs(scale / nearest - 1.0) <= slack:
            return printed.mantissa_half * nearest
    if printed is not None and printed.mantissa == value == 0.0:
        return printed.half
    own = repr(value)
    return _half_place(own.removesuffix(".0"), approximate=False)


def agrees(stated: float, half: float, computed_low: float, computed_high: float) -> bool:
    """Whether `stated` ± `half` and the computed interval have a number in common."""
    return Interval.around(stated, half).meets(Interval(computed_low, computed_high))


def _half_place(digits: str, approximate: bool) -> float:
    """Half a unit of the last digit of a plain decimal number, such as `1.5e3` (50)."""
    mantissa, _, power = digits.lower().lstrip("+-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    place = -len(fraction)
    if approximate and not fraction and (zeros := len(whole) - len(whole.rstrip("0"))) < len(whole):
        place = zeros
    return float(f"0.5e{place + int(power or 0)}")


def _scale(unit: str) -> float:
    """The factor from a unit's text to base units; 1 for what is only a word (`tok/s`, `steps`)."""
    word = unit.split(" ", 1)[0].split("/", 1)[0].rstrip(".")
    if word in _WORDS:
        return _WORDS[word]
    for prefixes in (_BINARY, _DECIMAL):
        for prefix, scale in prefixes.items():
            if word == prefix or (word.startswith(prefix) and _STEMS.fullmatch(word[len(prefix) :])):
                return float(scale)
    return 1.0
