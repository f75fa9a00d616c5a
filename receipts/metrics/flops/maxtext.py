"""MaxText's sum over matmuls, in the eras of `calculate_tflops_training_per_device`.

Forward, a token: feed-forward 2·h·f a projection; attention projections 2·h·(q + 2·kv) and 2·h·q; scores and values
4·T·q, or half of it where the causal mask is counted; head 2·h·V; router 2·h·E. Times three for the backward pass.
The printed line does not say which era it is of: the same step differs by up to 55 %.

Sliding windows, MLA, shared experts and models with dense and expert layers have terms of their own there, and are
not counted here.
"""

from __future__ import annotations

from functools import partial

from receipts.metrics.flops.formula import FlopsFormula, FlopsPerToken, missing, need
from receipts.metrics.flops.geometry import Geometry


def _sum(geometry: Geometry, *, attention_share: float, all_experts: bool) -> FlopsPerToken:
    numbers, absent = need(
        geometry,
        "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_projections", "vocabulary", "sequence_length",
    )  # fmt: skip
    layers, hidden, heads, kv_heads, head_dim, projections, vocabulary, length = numbers
    feed_forward, more = _feed_forward(geometry, hidden, projections, all_experts=all_experts)
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


def _feed_forward(
    geometry: Geometry, hidden: int, projections: int, *, all_experts: bool
) -> tuple[int, tuple[str, ...]]:
    if geometry.is_dense:
        (width,), absent = need(geometry, "ffn")
        return 2 * hidden * width * projections, absent
    width_name = "ffn" if geometry.expert_ffn is None else "expert_ffn"
    (width, experts, visited), absent = need(geometry, width_name, "experts", "experts" if all_experts else "top_k")
    return 2 * hidden * experts + visited * 2 * hidden * width * projections, absent


FORMULAS = (
    FlopsFormula(
        "maxtext",
        "sum over matmuls, causal half of attention, top-k experts; since July 2025",
        "MaxText a4c01726e (2025-07-18, pull request 1988), maxtext_utils.py",
        partial(_sum, attention_share=0.5, all_experts=False),
        framework="maxtext",
    ),
    FlopsFormula(
        "maxtext_noncausal",
        "sum over matmuls, full attention, top-k experts; May 2024 to July 2025, and every Trillium recipe",
        "MaxText 288912b92 (2024-05-31), maxtext_utils.py",
        partial(_sum, attention_share=1.0, all_experts=False),
        framework="maxtext",
    ),
    FlopsFormula(
        "maxtext_2024_05",
        "sum over matmuls, full attention, all experts; May 2024",
        "MaxText 353fb837c (2024-05-08), maxtext_utils.py",
        partial(_sum, attention_share=1.0, all_experts=True),
        framework="maxtext",
    ),
)
