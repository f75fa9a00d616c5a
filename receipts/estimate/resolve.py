"""From stated leaves to a `Setup`: what cannot be done without, what may be assumed, and for which reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from receipts.estimate.architecture import architecture
from receipts.estimate.dtypes import types_of
from receipts.estimate.framework_memory import MEGATRON, TORCH, FrameworkMemory, framework_memory_of
from receipts.estimate.idle import adds_up, idle
from receipts.estimate.inputs import OFF, Assumed, EstimateInputs
from receipts.estimate.layout import layout
from receipts.estimate.optimizer_kind import OptimizerKind, optimizer_of
from receipts.estimate.recompute import NONE, policy_of
from receipts.estimate.setup import Architecture, ParallelLayout, RankBatch, Setup, Types
from receipts.estimate.unpriced import assume_unpriced, served_in
from receipts.estimate.weights import parameters_total
from receipts.metrics.flops.attention import is_windowed
from receipts.metrics.flops.mixers import BACKEND
from receipts.receipt.accelerators import find
from receipts.receipt.dtypes import DTYPES, dtype_of

_GPUS = ("NVIDIA", "AMD")
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
    framework = _framework(facts, circumstances)
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
        offload=_offload(facts),
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


def _framework(facts: EstimateInputs, circumstances: Circumstances) -> FrameworkMemory:
    named = facts.word(*_paths("framework"))
    memory = framework_memory_of(named, *circumstances.frameworks, circumstances.lane)
    if memory is None:
        facts.assume("path.intended.framework", "plain torch", "no framework and no lane says how tensors are kept")
        memory = TORCH
    elif not named:
        facts.assume("path.intended.framework", memory.name, "as the lane's frameworks keep their tensors")
    chip = find(facts.stated.get("hardware.accelerator"))
    # The reserve is that of a GPU's context and its collectives' channels.
    return memory if chip is None or chip.vendor in _GPUS else replace(memory, reserve_bytes=0)


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
    """The policy; None where one is stated that has no formula here. ``selective`` is Megatron's word, and its own."""
    policy, requested = facts.word(*_RECOMPUTE), facts.word("numerics.recompute")
    if requested and policy_of(requested) != policy_of(policy):
        facts.assume("numerics.recompute", policy, f"the launch applied it, and {requested!r} was asked for")
    if policy:
        return None if policy == "selective" and framework is not MEGATRON else policy_of(policy)
    facts.assume("numerics.recompute", "none", "frameworks recompute nothing unless asked to")
    return NONE


def _offload(facts: EstimateInputs) -> frozenset[str]:
    """What lies in host memory between uses: ``optimizer`` states, ``parameters``."""
    return frozenset(
        kind for kind, words in _OFFLOADED.items() if facts.word(*(f"features.{word}" for word in words)) not in OFF
    )


def _fused(facts: EstimateInputs) -> bool:
    attention = facts.word(*_paths("attention"))
    if not attention:
        facts.assume("path.intended.attention", "fused", "every lane's path asks for attention that stores no scores")
        return True
    return not any(word in attention for word in _UNFUSED)


def _selects_in_a_kernel(facts: EstimateInputs) -> bool:
    """Whether attention over chosen keys is a kernel; Megatron-Core's own default (`none`) is plain operators."""
    kernel = facts.word(BACKEND, "model.sparse_attention")
    if kernel in ("", "dsa"):
        facts.assume("model.sparse_attention", "a kernel", "attention over chosen keys that stores no scores")
        return True
    return not any(word in kernel for word in (*_UNFUSED, "none", "torch", "reference"))
