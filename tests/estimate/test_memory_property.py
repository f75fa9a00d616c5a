"""What holds of every estimate: more sharding never grows what it shards, more work never shrinks activations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_setups import setup
from receipts.estimate.activations import FULL, NONE
from receipts.estimate.estimate import by_stage, fullest
from receipts.estimate.setup import DEEPSPEED, FSDP, MEGATRON, TORCH, XLA, Layer, ParallelLayout, RankBatch, Setup
from receipts.estimate.shrink import shrinks
from receipts.estimate.surface import SurfaceName
from receipts.receipt.patterns import BlockKind

pytestmark = pytest.mark.slow

SHARDED = {
    "tensor": (SurfaceName.TENSOR, SurfaceName.EXPERT),
    "shard": (
        SurfaceName.GRADIENTS,
        SurfaceName.OTHER_OPTIMIZER,
        SurfaceName.MATRIX_OPTIMIZER,
        SurfaceName.TENSOR,
        SurfaceName.REPLICATED,
    ),
    "expert": (SurfaceName.EXPERT,),
}
POWERS = st.sampled_from([1, 2, 4])
LAYERS = st.lists(
    st.sampled_from(
        [(BlockKind.ATTENTION,), (BlockKind.MLP,), (BlockKind.EXPERT,), (BlockKind.MAMBA,), (BlockKind.RECURRENT,)]
    ),
    min_size=1,
    max_size=8,
).map(tuple)


@st.composite
def setups(draw: st.DrawFn) -> Setup:
    """Any setup of training: pattern, degrees, batch, policy and framework."""
    layers: tuple[Layer, ...] = draw(LAYERS)
    tensor, expert, shard = draw(POWERS), draw(POWERS), draw(POWERS)
    pipeline = draw(st.sampled_from([1, 2])) if len(layers) > 1 else 1
    whole, rest = divmod(len(layers), pipeline)
    return setup(
        layers=layers,
        layout=ParallelLayout(
            tensor=tensor,
            sequence_parallel=tensor > 1 and draw(st.booleans()),
            expert=expert,
            expert_tensor=tensor,
            pipeline=pipeline,
            stages=tuple(whole + (index < rest) for index in range(pipeline)),
            zero=draw(st.integers(0, 3)),
            shard=shard,
            expert_shard=max(1, shard // expert),
        ),
        batch=RankBatch(draw(st.integers(1, 8)), draw(st.sampled_from([64, 512, 4096])), draw(st.sampled_from([1, 4]))),
        recompute=draw(st.sampled_from([NONE, FULL, frozenset({"activations"}), frozenset({"moe_act"})])),
        framework=draw(st.sampled_from([MEGATRON, DEEPSPEED, FSDP, TORCH, XLA])),
        model={
            "mtp_depth": draw(st.integers(0, 1)),
            "mtp": layers[-1:],
            "capacity_factor": draw(st.sampled_from([None, 1.25])),
        },
    )


def held(made: Setup) -> dict[SurfaceName, float]:
    """Every surface at its own largest, on the stage that has most of it."""
    found: dict[SurfaceName, float] = {}
    for stage in by_stage(made):
        for item in stage.surfaces():
            found[item.name] = max(item.bytes, found.get(item.name, 0.0))
    return found


@given(setups())
def test_surfaces_are_finite_and_never_negative(made: Setup) -> None:
    stage = fullest(made)
    assert all(0.0 <= item.peak_bytes <= item.bytes * (1 + 1e-12) for item in stage.surfaces())
    assert stage.live <= stage.total


@given(setups())
def test_a_higher_tensor_degree_never_grows_what_it_shards(made: Setup) -> None:
    layout = made.layout
    more = replace(made, layout=replace(layout, tensor=2 * layout.tensor, expert_tensor=2 * layout.expert_tensor))
    before, after = held(made), held(more)
    assert all(after[name] <= before[name] for name in SHARDED["tensor"])


@given(setups())
def test_more_ranks_that_share_states_never_grow_them(made: Setup) -> None:
    layout = made.layout
    more = replace(made, layout=replace(layout, shard=2 * layout.shard, expert_shard=2 * layout.expert_shard))
    before, after = held(made), held(more)
    assert all(after[name] <= before[name] for name in SHARDED["shard"])


@given(setups())
def test_a_higher_expert_degree_never_grows_expert_parameters(made: Setup) -> None:
    layout = made.layout
    more = replace(
        made, layout=replace(layout, expert=2 * layout.expert, expert_shard=max(1, layout.expert_shard // 2))
    )
    if layout.expert_shard == 1 or layout.zero < 3:
        assert held(more)[SurfaceName.EXPERT] <= held(made)[SurfaceName.EXPERT]


@given(setups(), st.sampled_from(["micro", "length"]))
def test_more_tokens_never_shrink_activations_or_the_total(made: Setup, which: str) -> None:
    batch = replace(made.batch, **{which: 2 * getattr(made.batch, which)})
    before, after = held(made), held(replace(made, batch=batch))
    for name in (SurfaceName.ACTIVATIONS, SurfaceName.ROUTING, SurfaceName.FEATURES):
        assert after[name] >= before[name]
    assert fullest(replace(made, batch=batch)).total >= fullest(made).total


@given(setups())
def test_what_shrinks_it_does(made: Setup) -> None:
    now = fullest(made).total
    found = shrinks(made)
    assert all(item.saved > 0 and item.total < now for item in found)
    assert [item.saved for item in found] == sorted((item.saved for item in found), reverse=True)
