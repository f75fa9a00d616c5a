"""Megatron-Core's sum over GEMMs, and the sum over the blocks of a pattern.

`num_floating_point_operations` in megatron/training/training.py, divided by the tokens of a batch. Each GEMM counts
two FLOPs a multiply-add, three times (forward and the two of backward). Recompute, norms, softmax and the router are
not counted. Megatron pads the vocabulary and the receipt may state it unpadded, which is a difference in the third
digit at most.
"""

from __future__ import annotations

from receipts.metrics.flops.formula import FlopsFormula, FlopsPerToken, missing, need
from receipts.metrics.flops.geometry import Geometry
from receipts.receipt.alphabets import BlockKind

# Blocks without a sum that the receipt's fields decide: their widths and top-k are not part of it.
_UNCOUNTED = (BlockKind.SPARSE_ATTENTION, BlockKind.DELTA)


def megatron(geometry: Geometry) -> FlopsPerToken:
    """Since core 0.12: causal half, MTP, shared experts and latent attention; a pattern is summed over its blocks."""
    return _transformer(geometry, core_share=0.5) if geometry.blocks is None else pattern(geometry)


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


def _transformer(geometry: Geometry, core_share: float) -> FlopsPerToken:
    (layers, hidden, vocabulary, length, depth), absent = need(
        geometry, "layers", "hidden", "vocabulary", "sequence_length", "mtp_depth"
    )
    if geometry.unsummed:
        return FlopsPerToken(None, because=geometry.unsummed)
    attention, more = (attention_work if geometry.latent is None else latent_work)(geometry, length, core_share)
    feed_forward, also = _mlp(geometry) if geometry.is_dense else _experts(geometry)
    if absent + more + also:
        return missing(absent + more + also)
    # An MTP depth is one more layer, its norms and its projection of two hidden vectors to one, and a head.
    joining = 2 * depth * (3 * hidden + 2 * hidden * hidden)
    head = 2 * hidden * vocabulary * (1 + depth)
    return FlopsPerToken(3.0 * ((layers + depth) * (attention + feed_forward) + joining + head))


def block_work(geometry: Geometry, kind: BlockKind, length: int) -> tuple[float, tuple[str, ...]]:
    """FLOPs a token of one block's forward pass, and the paths that it lacks."""
    if kind is BlockKind.ATTENTION:
        return attention_work(geometry, length, core_share=0.5)
    if kind is BlockKind.EXPERT:
        return _experts(geometry)
    return _mlp(geometry) if kind is BlockKind.MLP else _mamba(geometry)


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


def _mamba(geometry: Geometry) -> tuple[float, tuple[str, ...]]:
    (hidden, state, groups, heads), absent = need(geometry, "hidden", "ssm_state", "ssm_groups", "ssm_heads")
    inner = 2 * hidden
    into = 2.0 * hidden * (2 * inner + 2 * groups * state + heads)
    return into + 7.0 * inner * state + 2.0 * inner * hidden, absent


FORMULAS = (
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
