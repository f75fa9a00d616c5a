"""Alphabets of block patterns: the kinds of block, and the letters that stand for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class BlockKind(StrEnum):
    """What a block is, whatever letter an alphabet gives it."""

    ATTENTION = "attention"
    SPARSE_ATTENTION = "sparse attention"
    MAMBA = "mamba"
    DELTA = "gated delta net"
    RECURRENT = "recurrent"
    EXPERT = "expert"
    MLP = "mlp"


ATTENDING = frozenset({BlockKind.ATTENTION, BlockKind.SPARSE_ATTENTION})
STATEFUL = frozenset({BlockKind.MAMBA, BlockKind.DELTA, BlockKind.RECURRENT})


@dataclass(frozen=True, slots=True, eq=False)
class Alphabet:
    """Letters and what they stand for. `tiles` is whether its users repeat a pattern up to the depth."""

    name: str
    letters: Mapping[str, BlockKind]
    tiles: bool
    source: str


NAM = Alphabet(
    "nam",
    MappingProxyType(
        {
            "A": BlockKind.ATTENTION,
            "M": BlockKind.MAMBA,
            "E": BlockKind.EXPERT,
            "R": BlockKind.RECURRENT,
            "D": BlockKind.DELTA,
        }
    ),
    tiles=True,
    source="NAM56R: in NeMo A becomes *, M is M, E is E, D becomes G; R is its own block, built as M there",
)
NEMO = Alphabet(
    "nemo",
    MappingProxyType(
        {
            "*": BlockKind.ATTENTION,
            "D": BlockKind.SPARSE_ATTENTION,
            "M": BlockKind.MAMBA,
            "G": BlockKind.DELTA,
            "E": BlockKind.EXPERT,
            "-": BlockKind.MLP,
        }
    ),
    tiles=False,
    source="Megatron-Core, class Symbols of hybrid_layer_allocation.py (before 0.16 without D and G)",
)
ALPHABETS: Mapping[str, Alphabet] = MappingProxyType({NAM.name: NAM, NEMO.name: NEMO})
