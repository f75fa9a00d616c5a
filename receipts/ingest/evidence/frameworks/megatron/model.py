"""The architecture in Megatron's arguments: dimensions, routing, hybrid patterns."""

from __future__ import annotations

from typing import Final

from receipts.ingest.evidence.arguments import Arguments, Leaves

_PATTERNS: Final = ("hybrid_layer_pattern", "hybrid_override_pattern")


def state(leaves: Leaves) -> None:
    """State the leaves of `model` that the arguments give."""
    arguments = leaves.arguments
    _key_value_heads(leaves, arguments.integer("num_attention_heads"))
    _projections(leaves)
    _experts(leaves)
    _prediction(leaves)
    _hybrid(leaves)
    untied = arguments.flag("untie_embeddings_and_output_weights")
    if untied is not None:
        leaves.put("model.tied_embeddings", not untied, "untie_embeddings_and_output_weights")
    shared = arguments.flag("share_embeddings_and_output_weights")
    leaves.put("model.tied_embeddings", shared, "share_embeddings_and_output_weights")


def has_experts(arguments: Arguments) -> bool | None:
    """Whether the model has experts; None where the arguments do not say."""
    for name in ("num_experts", "num_moe_experts"):
        if name in arguments.values:
            # Megatron-DeepSpeed gives a list, [1] for a dense model.
            text = (arguments.text(name) or "").strip("[]")
            return not arguments.off(name) and text not in {"0", "1"}
    return None


def is_hybrid(arguments: Arguments) -> bool:
    """Whether layers of several kinds alternate."""
    return arguments.name(*_PATTERNS) is not None or arguments.flag("is_hybrid_model") is True


def _key_value_heads(leaves: Leaves, heads: int | None) -> None:
    arguments = leaves.arguments
    if arguments.flag("multi_latent_attention"):
        return
    if arguments.flag("group_query_attention") is False:
        # The number of groups is 1 then, and unused: every head has keys and values of its own.
        leaves.put("model.kv_heads", heads, "group_query_attention")
        return
    stated = leaves.whole("model.kv_heads", "num_query_groups", "num_key_value_heads")
    if stated is None and arguments.off("num_query_groups"):
        leaves.put("model.kv_heads", heads, "num_query_groups")


def _projections(leaves: Leaves) -> None:
    arguments = leaves.arguments
    gates = [name for name in ("swiglu", "quick_geglu", "gated_linear_unit") if arguments.flag(name) is not None]
    if gates:
        gated = next((name for name in gates if arguments.flag(name)), None)
        leaves.put("model.ffn_projections", 3 if gated else 2, gated or gates[0])


def _experts(leaves: Leaves) -> None:
    arguments = leaves.arguments
    experts = has_experts(arguments)
    name = "num_experts" if "num_experts" in arguments.values else "num_moe_experts"
    if experts is False:
        leaves.put("model.experts", 0, name)
    if not experts:
        return
    text = (arguments.text(name) or "").strip("[]")
    leaves.put("model.experts", int(text) if text.isdigit() and len(text) < 10 else None, name)
    if leaves.whole("model.expert_ffn", "moe_ffn_hidden_size") is None and arguments.off("moe_ffn_hidden_size"):
        leaves.put("model.expert_ffn", arguments.integer("ffn_hidden_size"), "ffn_hidden_size")
    shared = "moe_shared_expert_intermediate_size"
    if arguments.off(shared):
        leaves.put("model.shared_expert_ffn", 0, shared)
    else:
        leaves.whole("model.shared_expert_ffn", shared)


def _prediction(leaves: Leaves) -> None:
    arguments = leaves.arguments
    if arguments.off("mtp_num_layers"):
        leaves.put("model.mtp_depth", 0, "mtp_num_layers")
    elif leaves.whole("model.mtp_depth", "mtp_num_layers", least=0):
        wirings = {"mtp_use_repeated_layer": "repeated", "mtp_standalone": "standalone"}
        for name, wiring in wirings.items():
            if arguments.flag(name):
                leaves.put("model.mtp_wiring", wiring, name)


def _hybrid(leaves: Leaves) -> None:
    arguments = leaves.arguments
    name = arguments.name(*_PATTERNS)
    if name is not None:
        leaves.put("model.pattern", arguments.text(name), name)
        leaves.put("model.alphabet", "nemo", name)
