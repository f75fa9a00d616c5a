"""Rounding: half the last printed digit of a number, and how far it reaches through a product or a quotient.

`98k` stands for 98,000 and means anything from 97,500 to 98,500.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from receipts.base.units import half_place, read_printed

# Rounding of the arithmetic itself, many times what a handful of products and quotients can add up to.
FLOAT_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Interval:
    """Every number from `low` to `high`, both ends in; either may be infinite."""

    low: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Interval:
        """A number without rounding."""
        return cls(value, value)

    @classmethod
    def around(cls, value: float, half: float) -> Interval:
        """`value` ± `half`."""
        return cls(value - half, value + half)

    def __mul__(self, other: Interval | float) -> Interval:
        them = _interval(other)
        if self.low > 0.0 and them.low > 0.0:  # what is measured is; the ends are then the products of ends
            return Interval(self.low * them.low, self.high * them.high)
        products = [
            (0.0 if x == 0.0 or y == 0.0 else x * y) for x in (self.low, self.high) for y in (them.low, them.high)
        ]
        return Interval(min(products), max(products))

    __rmul__ = __mul__

    def __truediv__(self, other: Interval | float) -> Interval:
        of = _interval(other)
        # Over an interval that reaches zero, 1/x is unbounded, and so contradicts nothing.
        if of.low < 0.0 < of.high or of.low == of.high == 0.0:
            return self * Interval(-math.inf, math.inf)
        low = 1.0 / of.high if of.high else -math.inf
        return self * Interval(low, 1.0 / of.low if of.low else math.inf)

    def __rtruediv__(self, other: float) -> Interval:
        return _interval(other) / self

    def __add__(self, other: Interval | float) -> Interval:
        them = _interval(other)
        return Interval(self.low + them.low, self.high + them.high)

    __radd__ = __add__

    def __sub__(self, other: Interval | float) -> Interval:
        them = _interval(other)
        return Interval(self.low - them.high, self.high - them.low)

    def contains(self, value: float) -> bool:
        """Whether `value` lies inside, or off by no more than floating-point rounding."""
        return self.meets(Interval.exact(value))

    def meets(self, other: Interval) -> bool:
        """Whether some number lies in both, floating-point rounding allowed for."""
        return _reaches(self.high, other.low) and _reaches(other.high, self.low)


def _reaches(high: float, low: float) -> bool:
    if high >= low:
        return True
    return low - high <= FLOAT_ROUNDING * max(abs(low), abs(high))


def _interval(value: Interval | float) -> Interval:
    return value if isinstance(value, Interval) else Interval.exact(value)


_LOOSE_SCALES = tuple(10.0**k for k in range(-18, 19)) + tuple(
    scale for n in range(1, 6) for scale in (1024.0**n, 1024.0**-n)
) + (60.0, 3600.0)  # fmt: skip


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
    return half_place(own.removesuffix(".0"))
