"""Amounts of memory as people read them: two decimals, in a binary unit in which they are not all zero."""

from __future__ import annotations

from typing import Final

_UNITS: Final = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_LEAST: Final = 0.1  # of a unit: two decimals still show a tenth to 10 %


def amount(value: float, like: float | None = None) -> str:
    """Bytes with their unit. Amounts side by side share one: ``like`` is the amount, in bytes, whose unit is taken."""
    size = abs(value if like is None else like)
    for name, unit in _UNITS:
        if size >= _LEAST * unit:
            return f"{value / unit:,.2f} {name}"
    return f"{value:,.0f} B"
