"""Formulas that sum over matmuls: MaxText's, Megatron-Core's, a hybrid's blocks, and the least work of a token.

MaxText, in the eras of `calculate_tflops_training_per_device`. Forward, a token: feed-forward 2·h·f a projection;
attention projections 2·h·(q + 2·kv) and 2·h·q; scores and values 4·T·q, or half of it where the causal mask is
counted; head 2·h·V; router 2·h·E. Times three for the backward pass. The printed line does not state its era: the
same step differs by up to 55 %. Sliding windows, MLA, shared experts and models with dense and expert layers have
terms of their own there, and are not counted here.

Megatron-Core, `num_floating_point_operations` in megatron/training/training.py, divided by the tokens of a batch.
Each GEMM counts two FLOPs a multiply-add, three times (forward and the two of backward). Recompute, norms, softmax
and the router are not counted. Megatron pads the vocabulary and the receipt may state it unpadded, which is a
difference in the third digit at most. `pattern` counts what Megatron-Core prints: full attention, and Mamba-2 for M
and R.

The hybrid's sum takes each block by its own definition (sparse attention with its indexer, Mamba-3 with MIMO, M2RNN),
three times for forward and backward, except an indexer without a loss, which has no backward pass. An MTP depth is a
head, as in `pattern`.

The least work is what no training step gets below, whatever the formula. A forward pass multiplies and adds once a
parameter: 2 FLOPs a parameter (Kaplan et al. 2020, arXiv:2001.08361, table 1). The backward pass is not counted,
since frozen weights and adapters skip parts of it; attention scores are not, since sparse and linear forms do. Widths
give the GEMMs themselves. Of a stated count of parameters a quarter counts, since tables that are looked up multiply
nothing.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from typing import Any

from receipts.metrics.flops.formula import FlopsFormula, FlopsPerToken, missing, need
from receipts.metrics.flops.geometry import INDEXER, MIXED, WINDOWED, Geometry
from receipts.receipt.patterns import STATEFUL, BlockKind


def _maxtext_sum(geometry: Geometry, *, attention_share: float, all_experts: bool) -> FlopsPerToken:
    numbers, absent = need(
        geometry,
        "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_projections", "vocabulary", "sequence_length",
    )  # fmt: skip
    layers, hidden, heads, kv_heads, head_dim, projections, vocabulary, length = numbers
    feed_forward, more = _maxtext_feed_forward(geometry, hidden, projections, all_experts=all_experts)
    if geometry.blocks is not None:
        return FlopsPerToken(None, because="MaxText's sum counts one kind of layer, and this model has a block pattern")
    if geometry.unsummed or geometry.latent is not None or geometry.shared_expert_ffn:
        return FlopsPerToken(
            None, because=geometry.unsummed or "latent attention and shared experts are not summed here"
        )
    if absent + more:
        return missing(absent + more)
    query, key_value = heads * head_dim, kv_heads * head_dim
    weights = 2 * hidden * (query + 2 * key_value) + 2 * hidden * query
    core = 4 * length * query * attention_share
    return FlopsPerToken(3.0 * ((feed_forward + weights + core) * layers + 2 * hidden * vocabulary))


def _maxtext_feed_forward(
    geometry: Geometry, hidden: int, projections: int, *, all_experts: bool
) -> tuple[int, tuple[str, ...]]:
    if geometry.is_dense:
        (width,), absent = need(geometry, "ffn")
        return 2 * hidden * width * projections, absent
    width_name = "ffn" if geometry.expert_ffn is None else "expert_ffn"
    (width, experts, visited), absent = need(geometry, width_name, "experts", "experts" if all_experts else "top_k")
    return 2 * hidden * experts + visited * 2 * hidden * width * projections, absent


MAXTEXT_FORMULAS = (
    FlopsFormula(
        "maxtext",
        "sum over matmuls, causal half of attention, top-k experts; since July 2025",
        "MaxText a4c01726e (2025-07-18, pull request 1988), maxtext_utils.py",
        partial(_maxtext_sum, attention_share=0.5, all_experts=False),
        framework="maxtext",
    ),
    FlopsFormula(
        "maxtext_noncausal",
        "sum over matmuls, full attention, top-k experts; May 2024 to July 2025, and every Trillium recipe",
        "MaxText 288912b92 (2024-05-31), maxtext_utils.py",
        partial(_maxtext_sum, attention_share=1.0, all_experts=False),
        framework="maxtext",
    ),
    FlopsFormula(
        "maxtext_2024_05",
        "sum over matmuls, full attention, all experts; May 2024",
        "MaxText 353fb837c (2024-05-08), maxtext_utils.py",
        partial(_maxtext_sum, attention_share=1.0, all_experts=True),
        framework="maxtext",
    ),
)


# Blocks without a sum that the receipt's fields decide: their widths and top-k are not part of it.
_UNCOUNTED = (BlockKind.SPARSE_ATTENTION, BlockKind.DELTA)


def megatron(geometry: Geometry) -> FlopsPerToken:
    """Since core 0.12: causal half, MTP, shared experts and latent attention; a pattern is summed over its blocks."""
    if geometry.blocks is not None:
        return pattern(geometry)
    (layers, hidden, vocabulary, length, depth), absent = need(
        geometry, "layers", "hidden", "vocabulary", "sequence_length", "mtp_depth"
    )
    if geometry.unsummed:
        return FlopsPerToken(None, because=geometry.unsummed)
    attention, more = (attention_work if geometry.latent is None else latent_work)(geometry, length, 0.5)
    feed_forward, also = _mlp(geometry) if geometry.is_dense else _experts(geometry)
    if absent + more + also:
        return missing(absent + more + also)
    # An MTP depth is one more layer, its norms and its projection of two hidden vectors to one, and a head.
    joining = 2 * depth * (3 * hidden + 2 * hidden * hidden)
    head = 2 * hidden * vocabulary * (1 + depth)
    return FlopsPerToken(3.0 * ((layers + depth) * (attention + feed_forward) + joining + head))


def megatron_full(geometry: Geometry) -> FlopsPerToken:
    """Core 0.5 to 0.10: full attention, one feed-forward width, and no term for MTP or shared experts."""
    numbers, absent = need(geometry, "layers", "hidden", "vocabulary", "sequence_length", "ffn", "ffn_projections")
    layers, hidden, vocabulary, length, width, projections = numbers
    attention, more = attention_work(geometry, length, core_share=1.0)
    (visited,), also = ((1,), ()) if geometry.is_dense else need(geometry, "top_k")
    if geometry.blocks is not None:
        return FlopsPerToken(None, because="Megatron-Core before 0.12 has no sum over the blocks of a pattern")
    if geometry.unsummed or geometry.latent is not None:
        return FlopsPerToken(None, because=geometry.unsummed or "Megatron-Core before 0.12 sums no latent attention")
    if absent + more + also:
        return missing(absent + more + also)
    feed_forward = 2 * hidden * width * projections * visited
    return FlopsPerToken(3.0 * (layers * (attention + feed_forward) + 2 * hidden * vocabulary))


def pattern(geometry: Geometry) -> FlopsPerToken:
    """Sum over blocks: attention with the causal half, Mamba, experts, MLP; R is counted as the Mamba block.

    Megatron's `hybrid_flops`, which adds a head an MTP depth and not the blocks of that depth.
    """
    if geometry.blocks is None:
        return missing([geometry.path("blocks"), *need(geometry, "layers")[1]])
    uncounted = [kind for kind in _UNCOUNTED if kind in geometry.blocks]
    if uncounted:
        return FlopsPerToken(None, because=f"no sum is known here for {' and '.join(uncounted)} blocks")
    (hidden, vocabulary, length, depth), absent = need(geometry, "hidden", "vocabulary", "sequence_length", "mtp_depth")
    forward = 2.0 * hidden * vocabulary * (1 + depth)
    for kind, count in geometry.blocks.items():
        flops, more = block_work(geometry, kind, length)
        forward += count * flops
        absent += more
    return missing(absent) if absent else FlopsPerToken(3.0 * forward)


def block_work(geometry: Geometry, kind: BlockKind, length: int) -> tuple[float, tuple[str, ...]]:
    """FLOPs a token of one block's forward pass, and the paths that it lacks."""
    if kind is BlockKind.ATTENTION:
        return attention_work(geometry, length, core_share=0.5)
    if kind is BlockKind.EXPERT:
        return _experts(geometry)
    if kind is BlockKind.MLP:
        return _mlp(geometry)
    assert kind in STATEFUL, f"{kind} has no sum of its own"
    (hidden, state, groups, heads), absent = need(geometry, "hidden", "ssm_state", "ssm_groups", "ssm_heads")
    inner = 2 * hidden
    into = 2.0 * hidden * (2 * inner + 2 * groups * state + heads)
    return into + 7.0 * inner * state + 2.0 * inner * hidden, absent


def attention_work(geometry: Geometry, length: int, core_share: float) -> tuple[float, tuple[str, ...]]:
    """The same of grouped-query attention, with a share of its scores."""
    (hidden, heads, kv_heads, head_dim), absent = need(geometry, "hidden", "heads", "kv_heads", "head_dim")
    query, key_value = heads * head_dim, kv_heads * head_dim
    return 4.0 * hidden * (query + key_value) + 4.0 * length * query * core_share, absent


def latent_work(geometry: Geometry, length: int, core_share: float) -> tuple[float, tuple[str, ...]]:
    """The same of latent attention."""
    (hidden, heads), absent = need(geometry, "hidden", "heads")
    assert geometry.latent is not None
    latent = geometry.latent
    core = 2.0 * length * heads * (latent.nope + latent.rope + latent.value) * core_share
    return 2.0 * sum(latent.projections(hidden, heads)) + core, absent


def _mlp(geometry: Geometry) -> tuple[float, tuple[str, ...]]:
    (hidden, width, projections), absent = need(geometry, "hidden", "ffn", "ffn_projections")
    return 2.0 * hidden * width * projections, absent


def _experts(geometry: Geometry) -> tuple[float, tuple[str, ...]]:
    (hidden, width, shared, top_k, projections), absent = need(
        geometry, "hidden", "expert_ffn", "shared_expert_ffn", "top_k", "ffn_projections"
    )
    return 2.0 * hidden * projections * (width * top_k + shared), absent


MEGATRON_FORMULAS = (
    FlopsFormula(
        "megatron",
        "sum over GEMMs, causal half of attention, MTP, shared experts; Megatron-Core 0.12 and later",
        "Megatron-Core, num_floating_point_operations, megatron/training/training.py",
        megatron,
        framework="megatron",
    ),
    FlopsFormula(
        "megatron_full",
        "sum over GEMMs, full attention; Megatron-Core 0.5 to 0.10",
        "Megatron-Core 0.5, num_floating_point_operations; Narayanan et al. 2021, arXiv:2104.04473, appendix",
        megatron_full,
        framework="megatron",
    ),
    FlopsFormula(
        "pattern",
        "sum over the blocks of a pattern; R as the Mamba block",
        "Megatron-Core, hybrid_flops, megatron/training/training.py",
        pattern,
    ),
)


def blocks_as_they_are(geometry: Geometry) -> FlopsPerToken:
    """FLOPs a token of a stack that a pattern describes."""
    if geometry.blocks is None:
        return missing([geometry.path("blocks"), *need(geometry, "layers")[1]])
    if BlockKind.DELTA in geometry.blocks or geometry.siso:
        return FlopsPerToken(None, because="no sum is known here for gated delta nets and Mamba-3 without MIMO")
    (hidden, vocabulary, length, depth), absent = need(geometry, "hidden", "vocabulary", "sequence_length", "mtp_depth")
    forward = 2.0 * hidden * vocabulary * (1 + depth)
    whole = geometry.blocks.get(BlockKind.ATTENTION, 0)
    sparse = geometry.blocks.get(BlockKind.SPARSE_ATTENTION, 0) + geometry.sparse
    total = 3.0 * forward
    absent += geometry.lacking
    for kind, count in geometry.blocks.items():
        flops, more = _forward(geometry, kind, length)
        total += 3.0 * (count if kind is not BlockKind.ATTENTION else whole - geometry.sparse) * flops
        absent += more
    if sparse:
        flops, more = _sparse(geometry, length)
        total += sparse * flops
        absent += more
    return missing(absent) if absent else FlopsPerToken(total)


def _forward(geometry: Geometry, kind: BlockKind, length: int) -> tuple[float, tuple[str, ...]]:
    if kind is BlockKind.SPARSE_ATTENTION:
        return 0.0, ()  # counted with those that the attention kinds call sparse
    if kind is BlockKind.ATTENTION:
        return (attention_work if geometry.latent is None else latent_work)(geometry, length, 0.5)
    recurrence, mamba3 = geometry.recurrence, geometry.mamba3
    if kind is BlockKind.RECURRENT and recurrence is not None:
        (hidden,), absent = need(geometry, "hidden")
        products = 2.0 * hidden * (recurrence.columns + recurrence.inner)
        return products + 8.0 * recurrence.convolved + recurrence.scan(), absent
    if kind not in STATEFUL or mamba3 is None:
        return block_work(geometry, kind, length)
    (hidden, state, groups, heads), absent = need(geometry, "hidden", "ssm_state", "ssm_groups", "ssm_heads")
    inner = 2 * hidden
    columns = sum(mamba3.matrix(hidden, inner, heads, groups, state))
    return 2.0 * hidden * (columns + inner) + mamba3.scan(inner, state), absent


def _sparse(geometry: Geometry, length: int) -> tuple[float, tuple[str, ...]]:
    """Forward and backward of attention over the top k, and of the indexer, which learns from its own loss alone."""
    whole, absent = (attention_work if geometry.latent is None else latent_work)(geometry, length, 0.0)
    (hidden, heads), more = need(geometry, "hidden", "heads")
    indexer = geometry.indexer
    if indexer is None:
        return 0.0, absent + more + tuple(paths[0] for paths in INDEXER)
    width = geometry.latent
    head = 2 * (geometry.head_dim or 0) if width is None else width.nope + width.rope + width.value
    core = 2.0 * heads * head * indexer.seen(length)
    query = hidden if width is None or not width.query else width.query
    selecting = 2.0 * indexer.projections(hidden, query) + indexer.scoring(length)
    return 3.0 * (whole + core) + (3.0 if indexer.trained else 1.0) * selecting, absent + more


HYBRID_FORMULAS = (
    FlopsFormula(
        "blocks",
        "sum over the blocks of a pattern as they are: top-k attention and its indexer, Mamba-3 MIMO, M2RNN",
        "DeepSeek-V3.2-Exp 2025, section 2.1; mamba_ssm, modules/mamba3.py; Mishra et al. 2026, arXiv:2603.14360",
        blocks_as_they_are,
    ),
)


FORWARD = 2.0  # FLOPs a parameter
MULTIPLIED = 0.25  # of a stated count: 28 % of MiniLM-L6's and 31 % of XLM-R base's parameters are not embeddings
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
