"""Megatron-LM's arguments, as its training loop holds them: what was asked for, and never what ran.

`megatron.training.global_vars` keeps one object of arguments once it is initialised. An attribute that is there states
its leaf, the value for *off* included; one that this version does not have states nothing. What the receipt has no leaf
for is stated as a feature where it moves speed, memory or the model.
Sources: `megatron/training/arguments.py`, `global_vars.py`, core 0.9 to 0.20.
"""

from __future__ import annotations

from receipts.emit.probes import loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.stated import Stated

NAME = "megatron"
_GLOBALS = ("megatron.training.global_vars", "megatron.global_vars")
_WHOLE = {
    "hardware.chips": ("world_size",),
    "parallelism.tensor": ("tensor_model_parallel_size",),
    "parallelism.pipeline": ("pipeline_model_parallel_size",),
    "parallelism.context": ("context_parallel_size",),
    "parallelism.expert": ("expert_model_parallel_size",),
    "parallelism.expert_tensor": ("expert_tensor_parallel_size",),
    "parallelism.data": ("data_parallel_size",),
    "batch.micro_batch": ("micro_batch_size",),
    "batch.global_batch": ("global_batch_size",),
    "batch.sequence_length": ("seq_length", "encoder_seq_length"),
    "model.depth": ("num_layers", "encoder_num_layers"),
    "model.hidden": ("hidden_size",),
    "model.heads": ("num_attention_heads",),
    "model.head_dim": ("kv_channels",),
    "model.ffn": ("ffn_hidden_size",),
    "model.vocabulary": ("padded_vocab_size",),
    "model.ssm_state": ("mamba_state_dim",),
    "model.ssm_heads": ("mamba_num_heads",),
    "model.ssm_groups": ("mamba_num_groups",),
}
_MAMBA = ("model.ssm_state", "model.ssm_heads", "model.ssm_groups")
_OVERLAPS = (
    *("overlap_grad_reduce", "overlap_param_gather", "overlap_param_gather_with_optimizer_step", "tp_comm_overlap"),
    *("overlap_p2p_comm", "overlap_moe_expert_parallel_comm", "delay_wgrad_compute", "moe_shared_expert_overlap"),
)
_FEATURES = (
    *("add_bias_linear", "apply_rope_fusion", "attention_dropout", "attention_softmax_in_fp32", "bias_dropout_fusion"),
    *("bias_gelu_fusion", "bias_swiglu_fusion", "calculate_per_token_loss", "clip_grad", "cp_comm_type"),
    *("cpu_offloading", "ddp_average_in_collective", "ddp_bucket_size", "ddp_num_buckets", "deterministic_mode"),
    *("gradient_accumulation_fusion", "hidden_dropout", "manual_gc", "masked_softmax_fusion", "nccl_ub"),
    *("multi_latent_attention", "normalization", "num_distributed_optimizer_instances", "optimizer_cpu_offload"),
    *("position_embedding_type", "qk_layernorm", "rampup_batch_size", "use_precision_aware_optimizer", "window_size"),
)
_EXPERT_FEATURES = (
    *("moe_grouped_gemm", "moe_pad_expert_input_to_capacity", "moe_permute_fusion", "moe_router_force_load_balancing"),
    *("moe_router_fusion", "moe_router_load_balancing_type", "moe_layer_freq"),
)
_FP8_FEATURES = (
    *("fp8_param_gather", "fp8_wgrad", "fp8_output_proj", "fp8_dot_product_attention", "fp8_multi_head_attention"),
)
_TE_ATTENTION = {"flash": "te_flash", "fused": "te_fused", "unfused": "te_unfused", "local": "math"}
_LOCAL_ATTENTION = {"flash": "flash2", "unfused": "math", "local": "math"}
_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "uint8": "fp8", "float8_e4m3fn": "fp8"}
_STRATEGIES = {"optim": "zero1", "optim_grads": "zero2", "optim_grads_params": "zero3", "no_shard": "ddp"}


class Arguments:
    """Megatron's arguments by name; ``has`` tells an argument that says nothing (None) from one that is not there."""

    def __init__(self, found: Any) -> None:
        self.found: dict[str, Any] = dict(vars(found))

    def has(self, name: str) -> bool:
        """Whether this version has such an argument."""
        return name in self.found

    def off(self, name: str) -> bool:
        """Whether it is there and says nothing."""
        return self.has(name) and self.found[name] in (None, "", "none", "None")

    def get(self, *names: str) -> Any:
        """The first of some arguments that says something; None where none does."""
        return next((self.found[name] for name in names if self.has(name) and not self.off(name)), None)

    def whole(self, *names: str) -> int | None:
        """A whole number above zero."""
        value = self.get(*names)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else None

    def flag(self, name: str) -> bool | None:
        """A switch; None where it is not there, or no switch."""
        value = self.found.get(name)
        return value if isinstance(value, bool) else None

    def word(self, *names: str) -> str | None:
        """A text, or the name of an enumeration's member or of a type, without what stands before its last dot."""
        value = self.get(*names)
        return None if value is None else str(getattr(value, "name", value)).rpartition(".")[2]

    def dtype(self, name: str) -> str | None:
        """A torch type in short."""
        word = self.word(name)
        return None if word is None else _DTYPES.get(word, word if word in _DTYPES.values() else None)

    def __repr__(self) -> str:
        return f"Arguments({len(self.found)})"


def at_phase(stated: Stated, phase: str) -> None:
    """State the arguments once they are there, which is after Megatron's own initialisation."""
    if phase in ("post_step0", "steady"):
        found = arguments()
        if found is not None:
            state(stated, Arguments(found))


def arguments() -> Any:
    """The object of arguments; None before Megatron has parsed them."""
    return next((held for name in _GLOBALS if (held := loaded.part(name, "_GLOBAL_ARGS")) is not None), None)


def state(stated: Stated, given: Arguments) -> None:
    """State every leaf that these arguments give."""
    readings = (_layout, _model, _experts, _precision, _optimisation, _recompute, _path, _graphs, _features, _host)
    for reading in readings:
        try:
            reading(stated, given)
        except Exception as error:
            stated.note(f"{reading.__name__.strip('_')}: {type(error).__name__}: {str(error)[:200]}")


def _host(stated: Stated, given: Arguments) -> None:
    stated.put("path.witnessed.framework", "megatron-lm")
    stated.put("path.witnessed.frameworks", ["megatron-lm"])
    graphs = loaded.part("megatron.core.transformer.cuda_graphs", "_CudagraphGlobalRecord")
    if graphs is not None and given.word("cuda_graph_impl") == "local":
        stated.put("path.witnessed.cuda_graphs", bool(getattr(graphs, "cudagraph_created", False)))


def _layout(stated: Stated, given: Arguments) -> None:
    hybrid = given.get("hybrid_layer_pattern", "hybrid_override_pattern") or given.flag("is_hybrid_model")
    for path, names in _WHOLE.items():
        if path not in _MAMBA or hybrid:
            stated.put(path, given.whole(*names))
    stated.put("parallelism.sequence", given.flag("sequence_parallel"))
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
        kind = _STRATEGIES.get(given.word("data_parallel_sharding_strategy") or "", "")
        stated.put("parallelism.strategy", f"megatron_fsdp_{kind}".rstrip("_"))
    elif (sharded := given.flag("use_distributed_optimizer")) is not None:
        stated.put("parallelism.strategy", "zero1" if sharded else "ddp")


def _model(stated: Stated, given: Arguments) -> None:
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
    spec = given.get("spec")
    stated.put("model.spec", " ".join(spec) if isinstance(spec, list | tuple) else spec)
    stated.put("model.sparse_attention", given.word("experimental_attention_variant"))


def _experts(stated: Stated, given: Arguments) -> None:
    if given.off("num_experts"):
        stated.put("model.experts", 0)
        stated.put("path.intended.dispatch", "none")
    experts = given.whole("num_experts", "num_moe_experts")
    if experts is None:
        return
    stated.put("model.experts", experts)
    stated.put("model.top_k", given.whole("moe_router_topk"))
    stated.put("model.capacity_factor", given.get("moe_expert_capacity_factor"))
    stated.put("model.expert_ffn", given.whole("moe_ffn_hidden_size", "ffn_hidden_size"))
    shared = "moe_shared_expert_intermediate_size"
    stated.put("model.shared_expert_ffn", 0 if given.off(shared) else given.whole(shared))
    kind = given.word("moe_token_dispatcher_type")
    backend = given.word("moe_flex_dispatcher_backend")
    if kind == "flex":
        kind = "deepep" if given.flag("moe_enable_deepep") else backend or kind
    stated.put("path.intended.dispatch", kind)


def _precision(stated: Stated, given: Arguments) -> None:
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
    stated.put("numerics.parameter_dtype", given.dtype("params_dtype"))
    full = given.flag("accumulate_allreduce_grads_in_fp32")
    if given.flag("grad_reduce_in_bf16"):
        stated.put("numerics.reduction_dtype", "bf16")
    elif full is not None:
        stated.put("numerics.reduction_dtype", "fp32" if full else given.dtype("params_dtype"))


def _optimisation(stated: Stated, given: Arguments) -> None:
    stated.put("numerics.optimizer", given.word("optimizer"))
    stated.put("numerics.optimizer_state_dtype", given.dtype("exp_avg_dtype"))
    stated.put("numerics.learning_rate", given.get("lr"))
    stated.put("numerics.seed", given.get("seed"))
    style = given.word("lr_decay_style")
    if style is not None:
        names = ["lr_warmup_iters", "lr_warmup_samples", "lr_warmup_fraction", "lr_decay_iters", "lr_decay_samples"]
        names += ["lr_wsd_decay_style", "min_lr"] if style.upper() == "WSD" else ["min_lr"]
        rest = [f"{name}={given.get(name)}" for name in names if given.get(name) is not None]
        stated.put("numerics.schedule", " ".join([style, *rest]))
    if given.flag("mock_data"):
        stated.put("data.dataset", "mock")
        stated.put("data.kind", "synthetic")
    elif path := given.get("data_path", "train_data_path"):
        stated.put("data.dataset", " ".join(map(str, path)) if isinstance(path, list | tuple) else str(path))
        stated.put("data.kind", "real")


def _recompute(stated: Stated, given: Arguments) -> None:
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


def _path(stated: Stated, given: Arguments) -> None:
    implementation = given.word("transformer_impl")
    te = implementation == "transformer_engine"
    if te or implementation == "local":
        stated.put("path.intended.gemm", "te" if te else "cublas")
    backend = given.word("attention_backend") or ""
    known = _LOCAL_ATTENTION if implementation == "local" else _TE_ATTENTION
    if backend == "auto":
        # It permits the unfused backend too, so it names no path.
        stated.put("features.attention_backend", "auto")
    elif backend in known:
        stated.put("path.intended.attention", known[backend])
    elif given.flag("use_flash_attn"):
        stated.put("path.intended.attention", "te_flash" if te else "flash2")
    asked = {name: given.flag(name) for name in _OVERLAPS if given.flag(name) is not None}
    if asked:
        stated.put("path.intended.overlap", "+".join(name for name, on in asked.items() if on) or "none")
    fused = given.flag("cross_entropy_loss_fusion")
    if fused is not None:
        kind = given.word("cross_entropy_fusion_impl") or "native"
        stated.put("path.intended.cross_entropy", f"fused_{kind}" if fused else "unfused")


def _graphs(stated: Stated, given: Arguments) -> None:
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


def _features(stated: Stated, given: Arguments) -> None:
    names = list(_FEATURES)
    if given.whole("num_experts", "num_moe_experts"):
        names += _EXPERT_FEATURES
    if given.get("fp8", "fp8_format"):
        names += _FP8_FEATURES
    for name in names:
        value = given.get(name)
        if isinstance(value, bool | int | float | str):
            stated.put(f"features.{name}", value)
        elif value is not None:
            stated.put(f"features.{name}", str(getattr(value, "name", value))[:400])
