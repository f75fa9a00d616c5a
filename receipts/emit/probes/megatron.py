"""Megatron-LM's arguments, as its training loop holds them: what was asked for, and never what ran.

`megatron.training.global_vars` keeps one object of arguments once it is initialised. An attribute that is there states
its leaf, the value for *off* included; one that this version does not have states nothing. What the receipt has no leaf
for is stated as a feature where it moves speed, memory or the model.
Sources: `megatron/training/arguments.py`, `global_vars.py`, core 0.9 to 0.20.
"""

from __future__ import annotations

from functools import lru_cache

from receipts.emit.contract import contract
from receipts.emit.probes import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from receipts.emit.stated import ProbeOutput

NAME = "megatron"
_GLOBALS = ("megatron.training.global_vars", "megatron.global_vars")
# How this reads what the vocabulary calls a kind.
_FP8 = {"uint8": "fp8", "float8_e4m3fn": "fp8"}


@lru_cache(maxsize=1)
def names() -> Mapping[str, Any]:
    """Megatron's names, as the reader of its logs knows them: the generated ``megatron.json`` of this package."""
    import json
    import os

    with open(os.path.join(os.path.dirname(os.path.dirname(__file__)), "megatron.json"), encoding="utf-8") as stream:
        table: Mapping[str, Any] = json.load(stream)
    return table


class MegatronArguments:
    """Megatron's arguments by name; ``has`` tells an argument that says nothing (None) from one that is not there."""

    def __init__(self, namespace: Any) -> None:
        self.arguments: dict[str, Any] = dict(vars(namespace))

    def has(self, name: str) -> bool:
        """Whether this version has such an argument."""
        return name in self.arguments

    def off(self, name: str) -> bool:
        """Whether it is there and says nothing."""
        return self.has(name) and self.arguments[name] in (None, "", "none", "None")

    def get(self, *names: str) -> Any:
        """The first of some arguments that says something; None where none does."""
        return next((self.arguments[name] for name in names if self.has(name) and not self.off(name)), None)

    def whole(self, *names: str) -> int | None:
        """A whole number above zero."""
        value = self.get(*names)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else None

    def flag(self, name: str) -> bool | None:
        """A switch; None where it is not there, or no switch."""
        value = self.arguments.get(name)
        return value if isinstance(value, bool) else None

    def word(self, *names: str) -> str | None:
        """A text, or the name of an enumeration's member or of a type, without what precedes its last dot."""
        value = self.get(*names)
        return None if value is None else str(getattr(value, "name", value)).rpartition(".")[2]

    def dtype(self, name: str) -> str | None:
        """A torch type in short."""
        word = self.word(name)
        known = contract().names
        precision = _FP8.get(word or "") or known.get(word or "", word)
        return precision if precision in {*known.values(), *_FP8.values()} else None

    def read(self, kind: str, names: list[str]) -> Any:
        """The first of some arguments that says something, as the kind that the vocabulary gives it."""
        value = self.get(*names)
        if kind == "count":
            return self.whole(*names)
        if kind in ("switch", "dtype"):
            return self.flag(names[0]) if kind == "switch" else self.dtype(names[0])
        if kind == "word" and not isinstance(value, list | tuple):
            return self.word(*names)
        return " ".join(map(str, value)) if kind == "word" else value

    def __repr__(self) -> str:
        return f"MegatronArguments({len(self.arguments)})"


def at_phase(stated: ProbeOutput, phase: str) -> None:
    """State the arguments once they are there, which is after Megatron's own initialisation."""
    if phase in ("post_step0", "steady"):
        stated_arguments = arguments()
        if stated_arguments is not None:
            state(stated, MegatronArguments(stated_arguments))


def arguments() -> Any:
    """The object of arguments; None before Megatron has parsed them."""
    return next((held for name in _GLOBALS if (held := loaded.part(name, "_GLOBAL_ARGS")) is not None), None)


def state(stated: ProbeOutput, given: MegatronArguments) -> None:
    """State every leaf that these arguments give."""
    readings = (_plain, _layout, _model, _experts, _precision, _schedule, _recompute, _path, _graphs, _features, _host)
    for reading in readings:
        try:
            reading(stated, given)
        except Exception as error:
            stated.note(f"{reading.__name__.strip('_')}: {type(error).__name__}: {str(error)[:200]}")


def _host(stated: ProbeOutput, given: MegatronArguments) -> None:
    stated.put("path.witnessed.framework", "megatron-lm")
    stated.put("path.witnessed.frameworks", ["megatron-lm"])
    graphs = loaded.part("megatron.core.transformer.cuda_graphs", "_CudagraphGlobalRecord")
    if graphs is not None and given.word("cuda_graph_impl") == "local":
        stated.put("path.witnessed.cuda_graphs", bool(getattr(graphs, "cudagraph_created", False)))


def _idle(given: MegatronArguments) -> dict[str, bool]:
    """What the arguments of a kind are idle without: experts, FP8, layers of several kinds."""
    hybrid = given.get("hybrid_layer_pattern", "hybrid_override_pattern") or given.flag("is_hybrid_model")
    experts = given.whole("num_experts", "num_moe_experts")
    return {"experts": not experts, "fp8": not given.get("fp8", "fp8_format"), "hybrid": not hybrid}


def _plain(stated: ProbeOutput, given: MegatronArguments) -> None:
    """The leaves that one argument states."""
    idle = _idle(given)
    for path, entry in names()["arguments"].items():
        if not idle.get(entry.get("idle_unless", ""), False):
            stated.put(path, given.read(entry["kind"], entry["names"]))


def _layout(stated: ProbeOutput, given: MegatronArguments) -> None:
    size, layers = "virtual_pipeline_model_parallel_size", given.whole("num_layers_per_virtual_pipeline_stage")
    stages, depth = given.whole("pipeline_model_parallel_size"), given.whole("num_layers")
    if given.whole(size):
        stated.put("parallelism.virtual_pipeline", given.whole(size))
    elif layers and stages and depth and depth % (stages * layers) == 0:
        stated.put("parallelism.virtual_pipeline", depth // stages // layers)
    elif given.off(size) and not layers:
        stated.put("parallelism.virtual_pipeline", 1)
    layout = given.get("pipeline_model_parallel_layout")
    stated.put("parallelism.stage_layout", None if layout is None else str(layout))
    if given.flag("use_torch_fsdp2"):
        stated.put("parallelism.strategy", "fsdp2")
    elif given.flag("use_megatron_fsdp") or given.flag("use_custom_fsdp"):
        kind = names()["words"]["sharding"].get(given.word("data_parallel_sharding_strategy") or "", "")
        stated.put("parallelism.strategy", f"megatron_fsdp_{kind}".rstrip("_"))
    elif (sharded := given.flag("use_distributed_optimizer")) is not None:
        stated.put("parallelism.strategy", "zero1" if sharded else "ddp")


def _model(stated: ProbeOutput, given: MegatronArguments) -> None:
    heads = given.whole("num_attention_heads")
    if not given.flag("multi_latent_attention"):
        # The number of groups is 1 without grouped queries, and unused: every head has keys and values of its own.
        grouped = given.flag("group_query_attention") is not False
        groups = given.whole("num_query_groups") if grouped else None
        own = given.flag("group_query_attention") is False or given.off("num_query_groups")
        stated.put("model.kv_heads", groups or (heads if own else None))
    gates = [given.flag(name) for name in ("swiglu", "quick_geglu", "gated_linear_unit")]
    if any(gate is not None for gate in gates):
        stated.put("model.ffn_projections", 3 if any(gates) else 2)
    if given.off("mtp_num_layers"):
        stated.put("model.mtp_depth", 0)
    else:
        stated.put("model.mtp_depth", given.whole("mtp_num_layers"))
    pattern = given.get("hybrid_layer_pattern", "hybrid_override_pattern")
    if pattern is not None:
        stated.put("model.pattern", str(pattern))
        stated.put("model.alphabet", "nemo")
    untied = given.flag("untie_embeddings_and_output_weights")
    stated.put("model.tied_embeddings", None if untied is None else not untied)


def _experts(stated: ProbeOutput, given: MegatronArguments) -> None:
    if given.off("num_experts"):
        stated.put("model.experts", 0)
        stated.put("path.intended.dispatch", "none")
    experts = given.whole("num_experts", "num_moe_experts")
    if experts is None:
        return
    stated.put("model.experts", experts)
    stated.put("model.expert_ffn", given.whole("moe_ffn_hidden_size", "ffn_hidden_size"))
    shared = "moe_shared_expert_intermediate_size"
    stated.put("model.shared_expert_ffn", 0 if given.off(shared) else given.whole(shared))
    kind = given.word("moe_token_dispatcher_type")
    backend = given.word("moe_flex_dispatcher_backend")
    if kind == "flex":
        kind = "deepep" if given.flag("moe_enable_deepep") else backend or kind
    stated.put("path.intended.dispatch", kind)


def _precision(stated: ProbeOutput, given: MegatronArguments) -> None:
    eight, four = given.get("fp8", "fp8_format"), given.get("fp4", "fp4_format")
    halves = [name for name in ("bf16", "fp16") if given.flag(name)]
    if four:
        stated.put("numerics.compute_dtype", "fp4")
    elif eight:
        stated.put("numerics.compute_dtype", "fp8")
        stated.put("numerics.fp8_recipe", given.word("fp8_recipe"))
        stated.put("features.fp8_format", str(eight) if isinstance(eight, str) else None)
    elif halves:
        stated.put("numerics.compute_dtype", halves[0])
    elif given.flag("bf16") is False and given.flag("fp16") is False:
        stated.put("numerics.compute_dtype", "fp32")
    full = given.flag("accumulate_allreduce_grads_in_fp32")
    if given.flag("grad_reduce_in_bf16"):
        stated.put("numerics.reduction_dtype", "bf16")
    elif full is not None:
        stated.put("numerics.reduction_dtype", "fp32" if full else given.dtype("params_dtype"))


def _schedule(stated: ProbeOutput, given: MegatronArguments) -> None:
    style = given.word("lr_decay_style")
    if style is not None:
        kept = [name for name in names()["lists"]["schedule"] if style.upper() == "WSD" or "wsd" not in name]
        rest = [f"{name}={given.get(name)}" for name in kept if given.get(name) is not None]
        stated.put("numerics.schedule", " ".join([style, *rest]))
    if given.flag("mock_data"):
        stated.put("data.dataset", "mock")
        stated.put("data.kind", "synthetic")
    elif path := given.get("data_path", "train_data_path"):
        stated.put("data.dataset", " ".join(map(str, path)) if isinstance(path, list | tuple) else str(path))
        stated.put("data.kind", "real")


def _recompute(stated: ProbeOutput, given: MegatronArguments) -> None:
    kind = given.word("recompute_granularity")
    if kind is None:
        stated.put("numerics.recompute", "none" if given.off("recompute_granularity") else None)
        return
    if kind == "selective":
        modules = given.get("recompute_modules")
        detail = " ".join(map(str, modules)) if isinstance(modules, list | tuple) else ""
    else:
        words = (given.word("recompute_method"), given.get("recompute_num_layers"))
        detail = " ".join(str(word) for word in words if word is not None)
    stated.put("numerics.recompute", f"{kind}: {detail}" if detail else kind)


def _path(stated: ProbeOutput, given: MegatronArguments) -> None:
    implementation = given.word("transformer_impl")
    te = implementation == "transformer_engine"
    if te or implementation == "local":
        stated.put("path.intended.gemm", "te" if te else "cublas")
    backend = given.word("attention_backend") or ""
    known = names()["words"]["attention_local" if implementation == "local" else "attention"]
    if backend == "auto":
        # It permits the unfused backend too, so it names no path.
        stated.put("features.attention_backend", "auto")
    elif backend in known:
        stated.put("path.intended.attention", known[backend])
    elif given.flag("use_flash_attn"):
        stated.put("path.intended.attention", "te_flash" if te else "flash2")
    overlaps = {name: given.flag(name) for name in names()["lists"]["overlaps"] if given.flag(name) is not None}
    if overlaps:
        stated.put("path.intended.overlap", "+".join(name for name, on in overlaps.items() if on) or "none")
    fused = given.flag("cross_entropy_loss_fusion")
    if fused is not None:
        kind = given.word("cross_entropy_fusion_impl") or "native"
        stated.put("path.intended.cross_entropy", f"fused_{kind}" if fused else "unfused")


def _graphs(stated: ProbeOutput, given: MegatronArguments) -> None:
    if given.has("cuda_graph_impl"):
        kind = given.word("cuda_graph_impl") or "none"
    elif given.flag("external_cuda_graph"):
        kind = "transformer_engine"
    elif given.flag("enable_cuda_graph") is not None:
        kind = "local" if given.flag("enable_cuda_graph") else "none"
    else:
        return
    stated.put("compile.cuda_graph_implementation", kind)
    scope = given.get("cuda_graph_scope", "cuda_graph_modules")
    if kind != "none" and scope:
        words = scope if isinstance(scope, list | tuple) else [scope]
        stated.put("compile.cuda_graph_scope", [str(getattr(word, "name", word)) for word in words][:40])


def _features(stated: ProbeOutput, given: MegatronArguments) -> None:
    idle = _idle(given)
    for name in (name for unless, kept in names()["features"].items() if not idle.get(unless, False) for name in kept):
        value = given.get(name)
        if isinstance(value, bool | int | float | str):
            stated.put(f"features.{name}", value)
        elif value is not None:
            stated.put(f"features.{name}", str(getattr(value, "name", value))[:400])
