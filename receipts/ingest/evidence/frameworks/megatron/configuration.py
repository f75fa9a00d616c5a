"""Megatron's arguments as leaves of the receipt: what was asked for.

An argument that is in a dump states its leaf, the default for *off* included; one that is absent states nothing.
Megatron-Bridge and NeMo use the names of `TransformerConfig`, which are the arguments' names but for a few.
Source: megatron/training/arguments.py of core 0.20, older spellings from v2.0 on.
"""

from __future__ import annotations

from typing import Final

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.arguments import Arguments, Leaves
from receipts.ingest.evidence.frameworks.megatron import model as megatron_model
from receipts.ingest.evidence.frameworks.megatron import path as megatron_path
from receipts.ingest.evidence.reading import Reading

_TABLE: Final = vocabulary.table("megatron")


def state(reading: Reading, values: dict[str, tuple[str, int]], record: str = "") -> Arguments:
    """State every leaf that the arguments give; ``values`` maps a name to its text and its line."""
    arguments = Arguments(values)
    leaves = Leaves(reading, arguments, record)
    idle = {
        "experts": not megatron_model.has_experts(arguments),
        "fp8": not _eight(arguments),
        "hybrid": not megatron_model.is_hybrid(arguments),
    }
    for path, entry in _TABLE["arguments"].items():
        if not idle.get(entry.get("idle_unless"), False):
            leaves.read(path, entry)
    _virtual_pipeline(leaves)
    _sharding(leaves)
    megatron_model.state(leaves)
    _precision(leaves)
    _schedule(leaves)
    _recompute(leaves)
    megatron_path.state(leaves)
    _data(leaves)
    for unless, names in _TABLE["features"].items():
        for name in names if not idle.get(unless, False) else ():
            leaves.put(f"features.{name}", arguments.scalar(name), name)
    return arguments


def _virtual_pipeline(leaves: Leaves) -> None:
    arguments = leaves.arguments
    size, layers = "virtual_pipeline_model_parallel_size", "num_layers_per_virtual_pipeline_stage"
    if leaves.whole("parallelism.virtual_pipeline", size) is None:
        per_stage, depth = arguments.integer(layers), arguments.integer("num_layers")
        stages = arguments.integer("pipeline_model_parallel_size")
        if per_stage and depth and stages and depth % (stages * per_stage) == 0:
            leaves.put("parallelism.virtual_pipeline", depth // stages // per_stage, layers)
        elif arguments.off(size) and not per_stage:
            leaves.put("parallelism.virtual_pipeline", 1, size)
    layout = arguments.name("pipeline_model_parallel_layout")
    if layout:
        leaves.put("parallelism.stage_layout", arguments.text(layout), layout)


def _sharding(leaves: Leaves) -> None:
    arguments = leaves.arguments
    level = _TABLE["words"]["sharding"]
    stage = arguments.real("zero_stage")
    fsdp = next((name for name in ("use_megatron_fsdp", "use_custom_fsdp") if arguments.flag(name)), None)
    if arguments.flag("use_torch_fsdp2"):
        leaves.put("parallelism.strategy", "fsdp2", "use_torch_fsdp2")
    elif fsdp:
        kind = level.get(arguments.text("data_parallel_sharding_strategy") or "", "")
        leaves.put("parallelism.strategy", f"megatron_fsdp_{kind}".rstrip("_"), fsdp)
    elif arguments.flag("deepspeed") and stage is not None and stage in {0, 1, 2, 3}:
        leaves.put("parallelism.strategy", f"zero{int(stage)}" if stage else "ddp", "zero_stage")
    elif (sharded := arguments.flag("use_distributed_optimizer")) is not None:
        leaves.put("parallelism.strategy", "zero1" if sharded else "ddp", "use_distributed_optimizer")


def _precision(leaves: Leaves) -> None:
    arguments = leaves.arguments
    eight = _eight(arguments)
    four = arguments.name("fp4", "fp4_format")
    halves = [name for name in ("bf16", "fp16") if arguments.flag(name)]
    if four and arguments.flag(four) is not False:
        leaves.put("numerics.compute_dtype", "fp4", four)
        leaves.put("features.fp4_recipe", arguments.scalar("fp4_recipe"), "fp4_recipe")
    elif eight:
        leaves.put("numerics.compute_dtype", "fp8", eight)
        if arguments.flag(eight) is None:
            leaves.put("features.fp8_format", arguments.text(eight), eight)
        leaves.put("numerics.fp8_recipe", arguments.text("fp8_recipe"), "fp8_recipe")
    elif halves:
        leaves.put("numerics.compute_dtype", halves[0], halves[0])
    elif arguments.flag("bf16") is False and arguments.flag("fp16") is False:
        leaves.put("numerics.compute_dtype", "fp32", "bf16")
    full = arguments.flag("accumulate_allreduce_grads_in_fp32")
    if arguments.flag("grad_reduce_in_bf16"):
        leaves.put("numerics.reduction_dtype", "bf16", "grad_reduce_in_bf16")
    elif full is not None:
        kind = "fp32" if full else arguments.dtype("params_dtype")
        leaves.put("numerics.reduction_dtype", kind, "accumulate_allreduce_grads_in_fp32")


def _eight(arguments: Arguments) -> str | None:
    """The argument that switches FP8 on, or None: a format, or a switch that is not off."""
    name = arguments.name("fp8", "fp8_format")
    return name if name and arguments.flag(name) is not False else None


def _schedule(leaves: Leaves) -> None:
    arguments = leaves.arguments
    if "muon" in (arguments.text("optimizer") or ""):
        leaves.put("numerics.optimizer_other", arguments.text("muon_scalar_optimizer"), "muon_scalar_optimizer")
    style = arguments.name("lr_decay_style")
    if style:
        words = [word for word in _TABLE["lists"]["schedule"] if arguments.name(word)]
        wsd = (arguments.text(style) or "").upper() == "WSD"
        rest = [f"{word}={arguments.text(word)}" for word in words if wsd or "wsd" not in word]
        leaves.put("numerics.schedule", " ".join([arguments.text(style) or "", *rest]), style)


def _recompute(leaves: Leaves) -> None:
    arguments = leaves.arguments
    name = arguments.name("recompute_granularity", "activations_checkpoint_granularity")
    off = next((n for n in ("recompute_granularity", "activations_checkpoint_granularity") if arguments.off(n)), None)
    if name:
        words = [arguments.text(name) or ""]
        method = arguments.name("recompute_method", "activations_checkpoint_method")
        layers = arguments.name("recompute_num_layers", "activations_checkpoint_num_layers")
        modules = arguments.name("recompute_modules")
        if words == ["selective"]:
            words += [_words(arguments.text(modules) or "")] if modules else []
        else:
            words += [" ".join(arguments.text(n) or "" for n in (method, layers) if n)]
        leaves.put("numerics.recompute", ": ".join(word for word in words if word), name)
    elif off:
        leaves.put("numerics.recompute", "none", off)
    elif arguments.name("activations_checkpoint_method"):
        name = "activations_checkpoint_method"
        leaves.put("numerics.recompute", f"full: {arguments.text(name)}", name)
    elif (full := arguments.flag("checkpoint_activations")) is not None:
        leaves.put("numerics.recompute", "full" if full else "none", "checkpoint_activations")


def _data(leaves: Leaves) -> None:
    arguments = leaves.arguments
    path = arguments.name("data_path", "train_data_path", "data_args_path")
    if arguments.flag("mock_data"):
        leaves.put("data.dataset", "mock", "mock_data")
        leaves.put("data.kind", "synthetic", "mock_data")
    elif path:
        leaves.put("data.dataset", _words(arguments.text(path) or ""), path)
        leaves.put("data.kind", "real", path)
    kind = arguments.name("tokenizer_type")
    if kind:
        model = arguments.name("tokenizer_model", "vocab_file", "tokenizer_name_or_path")
        words = [arguments.text(kind) or "", arguments.text(model) or "" if model else ""]
        leaves.put("data.tokenizer", " ".join(word for word in words if word), kind)


def _words(text: str) -> str:
    """A printed list as words: ``['core_attn', 'mlp']`` is ``core_attn mlp``."""
    return " ".join(text.strip("[]()").replace("'", " ").replace('"', " ").replace(",", " ").split())[:400]
