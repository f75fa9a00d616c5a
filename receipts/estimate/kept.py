"""A tensor that a block keeps from forward to backward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What a selective recompute may name (Megatron-Core, `recompute_modules`; MaxText, remat policies).
BlockPart = Literal["input", "norm", "projection", "core", "activation", "routing"]


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor kept from forward to backward. ``part`` is what a selective recompute drops it by."""

    name: str
    part: BlockPart
    bytes: float
