"""How far printed numbers can be trusted: half the last printed digit.

`98k` says 98,000 and means anything from 97,500 to 98,500.
"""

from __future__ import annotations

from receipts.base.units import half_place, read_printed
from receipts.stats.interval import FLOAT_ROUNDING

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
