"""What Megatron's arguments ask for, as leaves of a receipt.

The rules are the recorder's, which has the object that holds the arguments, and the log reader's, which has their text.

An argument that is there states its leaf, the value for *off* included; one that is absent states nothing. What the
receipt has no leaf for is a feature where it moves speed, memory or the model. Megatron-Bridge and NeMo use the names
of `TransformerConfig`, which are the arguments' names but for a few.
Source: megatron/training/arguments.py of core 0.20, older spellings from v2.0 on.
"""

from __future__ import annotations

import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    # A leaf, its value (None states nothing), and the argument that it is from.
    Put = Callable[[str, Any, str], None]

    class Given(Protocol):
        """Arguments by name. One that is *off* is there and says nothing; ``name`` is the first that says something."""

        def has(self, name: str) -> bool: ...
        def off(self, name: str) -> bool: ...
        def name(self, *names: str) -> str | None: ...
        def text(self, name: str) -> str | None: ...
        def words(self, name: str) -> Sequence[str]: ...
        def integer(self, name: str) -> int | None: ...
        def flag(self, name: str) -> bool | None: ...
        def dtype(self, name: str) -> str | None: ...
        def scalar(self, name: str) -> Any: ...
        def read(self, name: str, entry: Mapping[str, Any]) -> Any: ...


_PATTERNS = ("hybrid_layer_pattern", "hybrid_override_pattern")
_SCOPE = re.compile(r"[A-Za-z_][\w.]{0,60}")


@lru_cache(maxsize=1)
def names() -> Mapping[str, Any]:
    """Megatron's names: the generated ``megatron.json`` of this package."""
    import json
    import os

    with open(os.path.join(os.path.dirname(__file__), "megatron.json"), encoding="utf-8") as stream:
        table: Mapping[str, Any] = json.load(stream)
    return table


def _idle(given: Given) -> dict[str | None, bool]:
    """What the arguments of a kind are idle without: experts, FP8, layers of several kinds, latent attention."""
    hybrid = given.name(*_PATTERNS) is not None or given.flag("is_hybrid_model") is True
    latent = given.flag("multi_latent_attention") is True
    return {"experts": not _has_experts(given), "fp8": not _eight(given), "hybrid": not hybrid, "latent": not latent}


def plain(put: Put, given: Given) -> None:
    """The leaves that one argument states, by the first of its names that has a value."""
    idle = _idle(given)
    for path, entry in names()["arguments"].items():
        if not idle.get(entry.get("idle_unless"), False):
            values = ((name, given.read(name, entry)) for name in entry["names"])
            name, value = next((item for item in values if item[1] is not None), ("", None))
            put(path, value, name)


def stages(put: Put, given: Given) -> None:
    """Virtual stages of the pipeline, whose number follows from their layers where it is not kept."""
    size, layers = "virtual_pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage"
    per_stage, depth = given.integer(layers), given.integer("num_layers")
    count = given.integer("pipeline_model_parallel_size")
    if (stated := _whole(given, size)) is not None:
        put("parallelism.virtual_pipeline", stated, size)
    elif per_stage and depth and count and depth % (count * per_stage) == 0:
        put("parallelism.virtual_pipeline", depth // count // per_stage, layers)
    elif given.off(size) and not per_stage:
        put("parallelism.virtual_pipeline", 1, size)
    if layout := given.name("pipeline_model_parallel_layout"):
        put("parallelism.stage_layout", given.text(layout), layout)


def sharding(put: Put, given: Given) -> None:
    """What shards weights, gradients and the optimizer's state."""
    stage = given.integer("zero_stage")
    fsdp = next((name for name in ("use_megatron_fsdp", "use_custom_fsdp") if given.flag(name)), None)
    if given.flag("use_torch_fsdp2"):
        put("parallelism.strategy", "fsdp2", "use_torch_fsdp2")
    elif fsdp:
        kind = names()["words"]["sharding"].get(given.text("data_parallel_sharding_strategy") or "", "")
        put("parallelism.strategy", f"megatron_fsdp_{kind}".rstrip("_"), fsdp)
    elif given.flag("deepspeed") and stage in {0, 1, 2, 3}:
        put("parallelism.strategy", f"zero{stage}" if stage else "ddp", "zero_stage")
    elif (sharded := given.flag("use_distributed_optimizer")) is not None:
        put("parallelism.strategy", "zero1" if sharded else "ddp", "use_distributed_optimizer")


def model(put: Put, given: Given) -> None:
    """Heads, projections, depths of prediction, a hybrid's pattern, ties."""
    heads, groups = given.integer("num_attention_heads"), ("num_query_groups", "num_key_value_heads")
    if not given.flag("multi_latent_attention"):
        # The number of groups is 1 without grouped queries, and unused: every head has keys and values of its own.
        if given.flag("group_query_attention") is False:
            put("model.kv_heads", heads, "group_query_attention")
        elif stated := next((name for name in groups if _whole(given, name)), None):
            put("model.kv_heads", given.integer(stated), stated)
        elif given.off("num_query_groups"):
            put("model.kv_heads", heads, "num_query_groups")
    gates = [name for name in ("swiglu", "quick_geglu", "gated_linear_unit") if given.flag(name) is not None]
    if gates:
        gated = next((name for name in gates if given.flag(name)), None)
        put("model.ffn_projections", 3 if gated else 2, gated or gates[0])
    depth = 0 if given.off("mtp_num_layers") else _whole(given, "mtp_num_layers", least=0)
    put("model.mtp_depth", depth, "mtp_num_layers")
    weight = "mtp_loss_scaling_factor"
    put("numerics.mtp_loss_weight", given.read(weight, {"kind": "amount"}) if depth else None, weight)
    for name, wiring in (("mtp_use_repeated_layer", "repeated"), ("mtp_standalone", "standalone")):
        put("model.mtp_wiring", wiring if depth and given.flag(name) else None, name)
    if pattern := given.name(*_PATTERNS):
        put("model.pattern", given.text(pattern), pattern)
        put("model.alphabet", "nemo", pattern)
    untied = given.flag("untie_embeddings_and_output_weights")
    put("model.tied_embeddings", None if untied is None else not untied, "untie_embeddings_and_output_weights")
    shared = "share_embeddings_and_output_weights"
    put("model.tied_embeddings", given.flag(shared), shared)


def experts(put: Put, given: Given) -> None:
    """Experts, their width, and how tokens get to them."""
    there = _has_experts(given)
    name = "num_experts" if given.has("num_experts") else "num_moe_experts"
    dispatcher = given.name("moe_token_dispatcher_type")
    if there is False:
        put("model.experts", 0, name)
        put("path.intended.dispatch", "none", dispatcher or name)
    if not there:
        return
    text = (given.text(name) or "").strip("[]")
    put("model.experts", int(text) if text.isdigit() and len(text) < 10 else None, name)
    own = _whole(given, "moe_ffn_hidden_size")
    if own is not None or given.off("moe_ffn_hidden_size"):
        width = "moe_ffn_hidden_size" if own else "ffn_hidden_size"
        put("model.expert_ffn", given.integer(width), width)
    shared = "moe_shared_expert_intermediate_size"
    put("model.shared_expert_ffn", 0 if given.off(shared) else _whole(given, shared), shared)
    if dispatcher is not None:
        kind = given.text(dispatcher)
        backend = given.name("moe_flex_dispatcher_backend")
        if kind == "flex" and (given.flag("moe_enable_deepep") or backend):
            kind = "deepep" if given.flag("moe_enable_deepep") or backend is None else given.text(backend)
        put("path.intended.dispatch", kind, dispatcher)


def precision(put: Put, given: Given) -> None:
    """Types of the matrix products and of the reduction of gradients."""
    eight, four = _eight(given), given.name("fp4", "fp4_format")
    halves = [name for name in ("bf16", "fp16") if given.flag(name)]
    if four and given.flag(four) is not False:
        put("numerics.compute_dtype", "fp4", four)
        put("features.fp4_recipe", given.scalar("fp4_recipe"), "fp4_recipe")
    elif eight:
        put("numerics.compute_dtype", "fp8", eight)
        put("features.fp8_format", given.text(eight) if given.flag(eight) is None else None, eight)
        put("numerics.fp8_recipe", given.text("fp8_recipe"), "fp8_recipe")
    elif halves:
        put("numerics.compute_dtype", halves[0], halves[0])
    elif given.flag("bf16") is False and given.flag("fp16") is False:
        put("numerics.compute_dtype", "fp32", "bf16")
    full = given.flag("accumulate_allreduce_grads_in_fp32")
    if given.flag("grad_reduce_in_bf16"):
        put("numerics.reduction_dtype", "bf16", "grad_reduce_in_bf16")
    elif full is not None:
        kind = "fp32" if full else given.dtype("params_dtype")
        put("numerics.reduction_dtype", kind, "accumulate_allreduce_grads_in_fp32")


def schedule(put: Put, given: Given) -> None:
    """The schedule of the learning rate, and the optimizer of what Muon leaves to another."""
    if "muon" in (given.text("optimizer") or ""):
        put("numerics.optimizer_other", given.text("muon_scalar_optimizer"), "muon_scalar_optimizer")
    if style := given.name("lr_decay_style"):
        kind = given.text(style) or ""
        words = [name for name in names()["lists"]["schedule"] if given.name(name)]
        rest = [f"{name}={given.text(name)}" for name in words if kind.upper() == "WSD" or "wsd" not in name]
        put("numerics.schedule", " ".join([kind, *rest]), style)


def recompute(put: Put, given: Given) -> None:
    """What is computed again in the backward pass."""
    granularity = ("recompute_granularity", "activations_checkpoint_granularity")
    method = given.name("recompute_method", "activations_checkpoint_method")
    layers = given.name("recompute_num_layers", "activations_checkpoint_num_layers")
    old = "checkpoint_activations"
    if name := given.name(*granularity):
        kind = given.text(name) or ""
        words = given.words("recompute_modules") if kind == "selective" and given.name("recompute_modules") else []
        if kind != "selective":
            words = [given.text(part) or "" for part in (method, layers) if part]
        put("numerics.recompute", f"{kind}: {' '.join(words)}" if words else kind, name)
    elif off := next((name for name in granularity if given.off(name)), None):
        put("numerics.recompute", "none", off)
    elif method:
        put("numerics.recompute", f"full: {given.text(method)}", method)
    elif (full := given.flag(old)) is not None:
        put("numerics.recompute", "full" if full else "none", old)


def data(put: Put, given: Given) -> None:
    """The data and its tokenizer."""
    if given.flag("mock_data"):
        put("data.dataset", "mock", "mock_data")
        put("data.kind", "synthetic", "mock_data")
    elif path := given.name("data_path", "train_data_path", "data_args_path"):
        put("data.dataset", " ".join(given.words(path))[:400], path)
        put("data.kind", "real", path)
    if kind := given.name("tokenizer_type"):
        of = given.name("tokenizer_model", "vocab_file", "tokenizer_name_or_path")
        put("data.tokenizer", " ".join(given.text(name) or "" for name in (kind, of) if name), kind)


def kernels(put: Put, given: Given) -> None:
    """The kernels that are asked for, and what is to overlap."""
    implementation = given.name("transformer_impl")
    text = given.text(implementation) if implementation else None
    te = text == "transformer_engine" or given.flag("transformer_engine")
    gemm = "te" if te else "cublas" if text == "local" else None
    put("path.intended.gemm", gemm, implementation or "transformer_engine")
    # NeMo prints the member of the enumeration whole: <AttnBackend.fused: 2>.
    backend = (given.text("attention_backend") or "").rsplit(".", 1)[-1].split(":")[0].strip("<>' ")
    known = names()["words"]["attention_local" if text == "local" else "attention"]
    old = next((name for name in ("use_flash_attn", "use_flash_attn_v2") if given.flag(name)), "")
    if backend == "auto":
        # It permits the unfused backend too, so it names no path.
        put("features.attention_backend", "auto", "attention_backend")
    elif backend in known:
        put("path.intended.attention", known[backend], "attention_backend")
    elif old:
        put("path.intended.attention", "te_flash" if te and old == "use_flash_attn" else "flash2", old)
    given_names = [name for name in names()["lists"]["overlaps"] if given.flag(name) is not None]
    if given_names:
        on = [name for name in given_names if given.flag(name)]
        put("path.intended.overlap", "+".join(on) or "none", (on or given_names)[0])
    fused = given.flag("cross_entropy_loss_fusion")
    if fused is not None:
        kind = given.text("cross_entropy_fusion_impl") or "native"
        put("path.intended.cross_entropy", f"fused_{kind}" if fused else "unfused", "cross_entropy_loss_fusion")


def graphs(put: Put, given: Given) -> None:
    """Who captures CUDA graphs, and of what."""
    own = "cuda_graph_impl"
    if given.has(own):
        kind, name = ("none" if given.off(own) else given.text(own)), own
    elif given.flag("external_cuda_graph"):
        kind, name = "transformer_engine", "external_cuda_graph"
    else:
        kind = {True: "local", False: "none"}.get(given.flag("enable_cuda_graph"))  # type: ignore[arg-type]
        name = "enable_cuda_graph"
    put("compile.cuda_graph_implementation", kind, name)
    scope = given.name("cuda_graph_scope", "cuda_graph_modules")
    if kind not in {None, "none"} and scope:
        words = [word.rsplit(".", 1)[-1] for word in _SCOPE.findall(" ".join(given.words(scope)))]
        put("compile.cuda_graph_scope", words[:40] or None, scope)


def features(put: Put, given: Given) -> None:
    """Arguments without a leaf that move speed, memory or the model."""
    idle = _idle(given)
    for unless, listed in names()["features"].items():
        for name in listed if not idle.get(unless, False) else ():
            put(f"features.{name}", given.scalar(name), name)


RULES: tuple[Callable[[Put, Given], None], ...] = (
    plain,
    stages,
    sharding,
    model,
    experts,
    precision,
    schedule,
    recompute,
    data,
    kernels,
    graphs,
    features,
)


def _has_experts(given: Given) -> bool | None:
    """Whether the model has experts; None where the arguments do not say."""
    name = next((name for name in ("num_experts", "num_moe_experts") if given.has(name)), None)
    if name is None:
        return None
    # Megatron-DeepSpeed gives a list, [1] for a dense model.
    return not given.off(name) and (given.text(name) or "").strip("[]") not in {"0", "1"}


def _eight(given: Given) -> str | None:
    """The argument that switches FP8 on, or None: a format, or a switch that is not off."""
    name = given.name("fp8", "fp8_format")
    return name if name and given.flag(name) is not False else None


def _whole(given: Given, name: str, *, least: int = 1) -> int | None:
    """A whole number of at least ``least``."""
    value = given.integer(name)
    return value if value is not None and value >= least else None
