"""Numbers as logs print them: separators, letters, units, quotes; and sizes in bytes by the unit that is there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import repeat
from math import isfinite
from typing import Any, Final

from receipts.base.units import BINARY, LETTERS

_NUMBER = re.compile(
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)",
    re.IGNORECASE,
)
# A figure in the pattern of a line; what `number` reads, without blanks and quotes.
FIGURE: Final = r"[-+]?(?:\d{1,24}(?:,\d{3}){0,8}(?:\.\d{0,24})?(?:[eE][-+]?\d{1,4})?|\.\d{1,24}|nan|inf)"
_SIZE = re.compile(
    r"(?P<number>[-+]?\d[\d,]*(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*(?P<letter>[kKMGTP]?)(?P<i>i?)(?P<b>[bB]?)(?:ytes)?"
)


def number(value: Any) -> float | None:
    """The number that a text or a value is, or None: ``1,234.5``, ``"0.25"`` in quotes, ``1e-3``; no letter."""
    if isinstance(value, str):
        word = value.strip().strip("'\"").strip()
        return float(word.replace(",", "")) if _NUMBER.fullmatch(word) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1 << 1023 or isinstance(value, float) else None


def scaled(text: str) -> float | None:
    """A number with a letter of base 1000: ``4.14M`` is 4,140,000, ``520`` is 520; None where it is neither."""
    word = text.strip().strip("'\"").strip()
    if word and word[-1] in LETTERS:
        value = number(word[:-1])
        return None if value is None else value * LETTERS[word[-1]]
    return number(word)


def size(text: str, *, decimal: bool = False) -> int | None:
    """A size in bytes: ``26.25G``, ``8.00 MiB``, ``640 bytes``, ``512``. None where the text is no size, or endless.

    ``KiB`` is 1024. What ``K`` and ``KB`` are is the source's: 1024 (allocators, XLA), or 1000 where ``decimal``.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    letter = match["letter"].upper()
    factor = LETTERS[letter] if decimal and not match["i"] else BINARY[letter]
    value = float(match["number"].replace(",", "")) * factor
    return round(value) if isfinite(value) else None


def judged(losses: Sequence[float], norms: Sequence[float] = ()) -> tuple[bool, bool]:
    """Whether some records have diverged, and whether some have not: a loss that is not finite, or a norm of NaN."""
    if isfinite(sum(losses)) and isfinite(sum(norms)):
        return False, bool(losses)
    rows = zip(losses, norms or repeat(0.0), strict=False)
    bad = [not isfinite(loss) or norm != norm for loss, norm in rows]
    return any(bad), not all(bad)
