"""Surfaces of the memory geometry, and the family of blocks to which a failed allocation belongs.

A surface declares what it holds, when, and by which axes it shrinks. A failed allocation is attributed to attention,
Mamba, experts or recurrent blocks by evidence alone: the operator's own name goes first, then the shape that a
message prints (scores are [batch, heads, S, S], an expert's buffer begins with the experts of a rank, a scan's states
have the state width beside the heads). What shows neither, or shows two families, is not attributed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from receipts.receipt.patterns import BlockKind, Pattern, stated_pattern


class SurfaceName(StrEnum):
    """Surfaces, in the order in which they are shown. The values are those of `memory.predicted[].surface`."""

    REPLICATED = "replicated parameters"
    TENSOR = "tensor-sharded parameters"
    EXPERT = "expert-sharded parameters"
    GRADIENTS = "gradients"
    MATRIX_OPTIMIZER = "matrix optimizer"
    OTHER_OPTIMIZER = "other optimizer"
    ACTIVATIONS = "activations"
    ROUTING = "routing scratch"
    COMMUNICATION = "communication buffers"
    COMPILE = "compile peak"
    RECURRENT = "recurrent-state pool"
    KV_CACHE = "kv cache"
    FEATURES = "feature activations"
    RESERVE = "runtime reserve"
    OVERHEAD = "allocator overhead"


# What no allocator counts as live: the rest of the surfaces is what a live peak is compared with.
OUTSIDE = frozenset({SurfaceName.RESERVE, SurfaceName.OVERHEAD})


@dataclass(frozen=True, slots=True)
class Surface:
    """Bytes of one surface on the fullest rank.

    ``peak_bytes`` are live at the moment of the launch's peak, ``bytes`` at the surface's own largest. ``scales`` says
    by which axes it grows.
    """

    name: SurfaceName
    bytes: float
    peak_bytes: float
    scales: str


_NAMES: Final[Mapping[str, re.Pattern[str]]] = {
    "A": re.compile(r"attention|attn|flash|splash|sdpa|softmax_scores|\bmla\b|\bdsa\b|\bmha\b|\bgqa\b", re.IGNORECASE),
    "M": re.compile(r"mamba|\bssm|selective_scan|\bssd|causal_conv1d|gated_delta", re.IGNORECASE),
    "E": re.compile(r"expert|\bmoe|router|routing|token_dispatch|(?:un)?permute|grouped_gemm|\bgmm\b", re.IGNORECASE),
    "R": re.compile(r"m2rnn|\brnn|recurrent|\blstm\b|\bgru\b", re.IGNORECASE),
}
_KINDS: Final[Mapping[str, frozenset[BlockKind]]] = {
    "A": frozenset({BlockKind.ATTENTION, BlockKind.SPARSE_ATTENTION}),
    "M": frozenset({BlockKind.MAMBA, BlockKind.DELTA}),
    "E": frozenset({BlockKind.EXPERT}),
    "R": frozenset({BlockKind.RECURRENT}),
}
SAYS: Final[Mapping[str, str]] = {"A": "attention", "M": "Mamba", "E": "expert", "R": "recurrent"}
_SHAPE: Final = re.compile(r"\b(?:bf16|f16|f32|f64|s32|u32|s8|u8|f8\w{0,12})\[(\d{1,9}(?:,\d{1,9}){1,7})\]")


class Attribution(NamedTuple):
    """The family (A, M, E or R) that the failed allocation belongs to, and what shows it."""

    family: str
    because: str

    def __str__(self) -> str:
        return f"{self.family} ({SAYS[self.family]} blocks): {self.because}"


def attribution(stated: Mapping[str, Any]) -> Attribution | None:
    """The block family whose allocation failed, from a receipt's stated leaves; None if nothing shows one."""
    operator, message = stated.get("failure.operator"), stated.get("failure.message")
    named = [
        Attribution(family, f"{match[0]!r} in the operator's name")
        for family, pattern in _NAMES.items()
        if isinstance(operator, str) and (match := pattern.search(operator)) is not None
    ]
    # A pattern that is stated must have a block of the family.
    stack = stated_pattern(stated)
    for leaves in (named, list(_shaped(message, stated)), list(_shaped(operator, stated))):
        families = {item.family for item in leaves}
        if len(families) == 1 and not (isinstance(stack, Pattern) and not stack.kinds() & _KINDS[leaves[0].family]):
            return leaves[0]
        if families:
            return None
    return None


def _shaped(text: Any, stated: Mapping[str, Any]) -> Iterator[Attribution]:
    for match in _SHAPE.finditer(text) if isinstance(text, str) else ():
        shape = tuple(int(item) for item in match[1].split(","))
        if _scores(shape, stated):
            yield Attribution("A", f"{match[0]} has the sequence twice beside the heads")
        experts, hidden = stated.get("model.experts") or 0, stated.get("model.hidden")
        ways = stated.get("parallelism.expert") or 1
        mine = experts // ways if experts % ways == 0 else experts
        others = {stated.get("batch.micro_batch"), stated.get("model.heads"), stated.get("batch.global_batch")}
        widths = {hidden, stated.get("model.expert_ffn")} - {None}
        if len(shape) == 3 and mine > 1 and shape[0] in ({mine, experts} - others) and widths & set(shape[1:]):
            yield Attribution("E", f"{match[0]} begins with the experts of a rank")
        if _states(shape, stated):
            yield Attribution("M", f"{match[0]} has the state width beside the heads")


def _scores(shape: tuple[int, ...], stated: Mapping[str, Any]) -> bool:
    length, heads = stated.get("batch.sequence_length"), stated.get("model.heads")
    if length is None or heads is None or len(shape) < 3 or shape.count(length) + (_part(length, stated) in shape) < 2:
        return False
    rest = list(shape)
    for _ in range(2):
        rest.remove(length if length in rest else _part(length, stated))
    ways = stated.get("parallelism.tensor") or 1
    mine = heads // ways if heads % ways == 0 else heads
    batch = stated.get("batch.micro_batch") or 1
    # Batch and heads may stand in one extent.
    return any(item in (heads, mine, batch * mine, batch * heads) and item > 1 for item in rest)


def _part(length: int, stated: Mapping[str, Any]) -> int:
    """Tokens of a sequence on one rank where context parallelism divides it."""
    ways = stated.get("parallelism.context") or 1
    return int(length) // int(ways) if ways > 1 and length % ways == 0 else -1


def _states(shape: tuple[int, ...], stated: Mapping[str, Any]) -> bool:
    width, heads = stated.get("model.ssm_state"), stated.get("model.ssm_heads")
    if width is None or heads is None or width == heads:
        return False
    ways = stated.get("parallelism.tensor") or 1
    return len(shape) >= 3 and width in shape and (heads in shape or (heads % ways == 0 and heads // ways in shape))
