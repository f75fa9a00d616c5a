"""What an allocation report shows of attention: a materialised matrix of scores, or the kernel that had none."""

from __future__ import annotations

import re
from typing import Final

# Batch, heads, queries, keys; a folded batch leaves three.
_SHAPE = re.compile(r"\b(?:bf16|f16|f32)\[(\d{1,9}(?:,\d{1,9}){3,4})\]")
_KERNEL = re.compile(r'op_name="[^"]{0,2000}/(?P<name>splash_mha|flash_attention)[^"]{0,2000}/pallas_call"')
_VALUES: Final = {"splash_mha": "pallas_splash", "flash_attention": "pallas_flash"}
SHORTEST: Final = 1024
# A shorter sequence is seen by what the report calls the operator.
_SCORES = re.compile(r"attention|->\w{1,4}qk\b", re.IGNORECASE)
_SHORTEST_NAMED: Final = 128


def shape(text: str) -> tuple[int, ...] | None:
    """The shape of a matrix of attention scores, whose last two axes are the sequence; else None."""
    shortest = _SHORTEST_NAMED if _SCORES.search(text) else SHORTEST
    for match in _SHAPE.finditer(text):
        found = tuple(int(item) for item in match[1].split(","))
        if found[-1] == found[-2] >= shortest:
            return found
    return None


def kernel(text: str) -> str | None:
    """The Pallas attention kernel that a report names; a `tpu_custom_call` alone proves none."""
    match = _KERNEL.search(text) if "tpu_custom_call" in text else None
    return _VALUES[match["name"]] if match else None
