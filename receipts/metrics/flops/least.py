"""The least work that a token costs, whatever the formula: what no training step gets below.

A forward pass multiplies and adds once a parameter: 2 FLOPs a parameter (Kaplan et al. 2020, arXiv:2001.08361, table
1). The backward pass is not counted, since frozen weights and adapters skip parts of it; attention scores are not,
since sparse and linear forms do. Widths give the GEMMs themselves. Of a stated count of parameters a quarter counts,
since tables that are looked up multiply nothing.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from receipts.metrics.flops.attention import MIXED, WINDOWED
from receipts.metrics.flops.geometry import Geometry
from receipts.metrics.flops.hybrid import blocks as blocks_as_they_are
from receipts.metrics.flops.megatron import megatron
from receipts.receipt.alphabets import BlockKind

FORWARD = 2.0  # FLOPs a parameter
MULTIPLIED = 0.25  # of a stated count: 28 % of MiniLM-L6's and 31 % of XLM-R base's parameters are no embedding
SPARSEST = 1 / 2048  # of the parameters: Switch-C visits one of 2,048 experts, Fedus et al. 2021, arXiv:2101.03961
_SUMMED = (BlockKind.ATTENTION, BlockKind.MAMBA, BlockKind.EXPERT, BlockKind.MLP)
_ABSENT = ("shared_expert_ffn", "mtp_depth")  # counts of what a model may be without
_NOT_COUNTED = (
    "family", "parameters_total", "parameters_active", "tied_embeddings", "blocks", "sequence_length",
    "latent", "unsummed", "sparse", "indexer", "mamba3", "recurrence", "siso",
    "lacking",
)  # fmt: skip


def least_flops_per_token(geometry: Geometry) -> float:
    """FLOPs a token that any training step needs; 0 where nothing that bounds them is stated."""
    return FORWARD * max(MULTIPLIED * _stated(geometry), _from_widths(geometry))


def _stated(geometry: Geometry) -> float:
    """The active parameters; of all of them the share that a token visits."""
    if geometry.parameters_active is not None:
        return float(geometry.parameters_active)
    total = float(geometry.parameters_total or 0)
    if geometry.is_dense:
        return total
    visited = geometry.top_k / geometry.experts if geometry.top_k and geometry.experts else SPARSEST
    return total * min(visited, 1.0)


def _from_widths(geometry: Geometry) -> float:
    """Parameters by the sum over GEMMs. A width that is unstated is 1, and a block without a sum does nothing."""
    if geometry.layers is None or geometry.hidden is None:
        return 0.0
    unstated: dict[str, Any] = {
        each.name: 0 if each.name in _ABSENT else 1
        for each in fields(Geometry)
        if each.name not in (*_NOT_COUNTED, "experts") and getattr(geometry, each.name) is None
    }
    blocks = None if geometry.blocks is None else {k: n for k, n in geometry.blocks.items() if k in _SUMMED}
    if geometry.unsummed == MIXED:
        unstated |= {"expert_ffn": 0, "shared_expert_ffn": 0}
    elif geometry.unsummed not in ("", WINDOWED) or (geometry.latent is not None and blocks is not None):
        unstated |= {"heads": 0, "kv_heads": 0}  # what attention multiplies is not known
    whole = replace(geometry, blocks=blocks, **{**unstated, "sequence_length": 1, "unsummed": ""})
    return max(megatron(whole).flops or 0.0, _as_they_are(geometry)) / 6.0


def _as_they_are(geometry: Geometry) -> float:
    """The same of blocks that are stated to the last width: the indexer, every rank of Mamba-3, M2RNN; else 0."""
    own = {BlockKind.SPARSE_ATTENTION: geometry.indexer, BlockKind.RECURRENT: geometry.recurrence}
    if geometry.blocks is None or not (any(own.values()) or geometry.mamba3):
        return 0.0
    known = {kind: count for kind, count in geometry.blocks.items() if kind in _SUMMED or own.get(kind)}
    return blocks_as_they_are(replace(geometry, blocks=known, sequence_length=1)).flops or 0.0
