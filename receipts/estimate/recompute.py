"""Recompute policies: which saved tensors a block keeps, read from what people write."""

from __future__ import annotations

import re
from collections.abc import Iterable

from receipts.estimate.kept import SavedTensor

NONE: frozenset[str] = frozenset()
FULL = frozenset({"full"})
# Every block input lies in host memory between forward and backward.
INPUT_OFFLOADED = "input offloaded"
_INPUTS = {"decoder_layer_input", "layer_input", "block_input"}
# Modules of Megatron-Core's `recompute_modules`, MaxText's policies and everyday words, and the tensors they drop.
# core_attn: section 5 of arXiv:2205.05198 (the scores). moe_act, mlp, layernorm: transformer_config.py.
_DROPS: dict[str, tuple[str, ...]] = {
    # Sparse attention chooses its keys in there.
    "core_attn": ("scores", "chosen keys", "index queries and keys"),
    "mla_up_proj": ("query, key, value",),
    "layernorm": ("norm output",),
    "moe_act": ("expert activation",),
    "shared_experts": ("shared expert hidden", "shared expert activation"),
    "moe": ("expert hidden", "expert activation", "shared expert hidden", "shared expert activation", "receive"),
    "mlp": ("mlp hidden", "mlp activation"),
    "mamba": ("projections", "rotary angles", "forget gate", "scan output", "gated output", "states"),
    "activations": (
        "norm output", "mlp activation", "expert activation", "shared expert activation", "gated output",
    ),
}  # fmt: skip
_WORDS = {
    "core_attention": "core_attn",
    "attention": "core_attn",
    "core attention": "core_attn",
    "layer_norm": "layernorm",
    "norm": "layernorm",
    "mlp_act": "activations",
    "activation": "activations",
    "minimal": "activations",
    "save_dots": "activations",
    "shared_expert": "shared_experts",
}


def policy_of(text: str) -> frozenset[str] | None:
    """The policy that a text means: ``none``, ``full``, ``selective: moe_act mlp``; None where it cannot be told.

    ``selective`` alone is the paper's: the scores of attention. ``grad checkpoint`` is full. Tensors that a policy
    offloads to the host take no memory of the chip: ``custom, offload decoder_layer_input query_proj`` and
    ``minimal_offloaded`` keep what ``full`` keeps, and without ``decoder_layer_input`` its input (MaxText,
    configs/base.yml, remat_policy).
    """
    lowered = text.strip().lower()
    if lowered in ("none", "no", "off", "false"):
        return NONE
    words = [word for word in re.split(r"[^a-z_]+", lowered.replace("layer norm", "layernorm")) if word]
    if any("offload" in word for word in words):
        return FULL | ({INPUT_OFFLOADED} if _INPUTS & set(words) else set())
    modules = {_WORDS.get(word, word) for word in words}
    named = frozenset(modules & _DROPS.keys())
    if named:
        return named
    if {"full", "uniform", "checkpoint", "checkpointing"} & modules:
        return FULL
    # Of torchtitan, `selective: op` and `selective: 2` keep every second product, or layer.
    return frozenset({"core_attn"}) if lowered == "selective" else None


def survives(policy: frozenset[str], saved: Iterable[SavedTensor]) -> float:
    """Bytes that a block keeps under a policy. A fully recomputed block keeps its input (arXiv:2205.05198, 5)."""
    if policy >= FULL:
        kept = () if INPUT_OFFLOADED in policy else ("block input",)
        return sum(item.bytes for item in saved if item.name in kept)
    dropped = {name for module in policy for name in _DROPS.get(module, ())}
    return sum(item.bytes for item in saved if item.name not in dropped)


def drops(policy: frozenset[str], name: str) -> bool:
    """Whether a policy recomputes the tensor of that name."""
    return policy >= FULL or any(name in _DROPS.get(module, ()) for module in policy)
