"""From stated leaves to a `Setup`: what cannot be done without, what may be assumed, and for which reason.

Types give what a tensor of each family takes, and what FP8 keeps beside it. The layout gives degrees in the order of
sharding, tensor → pipeline → state → expert.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from receipts.estimate.activations import NONE, policy_of
from receipts.estimate.architecture import adds_up, architecture, idle
from receipts.estimate.inputs import OFF, Assumed, EstimateInputs, assume_unpriced, served_in
from receipts.estimate.setup import (
    FSDP,
    MEGATRON,
    TORCH,
    Architecture,
    Fp8,
    FrameworkMemory,
    OptimizerKind,
    ParallelLayout,
    RankBatch,
    Setup,
    Types,
    framework_memory_of,
    optimizer_of,
)
from receipts.estimate.weights import parameters_total
from receipts.metrics.flops.geometry import INDEXER_BACKEND, is_windowed
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.names import DTYPES, dtype_of
from receipts.receipt.patterns import BlockKind, Pattern, stated_pattern

_RECIPE = "numerics.fp8_recipe"
_MX = 2 * (1 + 1 / 32)  # data in rows and in columns, each with a scale for 32 elements


def types_of(facts: EstimateInputs, framework: FrameworkMemory, *, serving: bool) -> Types:
    """Bytes an element of each tensor family, from stated types and the framework's own."""
    named = dtype_of(facts.word("path.witnessed.compute_dtype", "numerics.compute_dtype"))
    compute = named or "bf16"
    if named is None:
        facts.assume("numerics.compute_dtype", "bf16", "the usual type of matmuls on a matrix unit")
    # FP8 is a type of operands: tensors between matmuls stay in 16 bits (Micikevicius et al. 2022, arXiv:2209.05433).
    active = max(2.0, DTYPES[compute].bytes)
    usual = framework.parameter_dtype if active <= 2.0 and not serving else compute
    parameter = _type(facts, "numerics.parameter_dtype", usual, f"what {framework.name} stores ({compute} matmuls)")
    if serving:
        return Types(active, parameter, 0.0, 0.0)
    full = "fp32" if parameter >= 4.0 else framework.gradient_dtype
    if not framework.persistent_gradients:
        # Autograd gives a gradient the type of its parameter; a type of reduction is that of a transient.
        gradient = parameter
    else:
        gradient = _type(facts, "numerics.reduction_dtype", full, f"the gradient buffer of {framework.name}")
    stated_optimizer = facts.word("numerics.optimizer", "notes.master_weights")
    master = 4.0 if framework.master and parameter < 4.0 and "no-master" not in stated_optimizer else 0.0
    return Types(active, parameter, gradient, master, *_fp8(facts, framework, named))


def _type(facts: EstimateInputs, path: str, otherwise: str, because: str) -> float:
    named = dtype_of(facts.word(path))
    if named is None:
        facts.assume(path, otherwise, because)
        named = otherwise
    return DTYPES[named].bytes


def _fp8(facts: EstimateInputs, framework: FrameworkMemory, compute: str | None) -> tuple[float, Fp8]:
    """Bytes that FP8 keeps a weight of a matmul beside the parameter, and which matmuls keep their operands.

    Transformer Engine keeps the quantized weight through a step, and on Hopper its transpose; MXFP8 needs both
    everywhere (module/base.py, `get_weight_workspace`; NVIDIA/TransformerEngine, issues 1261, 1764 and 1880).
    Parameters that are gathered in FP8 are those copies. Others cast an operand for each matmul.
    """
    recipe, scope = facts.word(_RECIPE), facts.word("numerics.fp8_scope")
    if compute != "fp8" and (compute is not None or recipe in OFF):  # a recipe over bf16 cannot act (R110)
        return 0.0, ""
    gemm = facts.word("path.witnessed.gemm", "path.intended.gemm")
    if framework is not MEGATRON and not gemm.startswith("te_"):
        facts.assume(_RECIPE, "operands of 16 bits", "cast for each matmul and not kept, as torchao and XLA do")
        return 0.0, ""
    experts = "moe" in scope or "expert" in scope
    if scope not in OFF and scope != "all" and not experts:
        facts.assume(_RECIPE, "operands of 16 bits", f"scope {scope!r} names no matmul that is counted")
        return 0.0, ""
    chip = find_accelerator(facts.stated.get("hardware.accelerator"))
    size = _MX if "mx" in recipe else 1.0 if chip is not None and chip.fp8_any_layout else 2.0
    if facts.word("features.fp8_param_gather") not in OFF:
        size = 0.0
    kept = f"{size:g} bytes more a weight, inputs of 1 byte"
    facts.assume(_RECIPE, kept, "Transformer Engine keeps both operands of a matmul in FP8 until its backward")
    return size, "experts" if experts else "all"


# In this order: `megatron_fsdp_zero1` is stage 1, and DDP with a distributed optimizer is too.
_STAGES = (
    (1, re.compile(r"zero[-_]?1|dist(ributed)?[-_ ]?opt")),
    (2, re.compile(r"zero[-_]?2|shard_grad_op")),
    (3, re.compile(r"zero[-_]?3")),
    (0, re.compile(r"zero[-_]?0|(?<![a-z])ddp(?![a-z])|distributed[-_ ]data|replicat|^none$")),
    (3, re.compile(r"fsdp|hsdp|fully_shard|full_shard")),
)


def zero_stage(strategy: str, *, shard: int | None) -> int | None:
    """The stage of state sharding that a strategy names; None if it says nothing.

    ``ddp`` shards nothing on any framework; Megatron's DDP with its distributed optimizer is ``zero1``.
    """
    named = next((stage for stage, pattern in _STAGES if pattern.search(strategy)), None)
    return 3 if named is None and shard is not None and shard > 1 else named


def layout(facts: EstimateInputs, model: Architecture, framework: FrameworkMemory, convention: str) -> ParallelLayout:
    """The layout. Degrees that are not stated are 1 where a single chip leaves no choice, and assumed 1 elsewhere."""
    chips, shard = facts.stated.get("hardware.chips"), facts.stated.get("parallelism.shard")
    tensor, pipeline, context, expert = (
        1
        if chips == 1 and facts.stated.get(path) is None
        else facts.take(path, 1, "not split that way unless it is stated")
        for path in (f"parallelism.{name}" for name in ("tensor", "pipeline", "context", "expert"))
    )
    has_experts = any(BlockKind.EXPERT in layer for layer in (*model.layers, *model.mtp))
    if not has_experts:
        expert = 1
    expert_tensor = 1
    if has_experts and tensor > 1:
        because = "experts follow the tensor degree (Megatron-Core's default)"
        expert_tensor = facts.take("parallelism.expert_tensor", tensor, because)
    model_ways = tensor * pipeline * context * (expert if convention == "expert_in_world" else 1)
    if chips is None or facts.stated.get("parallelism.data") is not None:
        data = int(facts.take("parallelism.data", 1, "neither the data degree nor the number of chips is stated"))
    else:
        data = max(1, int(chips) // model_ways)
    zero = zero_stage(facts.word("parallelism.strategy"), shard=shard)
    ways = data * context
    if shard is not None:
        # Of the ranks that share a state, a stated shard degree counts those of context only where chips run out:
        # Megatron-Core, dist_optimizer.md; torchtitan, distributed/parallel_dims.py (FSDP over `dp_shard_cp`); MaxText,
        # configs/base.yml, logical_axis_rules of `embed`.
        shards, replicas = (int(facts.stated.get(f"parallelism.{name}") or 1) for name in ("shard", "replicate"))
        room = chips is None or shards * replicas * model_ways <= int(chips)
        ways = shards * context if room else shards
    if zero is None:
        zero = framework.zero if ways > 1 or facts.stated.get("parallelism.strategy") is None else 0
        if ways > 1:
            sharded = ("nothing", "optimizer states", "optimizer states and gradients", "every state")[zero]
            facts.assume("parallelism.strategy", f"{sharded} sharded {ways} ways", f"usual with {framework.name}")
    beside = ways if convention == "expert_in_world" else max(1, ways * tensor // (expert * expert_tensor))
    stages = _stages(facts, model, pipeline)
    reshard = facts.stated.get("parallelism.reshard_after_forward")
    gathered = zero >= 3 and reshard is False and not framework.static
    if zero >= 3 and reshard is None and framework is FSDP and pipeline > 1:
        facts.assume("parallelism.reshard_after_forward", value=False, because="torchtitan keeps them in a pipeline")
        gathered = True
    return ParallelLayout(
        tensor=tensor,
        sequence_parallel=bool(facts.stated.get("parallelism.sequence")) and tensor > 1,
        context=context,
        pipeline=pipeline,
        virtual=int(facts.stated.get("parallelism.virtual_pipeline") or 1) if pipeline > 1 else 1,
        stages=stages,
        data=data,
        zero=zero,
        shard=ways,
        expert=expert,
        expert_tensor=expert_tensor,
        expert_shard=beside,
        gathered=gathered,
        bucket_bytes=facts.stated.get("parallelism.bucket_bytes"),
    )


def _stages(facts: EstimateInputs, model: Architecture, pipeline: int) -> tuple[int, ...]:
    """Layers of each stage: as the pattern divides them, else as evenly as they go (Megatron-Core's default)."""
    depth = len(model.layers)
    pattern = stated_pattern(facts.stated)
    if isinstance(pattern, Pattern) and len(pattern.stages) == pipeline > 1 and sum(pattern.stages) == depth:
        return pattern.stages
    if pipeline > 1 and facts.stated.get("parallelism.stage_layout") is None:
        facts.assume("parallelism.stage_layout", "even", "layers are cut over stages as evenly as they go")
    whole, rest = divmod(depth, pipeline)
    return tuple(whole + (stage < rest) for stage in range(pipeline))


_UNFUSED = ("math", "unfused", "dot_product", "eager", "naive")
_RECOMPUTE = ("numerics.recompute_applied", "numerics.recompute")
# Features by which lanes and readers say that a state lies in host memory.
_OFFLOADED = {
    "optimizer": ("optimizer_offload", "zero_offload_optimizer"),
    "parameters": ("parameter_offload", "zero_offload_param"),
}
_ONE_FORWARD_ONE_BACKWARD = re.compile(r"1f1b|one[-_ ]forward|interleav")
_CHUNKED = ("liger", "linear", "chunk", "cce", "fused_linear")


class Circumstances(NamedTuple):
    """What a lane adds to a receipt: its frameworks in order, how it counts experts, and its name."""

    lane: str = ""
    frameworks: tuple[str, ...] = ()
    convention: Literal["expert_in_data", "expert_in_world", "none"] = "none"


class Resolved(NamedTuple):
    """A setup with what was assumed for it, or None with the paths that must be stated first."""

    setup: Setup | None
    missing: tuple[str, ...]
    assumed: tuple[Assumed, ...]
    uncounted: tuple[str, ...] = ()


def resolve(stated: Mapping[str, Any], circumstances: Circumstances = Circumstances()) -> Resolved:  # noqa: B008
    """The setup that a receipt or a plan describes. Nothing is filled in without being written down."""
    facts = EstimateInputs(stated)
    named = facts.word(*_paths("framework"))
    memory = framework_memory_of(named, *circumstances.frameworks, circumstances.lane)
    if memory is None:
        facts.assume("path.intended.framework", "plain torch", "no framework and no lane says how tensors are kept")
        memory = TORCH
    elif not named:
        facts.assume("path.intended.framework", memory.name, "as the lane's frameworks keep their tensors")
    chip = find_accelerator(facts.stated.get("hardware.accelerator"))
    # The reserve is that of a GPU's context and its collectives' channels.
    framework = memory if chip is None or chip.vendor in ("NVIDIA", "AMD") else replace(memory, reserve_bytes=0)
    serving = stated.get("run.kind") == "serving"
    model, uncounted = architecture(facts)
    placed = layout(facts, model, framework, circumstances.convention)
    types = types_of(facts, framework, serving=serving)
    matrix, other = _optimizers(facts, types, serving=serving)
    uncounted += (*idle(facts, model), *_uncounted(facts, model, placed, framework, serving=serving))
    recompute = NONE if serving else _recompute(facts, framework)
    if recompute is None:
        uncounted += (f"recompute policy {facts.word(*_RECOMPUTE)!r} is counted as none",)
    setup = Setup(
        model=model,
        layout=placed,
        batch=RankBatch(
            facts.need("batch.micro_batch"),
            facts.need("batch.sequence_length"),
            _accumulation(facts, placed, serving=serving),
        ),
        types=types,
        matrix_optimizer=matrix,
        other_optimizer=other,
        recompute=recompute or NONE,
        framework=framework,
        fused_attention=_fused(facts),
        fused_selection=model.indexer is None or _selects_in_a_kernel(facts),
        chunked_loss=any(word in facts.word(*_paths("cross_entropy")) for word in _CHUNKED),
        serving=serving,
        offload=frozenset(
            kind for kind, words in _OFFLOADED.items() if facts.word(*(f"features.{word}" for word in words)) not in OFF
        ),
        **(served_in(facts) if serving else {}),
    )
    assume_unpriced(facts, framework, known=tuple(name for names in _OFFLOADED.values() for name in names))
    if facts.missing:
        # What was read on the way rests on values that are not there: heads of no width, one key-value head.
        return Resolved(None, facts.missing, (), ())
    unstated = frozenset(item.path for item in facts.assumed)
    return Resolved(replace(setup, unstated=unstated), (), facts.assumed, uncounted)


def _uncounted(
    facts: EstimateInputs, model: Architecture, placed: ParallelLayout, framework: FrameworkMemory, *, serving: bool
) -> Iterator[str]:
    """What is stated and has no formula, so that no total that is computed here can be relied on."""
    total = facts.stated.get("model.parameters_total")
    if total is None and any(item.path == "model.family" for item in facts.assumed):
        yield "the blocks are not stated, nor how many parameters they make; all are counted as dense"
    if total is not None and not facts.missing and not adds_up(facts, model):
        computed = parameters_total(model) / 1e9
        yield f"the widths make {computed:.3g} billion parameters, and {total / 1e9:.3g} billion are stated"
    if serving:
        if is_windowed(facts.stated):
            yield "attention over a window is cached as full attention"
        return
    adapters = facts.word("numerics.adapters.kind")
    if adapters not in ("", "none"):
        yield f"adapters {adapters!r} are not counted, and every parameter is as if it were trained"
    for path in ("numerics.optimizer", "numerics.optimizer_other"):
        if (name := facts.word(path)) not in OFF and optimizer_of(name, 4.0) is None:
            yield f"optimizer {name!r} is counted as adamw"
    schedule = facts.word("parallelism.schedule")
    if placed.pipeline > 1 and schedule not in OFF and not _ONE_FORWARD_ONE_BACKWARD.search(schedule):
        yield f"pipeline schedule {schedule!r} is counted as one forward, one backward"
    if not framework.static and facts.word("compile.cuda_graph_implementation") not in OFF:
        yield "the pools of CUDA graphs are not counted"


def _paths(leaf: str) -> tuple[str, str]:
    return f"path.witnessed.{leaf}", f"path.intended.{leaf}"


def _optimizers(facts: EstimateInputs, types: Types, *, serving: bool) -> tuple[OptimizerKind, OptimizerKind]:
    if serving:
        nothing = OptimizerKind("none", 0, 0.0)
        return nothing, nothing
    state_dtype = facts.word("numerics.optimizer_state_dtype")
    # Moments are made like the parameter that is updated: a 16-bit one, or its fp32 copy (optax.adamw, torch.optim).
    narrow = types.parameter < 4.0 and not types.master
    size = DTYPES[dtype_of(state_dtype) or ("bf16" if narrow else "fp32")].bytes
    if not state_dtype:
        because = "moments have the type of the parameter that is updated"
        facts.assume("numerics.optimizer_state_dtype", "bf16" if narrow else "fp32", because)
    matrix = optimizer_of(facts.word("numerics.optimizer"), size)
    if matrix is None:
        facts.assume("numerics.optimizer", "adamw", "two moments, the usual pretraining optimizer")
        matrix = optimizer_of("adamw", size)
    other = optimizer_of(facts.word("numerics.optimizer_other"), size)
    if matrix is not None and matrix.matrices_only and other is None:
        facts.assume("numerics.optimizer_other", "adamw", "what is usually put beside Muon")
        other = optimizer_of("adamw", size)
    assert matrix is not None
    return matrix, other or matrix


def _accumulation(facts: EstimateInputs, placed: ParallelLayout, *, serving: bool) -> int:
    stated = facts.stated
    if serving:
        return 1
    if stated.get("batch.accumulation") is not None:
        return int(stated["batch.accumulation"])
    whole, micro = (stated.get(path) for path in ("batch.global_batch", "batch.micro_batch"))
    known = stated.get("parallelism.data") is not None or stated.get("hardware.chips") is not None
    if whole and micro and known and whole % (micro * placed.data) == 0:
        return int(whole // (micro * placed.data))
    # As many as a pipeline takes to be full: fewer would hold less.
    steps = placed.pipeline
    facts.assume("batch.accumulation", steps, "the global batch and the data degree do not say how many micro steps")
    return steps


def _recompute(facts: EstimateInputs, framework: FrameworkMemory) -> frozenset[str] | None:
    """The policy; None if one is stated that has no formula here. ``selective`` is Megatron's word, and its own."""
    policy, requested = facts.word(*_RECOMPUTE), facts.word("numerics.recompute")
    if requested and policy_of(requested) != policy_of(policy):
        facts.assume("numerics.recompute", policy, f"the launch applied it, and {requested!r} was asked for")
    if policy:
        return None if policy == "selective" and framework is not MEGATRON else policy_of(policy)
    facts.assume("numerics.recompute", "none", "frameworks recompute nothing unless asked to")
    return NONE


def _fused(facts: EstimateInputs) -> bool:
    attention = facts.word(*_paths("attention"))
    if not attention:
        facts.assume("path.intended.attention", "fused", "every lane's path asks for attention that stores no scores")
        return True
    return not any(word in attention for word in _UNFUSED)


def _selects_in_a_kernel(facts: EstimateInputs) -> bool:
    """Whether attention over chosen keys is a kernel; Megatron-Core's own default (`none`) is plain operators."""
    kernel = facts.word(INDEXER_BACKEND, "model.sparse_attention")
    if kernel in ("", "dsa"):
        facts.assume("model.sparse_attention", "a kernel", "attention over chosen keys that stores no scores")
        return True
    return not any(word in kernel for word in (*_UNFUSED, "none", "torch", "reference"))
