"""The layout's part of a setup: degrees in the order of sharding, tensor → pipeline → state → expert."""

from __future__ import annotations

import re

from receipts.estimate.framework_memory import FSDP, FrameworkMemory
from receipts.estimate.inputs import EstimateInputs
from receipts.estimate.setup import Architecture, ParallelLayout
from receipts.receipt.alphabets import BlockKind
from receipts.receipt.patterns import Pattern, read

# In this order: `megatron_fsdp_zero1` is stage 1, and DDP with a distributed optimizer is too.
_STAGES = (
    (1, re.compile(r"zero[-_]?1|dist(ributed)?[-_ ]?opt")),
    (2, re.compile(r"zero[-_]?2|shard_grad_op")),
    (3, re.compile(r"zero[-_]?3")),
    (0, re.compile(r"zero[-_]?0|(?<![a-z])ddp(?![a-z])|distributed[-_ ]data|replicat|^none$")),
    (3, re.compile(r"fsdp|hsdp|fully_shard|full_shard")),
)


def zero_stage(strategy: str, *, shard: int | None) -> int | None:
    """The stage of state sharding that a strategy names; None where it says nothing.

    ``ddp`` shards nothing on any framework; Megatron's DDP with its distributed optimizer is ``zero1``.
    """
    named = next((stage for stage, pattern in _STAGES if pattern.search(strategy)), None)
    return 3 if named is None and shard is not None and shard > 1 else named


def layout(facts: EstimateInputs, model: Architecture, framework: FrameworkMemory, convention: str) -> ParallelLayout:
    """The layout. Degrees that are not stated are 1 where a single chip leaves no choice, and assumed 1 elsewhere."""
    tensor, pipeline, context, expert = (
        _degree(facts, name) for name in ("tensor", "pipeline", "context", "expert")
    )  # fmt: skip
    has_experts = any(BlockKind.EXPERT in layer for layer in (*model.layers, *model.mtp))
    if not has_experts:
        expert = 1
    expert_tensor = _expert_tensor(facts, tensor) if has_experts else 1
    model_ways = tensor * pipeline * context * (expert if convention == "expert_in_world" else 1)
    data = _data(facts, model_ways)
    shard = facts.stated.get("parallelism.shard")
    zero = zero_stage(facts.word("parallelism.strategy"), shard=shard)
    ways = _shard_ways(facts, model_ways, context) if shard is not None else data * context
    if zero is None:
        zero = framework.zero if ways > 1 or facts.stated.get("parallelism.strategy") is None else 0
        if ways > 1:
            sharded = ("nothing", "optimizer states", "optimizer states and gradients", "every state")[zero]
            facts.assume("parallelism.strategy", f"{sharded} sharded {ways} ways", f"usual with {framework.name}")
    beside = ways if convention == "expert_in_world" else max(1, ways * tensor // (expert * expert_tensor))
    return ParallelLayout(
        tensor=tensor,
        sequence_parallel=bool(facts.stated.get("parallelism.sequence")) and tensor > 1,
        context=context,
        pipeline=pipeline,
        virtual=int(facts.stated.get("parallelism.virtual_pipeline") or 1) if pipeline > 1 else 1,
        stages=_stages(facts, model, pipeline),
        data=data,
        zero=zero,
        shard=ways,
        expert=expert,
        expert_tensor=expert_tensor,
        expert_shard=beside,
        gathered=zero >= 3 and _gathered(facts, framework, pipeline),
        bucket_bytes=facts.stated.get("parallelism.bucket_bytes"),
    )


def _gathered(facts: EstimateInputs, framework: FrameworkMemory, pipeline: int) -> bool:
    stated = facts.stated.get("parallelism.reshard_after_forward")
    if stated is None and framework is FSDP and pipeline > 1:
        facts.assume("parallelism.reshard_after_forward", value=False, because="torchtitan keeps them in a pipeline")
        return True
    return stated is False and not framework.static


def _degree(facts: EstimateInputs, name: str) -> int:
    path = f"parallelism.{name}"
    if facts.stated.get(path) is None and facts.stated.get("hardware.chips") == 1:
        return 1
    return facts.take(path, 1, "not split that way unless it is stated")


def _expert_tensor(facts: EstimateInputs, tensor: int) -> int:
    if tensor == 1:
        return 1
    return facts.take("parallelism.expert_tensor", tensor, "experts follow the tensor degree (Megatron-Core's default)")


def _data(facts: EstimateInputs, ways: int) -> int:
    stated = facts.stated.get("parallelism.data")
    if stated is not None:
        return int(stated)
    chips = facts.stated.get("hardware.chips")
    if chips is None:
        facts.assume("parallelism.data", 1, "neither the data degree nor the number of chips is stated")
        return 1
    return max(1, int(chips) // ways)


def _shard_ways(facts: EstimateInputs, model_ways: int, context: int) -> int:
    """Ranks that share a state, context ranks among them: a stated shard degree counts them only where chips run out.

    Megatron-Core, dist_optimizer.md; torchtitan, distributed/parallel_dims.py (FSDP over `dp_shard_cp`); MaxText,
    configs/base.yml, logical_axis_rules of `embed`.
    """
    shard, replicate = (int(facts.stated.get(f"parallelism.{name}") or 1) for name in ("shard", "replicate"))
    chips = facts.stated.get("hardware.chips")
    beside = chips is None or shard * replicate * model_ways <= int(chips)
    return shard * context if beside else shard


def _stages(facts: EstimateInputs, model: Architecture, pipeline: int) -> tuple[int, ...]:
    """Layers of each stage: as the pattern divides them, else as evenly as they go (Megatron-Core's default)."""
    depth = len(model.layers)
    text = facts.stated.get("model.pattern")
    pattern = read(str(text), facts.stated.get("model.alphabet")) if text is not None else None
    if isinstance(pattern, Pattern) and len(pattern.stages) == pipeline > 1 and sum(pattern.stages) == depth:
        return pattern.stages
    if pipeline > 1 and facts.stated.get("parallelism.stage_layout") is None:
        facts.assume("parallelism.stage_layout", "even", "layers are cut over stages as evenly as they go")
    whole, rest = divmod(depth, pipeline)
    return tuple(whole + (stage < rest) for stage in range(pipeline))
