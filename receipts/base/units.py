"""Numbers with units as people and programs print them: tables of units, a reader, amounts of memory, and moments.

What a letter means is its source's: `K` is 1000 of tokens and 1024 of an allocator's bytes, `B` is a byte or a
billion, `m` a minute beside hours and otherwise a prefix. A reader takes the table that its source means. A moment is
a day, a time, or how long ago, as options name it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from datetime import MAXYEAR, UTC, datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from receipts.base.errors import UsageError

_PREFIXES: Final = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
# Behind a count: `98k`, `4.73B` parameters.
LETTERS: Final = {"": 1.0, **_PREFIXES, "B": 1e9}
SCALES: Final = {**LETTERS, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
# Of allocators and compilers, whose GB is a GiB.
BINARY: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
KIB, MIB, GIB = BINARY["K"], BINARY["M"], BINARY["G"]
_BINARY_PREFIXES: Final = {f"{letter}i": float(size) for letter, size in BINARY.items() if letter}
SECONDS: Final = {
    **dict.fromkeys(("ns", "nsec"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microseconds"), 1e-6),
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
}
# Durations in parts, such as `1h02m03s`.
CLOCK: Final = SECONDS | {"m": 60.0, "d": 86400.0}
BYTES: Final = {
    "B": 1.0,
    "bytes": 1.0,
    **{f"{prefix}B": size for prefix, size in (_PREFIXES | _BINARY_PREFIXES).items()},
    **{f"{word}bytes": _PREFIXES[word[0].upper()] for word in ("kilo", "mega", "giga", "tera", "peta")},
}
# A `B` alone is a billion here: `4.73B` is a count.
_FACTORS: Final = SECONDS | BYTES | SCALES | {"%": 0.01, "x": 1.0, "×": 1.0}
# Decimal point only: `1,963` has a thousands separator, and `1,5` is refused rather than guessed.
UNSIGNED: Final = (
    r"(?=\.?\d)(?:[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,2}(?:[ _\u00a0\u2009\u202f]\d{3})+|\d+)?"
    r"(?:\.\d*)?(?:[eE][+-]?\d+)?"
)
_APPROXIMATE = r"(?:~|≈|≃|∼|about\s|approx\.?\s|around\s|roughly\s|ca\.\s?|c\.\s?)"
_PRINTED = re.compile(
    rf"\s*(?P<approximate>{_APPROXIMATE})?\s*(?P<number>[+-]?{UNSIGNED})(?P<unit>\s*(?:/?[^\W\d_]|[%×]).*)?",
    re.IGNORECASE,
)
# A second number (`9.4 to 9.6`, `3 x 4`): only in brackets is it a remark and not a part of what is stated.
_SECOND_NUMBER = re.compile(r"(?<!\w)[+-]?\.?\d")
_REMARK = re.compile(r"\([^()]*\)")
# What a prefix may stand before. Anything else is a unit of its own: `Mamba` is not a million ambas.
_STEMS = re.compile(r"(?:B|bytes?|FLOPs?|FLOPS|tok|tokens?|params?|samples?|steps?)\b")
_MIN_SHOWN: Final = 0.1  # of a unit: two decimals still show a tenth to 10 %


class PrintedNumber(NamedTuple):
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


def read_printed(text: str) -> PrintedNumber | None:
    """Read one printed number; None if the text is not one number (`9.4-9.6`, `>141`, `1,5`, `n/a`).

    Trailing zeros count as printed (`90400` is ± 0.5), except where the text says that it rounds: `~90400` is ± 50.
    """
    match = _PRINTED.fullmatch(text.strip())
    if match is None:
        return None
    approximate = match["approximate"] is not None
    digits = plain(match["number"])
    value = float(digits)
    if not math.isfinite(value):
        return None
    unit = _REMARK.sub("", match["unit"] or "").strip()
    if _SECOND_NUMBER.search(unit):
        return None
    return PrintedNumber(value, half_place(digits, approximate=approximate), factor(unit), unit, approximate)


def plain(number: str) -> str:
    """A printed number without its separators of thousands."""
    return re.sub(r"[,_\s]", "", number)


def half_place(digits: str, *, approximate: bool = False) -> float:
    """Half a unit of the last digit of a plain decimal number, such as `1.5e3` (50)."""
    mantissa, _, power = digits.lower().lstrip("+-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    place = -len(fraction)
    if approximate and not fraction and (zeros := len(whole) - len(whole.rstrip("0"))) < len(whole):
        place = zeros
    return float(f"0.5e{place + int(power or 0)}")


def factor(unit: str) -> float:
    """The factor from a unit's text to base units; 1 for what is only a word (`tok/s`, `steps`)."""
    word = unit.split(" ", 1)[0].split("/", 1)[0].rstrip(".")
    if word in _FACTORS:
        return _FACTORS[word]
    for prefixes in (_BINARY_PREFIXES, LETTERS):
        for prefix, scale in prefixes.items():
            if prefix and (word == prefix or (word.startswith(prefix) and _STEMS.fullmatch(word[len(prefix) :]))):
                return scale
    return 1.0


def amount(value: float, like: float | None = None) -> str:
    """Bytes with their binary unit: two decimals, in a unit in which they are not all zero.

    Amounts side by side share one: ``like`` is the amount, in bytes, whose unit is taken. An amount below a tenth of
    that unit is shown in its own.
    """
    size = abs(value if like is None else like)
    for letter in "GMK":
        if size >= _MIN_SHOWN * BINARY[letter]:
            if 0 < abs(value) < _MIN_SHOWN * BINARY[letter]:
                return amount(value)
            return f"{value / BINARY[letter]:,.2f} {letter}iB"
    return f"{value:,.0f} B"


def decimal_bytes(value: float) -> str:
    """Bytes as counted, and from a thousand on with the decimal unit of papers: `2,523,136 B (2.52 MB)`."""
    for prefix in "GMk":
        if abs(value) >= _PREFIXES[prefix]:
            return f"{value:,.0f} B ({value / _PREFIXES[prefix]:.3g} {prefix}B)"
    return f"{value:,.0f} B"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 chip`, `1,024 chips`, `2 launches` with the plural given."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def named(items: Collection[object], most: int) -> str:
    """The first of several, and how many more there are: `a, b and 3 more`."""
    shown, more = ", ".join(map(str, islice(items, most))), len(items) - most
    return f"{shown} and {more:,} more" if more > 0 else shown


def signed(number: float, form: str = "+,.6g") -> str:
    """A number with its sign, in a format of Python's. The minus is as wide as the plus: columns stay straight."""
    return f"{number:{form}}".replace("-", "−")


def signed_percent(share: float, digits: int = 1) -> str:
    """A share as a change for people: *+5.3 %*, *−21.5 %*."""
    return f"{signed(share * 100, f'+,.{digits}f')} %"


def change(ratio: float, digits: int = 1) -> str:
    """A ratio of B over A as a change in percent."""
    return signed_percent(ratio - 1, digits)


YEARS = range(1900, MAXYEAR)  # beyond them an interval has no moment before it, or none after it
_AGO = re.compile(r"(\d{1,5})([hdw])")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def is_day(text: str) -> bool:
    """Whether a word names a day and no time of it."""
    return _DAY.fullmatch(text.strip()) is not None


def moment(option: str, text: str, of_day: str = "00:00:00") -> datetime:
    """The moment that a word names, in UTC: ``2026-03-01``, ``2026-03-01T09:00Z``, or ``7d`` ago.

    Of a day it is a time; what names no zone is in UTC. Raises UsageError, naming the option.
    """
    if ago := _AGO.fullmatch(text):
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    day = is_day(text)
    try:
        parsed = datetime.fromisoformat(f"{text.strip()}T{of_day}" if day else text)
        at = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        if day:
            raise UsageError(f"{option} {text}: there is no such day") from None
        raise UsageError(f"{option} {text}: write a day such as 2026-03-01, a time, or 12h, 7d, 2w ago") from None
    if at.year not in YEARS:
        raise UsageError(f"{option} {text}: write a moment of the years {YEARS[0]} to {YEARS[-1]}")
    return at
