"""Sizes as allocators print them. All are binary: torch's ``GiB``, XLA's ``G``, and ``GB`` of older torch."""

from __future__ import annotations

from typing import Final

from receipts.ingest import literals

# A number without its unit is a message that was cut; `\b` keeps "25.3 G" of "25.3 GiB" from being a size.
SIZE: Final = r"(\d{1,20}(?:\.\d{1,9})?\s?(?:[KMGT]iB|[KMGT]B?|B|bytes))\b(?![.,]?\d)"
# NVML says "not available" with 2**64-1, and fractions that were never set are 2**64: no memory is that large.
UNSET: Final = 1 << 60


def binary_size(text: str | None) -> int | None:
    """Bytes of a matched `SIZE` or of a plain count; None where nothing was matched, or where it is a sentinel."""
    value = literals.size(text) if text else None
    return None if value is None or value >= UNSET else value
