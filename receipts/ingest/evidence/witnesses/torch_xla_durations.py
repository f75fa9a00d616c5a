"""Durations and byte sizes as torch_xla's metrics report prints them.

The printer rounds every unit but takes only the floor of it away before it prints the next one, in every version up to
2.9: ``02s903ms745.417us`` is 1.902745417 s. Decode from the smallest unit upward: a unit whose remainder below is half
of it or more was rounded up. Source: `MetricFnTime` and `MetricFnBytes`, torch_xla/csrc/runtime/metrics.cpp.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.base.units import BINARY, CLOCK

# Nanoseconds.
_UNITS: Final = {unit: round(factor * 1e9) for unit, factor in CLOCK.items()}
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(ns|us|ms|s|m|h|d)")
_DURATION: Final = re.compile(r"(?:\d{1,12}(?:\.\d{1,9})?(?:ns|us|ms|s|m|h|d)){1,7}")
_BYTES: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTP]?)B")


def seconds(text: str) -> float | None:
    """Seconds of a printed duration (``04m22s555ms668.071us``), decoded; None where it is none."""
    if _DURATION.fullmatch(text) is None:
        return None
    parts = [(_picos(figure), _UNITS[unit] * 1000) for figure, unit in _PART.findall(text)]
    total = 0
    above = None
    for picos, unit in reversed(parts):
        if above is not None and unit <= above:
            return None
        count = picos // 1000
        if above is None:
            total = picos * unit // 1000
        else:
            # ``total`` is what stands below this unit: at half of it and more the printer had rounded up. The highest
            # unit is printed from one of it on, and a half may be rounded down to zero.
            least = 2 if unit == parts[0][1] else 1
            total += (count - 1 if 2 * total >= unit and count >= least else count) * unit
        above = unit
    return total / 1e12


def size(text: str) -> int | None:
    """Bytes of a printed size (``273.67KB``, 1024 based), as exact as its digits; None where it is none."""
    match = _BYTES.fullmatch(text)
    return None if match is None else round(float(match[1]) * BINARY[match[2]])


def _picos(figure: str) -> int:
    """Thousandths of a unit, exact."""
    whole, _, rest = figure.partition(".")
    return int(whole) * 1000 + int((rest + "000")[:3])
