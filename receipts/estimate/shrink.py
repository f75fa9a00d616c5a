"""What shrinks it: one change of one axis, or two together, and what the peak would be then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from receipts.estimate.activations import FULL
from receipts.estimate.estimate import fullest
from receipts.estimate.setup import RankBatch, Setup
from receipts.receipt.patterns import BlockKind


@dataclass(frozen=True, slots=True)
class Shrink:
    """One change of the receipt's path ``axis``. ``total``: estimated bytes with it; ``saved``: what it takes off.

    Two changes together have both paths, and both changes, joined by " + ".
    """

    axis: str
    change: str
    total: float
    saved: float

    @property
    def axes(self) -> tuple[str, ...]:
        """The paths that change."""
        return tuple(self.axis.split(" + "))


def shrinks(setup: Setup) -> tuple[Shrink, ...]:
    """Changes that lower the estimate, the largest saving first; one axis each, on the same chips."""
    return _ordered(setup, _others(setup))


def pairs(setup: Setup) -> tuple[Shrink, ...]:
    """Changes of two axes together, as `shrinks` orders them: what is left to try where no single change suffices."""
    both_by_changes = {
        frozenset(((axis, change), (second, further))): (f"{axis} + {second}", f"{change} + {further}", both)
        for axis, change, one in _others(setup)
        for second, further, both in _others(one)
        if axis != second
    }
    return _ordered(setup, both_by_changes.values())


def _ordered(setup: Setup, others: Iterable[tuple[str, str, Setup]]) -> tuple[Shrink, ...]:
    now = fullest(setup).total
    shrunk = [Shrink(axis, change, total := fullest(other).total, now - total) for axis, change, other in others]
    return tuple(sorted((item for item in shrunk if item.saved > 0), key=lambda item: -item.saved))


def _others(setup: Setup) -> Iterator[tuple[str, str, Setup]]:
    batch, layout = setup.batch, setup.layout
    if batch.micro > 1:
        half = batch.micro // 2
        smaller = replace(batch, micro=half, accumulation=-(-batch.accumulation * batch.micro // half))
        yield "batch.micro_batch", f"{batch.micro} → {half}", replace(setup, batch=smaller)
    if batch.length > 1:
        half = batch.length // 2
        yield "batch.sequence_length", f"{batch.length} → {half}", replace(setup, batch=replace(batch, length=half))
    if setup.serving:
        yield from _layouts(setup)
        return
    for policy, title in ((frozenset({"activations"}), "selective: activations"), (FULL, "full")):
        if setup.recompute != policy and not setup.recompute >= FULL:
            yield "numerics.recompute", title, replace(setup, recompute=policy)
    if not setup.chunked_loss:
        yield "path.intended.cross_entropy", "chunked (fused with the head)", replace(setup, chunked_loss=True)
    if not setup.fused_attention:
        yield "path.intended.attention", "a kernel that stores no scores", replace(setup, fused_attention=True)
    if layout.tensor > 1 and not layout.sequence_parallel:
        yield "parallelism.sequence", "on", replace(setup, layout=replace(layout, sequence_parallel=True))
    if layout.shard > 1 and layout.zero < 3:
        stage = layout.zero + 1
        change = f"state sharding of stage {stage} over {layout.shard}"
        yield "parallelism.strategy", change, replace(setup, layout=replace(layout, zero=stage))
    yield from _layouts(setup)


def _layouts(setup: Setup) -> Iterator[tuple[str, str, Setup]]:
    """Degrees twice as high on the same chips: the data degree pays for them."""
    layout, model = setup.layout, setup.model
    halves = layout.shard % 2 == 0
    if halves and model.heads % (2 * layout.tensor) == 0 and layout.tensor < 8:
        more = replace(
            layout,
            tensor=2 * layout.tensor,
            shard=layout.shard // 2,
            expert_shard=max(1, layout.expert_shard // 2) if layout.expert_tensor > 1 else layout.expert_shard,
        )
        yield "parallelism.tensor", f"{layout.tensor} → {more.tensor}", replace(setup, layout=more)
    has_experts = any(BlockKind.EXPERT in layer for layer in model.layers)
    if has_experts and layout.expert_shard % 2 == 0 and model.experts % (2 * layout.expert) == 0:
        split = replace(layout, expert=2 * layout.expert, expert_shard=layout.expert_shard // 2)
        yield "parallelism.expert", f"{layout.expert} → {split.expert}", replace(setup, layout=split)
    data = layout.shard // layout.context
    if data % 2 == 0 and setup.batch.length % (4 * layout.context) == 0:
        # Its ranks come from the data ranks and hold the same shards (`ParallelLayout.shard` counts both).
        cut = replace(layout, context=2 * layout.context)
        shorter = replace(setup, layout=cut, batch=_twice_accumulated(setup))
        yield "parallelism.context", f"{layout.context} → {cut.context}", shorter
    if halves and len(model.layers) >= 2 * layout.pipeline and not setup.serving:
        ways = 2 * layout.pipeline
        whole, rest = divmod(len(model.layers), ways)
        deeper = replace(
            layout,
            pipeline=ways,
            stages=tuple(whole + (stage < rest) for stage in range(ways)),
            shard=layout.shard // 2,
            expert_shard=max(1, layout.expert_shard // 2),
        )
        split_again = replace(setup, layout=deeper, batch=_twice_accumulated(setup))
        yield "parallelism.pipeline", f"{layout.pipeline} → {ways}", split_again


def _twice_accumulated(setup: Setup) -> RankBatch:
    """Half of the data ranks take the same global batch in twice the micro steps."""
    return replace(setup.batch, accumulation=2 * setup.batch.accumulation)
