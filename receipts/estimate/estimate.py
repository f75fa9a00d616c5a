"""The estimate: every surface on the fullest rank, at each moment of a step, and the moment that decides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from receipts.estimate import weights
from receipts.estimate.activations import Activations, activations
from receipts.estimate.communication import communication
from receipts.estimate.recompute import FULL
from receipts.estimate.runtime_overhead import compile_peak, overhead, reserve
from receipts.estimate.serving import kv_cache, state_pool
from receipts.estimate.setup import Layer, Setup
from receipts.estimate.states import States, sharded, states
from receipts.estimate.surface import OUTSIDE, Name, Surface

Moment = Mapping[Name, float]

SCALES: Mapping[Name, str] = {
    Name.REPLICATED: "width, router width; not tensor or expert degree",
    Name.TENSOR: "width, depth, vocabulary; tensor, pipeline and state degrees",
    Name.EXPERT: "experts, expert width; expert, expert tensor, pipeline and state degrees",
    Name.GRADIENTS: "parameters and their type; state degree from stage 2",
    Name.MATRIX_OPTIMIZER: "hidden matrices and the type of the state; state degree from stage 1",
    Name.OTHER_OPTIMIZER: "the other parameters and the type of the state; state degree from stage 1",
    Name.ACTIVATIONS: "micro batch, sequence length, recompute; sequence and context parallelism",
    Name.ROUTING: "routed tokens, top-k, capacity factor, hidden width; expert ranks that send, expert blocks",
    Name.COMMUNICATION: "widest layer, buckets, gathered sequences",
    Name.COMPILE: "the compiled program, or the largest matrix update",
    Name.RECURRENT: "sequences served, recurrent layers, state width",
    Name.KV_CACHE: "sequences served, context length, attending layers, key-value heads",
    Name.FEATURES: "MTP depth, micro batch, sequence length, vocabulary",
    Name.RESERVE: "the runtime; no degree",
    Name.OVERHEAD: "bytes that come and go; the allocator",
}


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """One pipeline stage. ``moments`` are surfaces by moment; the largest of them decides."""

    stage: int
    moments: Mapping[str, Moment]

    @property
    def peak(self) -> str:
        """The moment with the most bytes."""
        return max(self.moments, key=lambda name: sum(self.moments[name].values()))

    @property
    def total(self) -> float:
        """Bytes at the peak, reserve and overhead included."""
        return sum(self.moments[self.peak].values())

    @property
    def live(self) -> float:
        """Bytes that an allocator would call live at the peak."""
        return sum(value for name, value in self.moments[self.peak].items() if name not in OUTSIDE)

    def surfaces(self) -> tuple[Surface, ...]:
        """Every surface with its own largest, and with what it holds at the peak."""
        at = self.moments[self.peak]
        return tuple(
            Surface(name, max(moment[name] for moment in self.moments.values()), at[name], SCALES[name])
            for name in Name
        )


def by_stage(setup: Setup) -> tuple[StageEstimate, ...]:
    """An estimate for each pipeline stage, in order."""
    return tuple(_stage(setup, number) for number in range(max(1, len(setup.layout.stages))))


def fullest(setup: Setup) -> StageEstimate:
    """The stage with the most bytes: every rank must fit, so it decides."""
    return max(by_stage(setup), key=lambda item: item.total)


def least(setup: Setup) -> float:
    """Bytes of the fullest stage by the least that a plan may mean: full recompute where it names no policy.

    A compiler that plans every buffer and is short of memory gathers one matrix at a time, keeps no 16-bit copy of the
    stack, fuses the loss to 4 bytes a logit, and full recompute keeps one input a layer and not one a block. Published
    MaxText runs on v6e held shapes whose plain estimate is up to 1.6 times the chip (AI-Hypercomputer/tpu-recipes,
    training/trillium).
    """
    recompute = FULL if "numerics.recompute" in setup.unstated and not setup.serving else setup.recompute
    return fullest(replace(setup, pressed=setup.framework.static, recompute=recompute)).total


def most(setup: Setup) -> float:
    """Bytes of the fullest stage by the most that a plan may mean: nothing sharded where it names no strategy."""
    zero = 0 if "parallelism.strategy" in setup.unstated else setup.layout.zero
    return fullest(replace(setup, layout=replace(setup.layout, zero=zero))).total


def _stage(setup: Setup, number: int) -> StageEstimate:
    which = setup.layers_of(number)
    first, last = number == 0, number == setup.layout.pipeline - 1
    held = states(
        setup,
        (
            *weights.layers(setup.model, setup.layout, which),
            *weights.ends(setup.model, setup.layout, first=first, last=last),
        ),
    )
    active = activations(setup, which, number, last=last)
    fixed = {
        Name.REPLICATED: held.replicated,
        Name.TENSOR: held.tensor,
        Name.EXPERT: held.expert,
        Name.MATRIX_OPTIMIZER: held.matrix_optimizer,
        Name.OTHER_OPTIMIZER: held.other_optimizer,
        Name.COMMUNICATION: communication(setup, which),
        Name.COMPILE: compile_peak(setup, which, _kept(setup, which)),
        Name.RECURRENT: state_pool(setup, which),
        Name.KV_CACHE: kv_cache(setup, which),
        Name.RESERVE: reserve(setup),
    }
    return StageEstimate(number, {name: _whole(setup, fixed, moving) for name, moving in _moments(setup, held, active)})


def _kept(setup: Setup, which: Sequence[Layer]) -> float:
    """Elements of these layers' parameters that a rank keeps."""
    return sum(
        sharded(item.elements, setup, item.owner, 3) for item in weights.layers(setup.model, setup.layout, which)
    )


def _whole(setup: Setup, fixed: Moment, moving: Moment) -> Moment:
    moment = dict.fromkeys(Name, 0.0) | dict(fixed)
    for name, value in moving.items():
        moment[name] += value
    coming = sum(value for name, value in moving.items() if name is not Name.GRADIENTS) + fixed[Name.COMMUNICATION]
    moment[Name.OVERHEAD] = overhead(setup, coming)
    return moment


def _moments(setup: Setup, held: States, active: Activations) -> Iterator[tuple[str, Moment]]:
    """Surfaces that come and go, by moment.

    Gradients that a framework keeps in a buffer, and those of earlier micro steps, exist from the start. A compiled
    loop over layers makes its gradient arrays when it begins, beside every activation; eager autograd makes each when
    its block is done, when that block's activations are freed.
    """
    if setup.serving:
        yield (
            "prefill",
            {
                Name.ACTIVATIONS: active.working + active.loss,
                Name.ROUTING: active.routing_working,
            },
        )
        return
    early = setup.framework.persistent_gradients or setup.batch.accumulation > 1
    stored = {
        Name.ACTIVATIONS: active.stored,
        Name.FEATURES: active.features_stored,
        Name.ROUTING: active.routing_stored,
    }
    yield (
        "loss",
        {
            Name.ACTIVATIONS: active.stored + active.loss,
            Name.FEATURES: active.features_stored + active.features_loss,
            Name.ROUTING: active.routing_stored,
            Name.GRADIENTS: held.gradients if early else 0.0,
        },
    )
    yield (
        "backward",
        stored
        | {
            Name.ACTIVATIONS: active.stored + active.working,
            Name.ROUTING: active.routing_stored + active.routing_working,
            Name.GRADIENTS: held.gradients if early or setup.framework.static else 0.0,
        },
    )
    if not early and not setup.framework.static:
        yield "end of backward", {Name.ACTIVATIONS: active.working, Name.GRADIENTS: held.gradients}
    yield "optimizer", {Name.GRADIENTS: held.gradients, Name.COMPILE: held.workspace}
