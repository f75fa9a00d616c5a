"""# R105 chips_unaccounted

*Why.* Degrees that do not multiply to the chips describe another launch than the one that ran: a copied table row, or
the other convention. TP 1, PP 4, EP 2, DP 2 is eight chips in Megatron-Core, which takes experts out of the data
ranks, and sixteen where experts are a mesh axis of their own.

*Rejected.* Tensor 2, pipeline 1, context 1 and data 3 on eight chips. Expert 3 over a data degree of 4 in
Megatron-Core, whose expert groups are cut from tensor × context × data. Shards of 8, replicated twice, on eight chips.
As I: mesh axes `data:2,model:2` on eight chips, and an axis `tensor:4` beside a tensor degree of 2.

*Accepted.* Tensor 2, expert 4, data 4 on eight chips of Megatron-Core. Data unstated, where the other degrees divide
the chips: it follows. In a lane without a convention, what fits either reading. Mesh axes `data:4,tensor:2` on eight
chips, or on sixteen of two pipeline stages. A microbenchmark: it has no layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from receipts.axes.switches import mesh_of
from receipts.base.units import counted
from receipts.judging.rule import Case, I, Offense, layout_rule
from receipts.metrics.degrees import (
    CHIPS,
    DATA,
    EXPERT,
    EXPERT_TENSOR,
    MESH,
    MESH_AXES,
    PIPELINE,
    REPLICATE,
    SHARD,
    TENSOR,
    data_ways,
    degree,
    model_ways,
    rank_counts,
    wanted,
)


def needs(case: Case) -> Iterable[str]:
    """Chips, the degrees of the lane, and the tensor degree inside experts where they are spread."""
    yield CHIPS
    yield from wanted(case.lane)
    if case.lane.convention == "expert_in_data":
        yield EXPERT
        if (degree(case.stated, case.lane, EXPERT) or 1) > 1:
            yield EXPERT_TENSOR


@layout_rule("R105", "chips_unaccounted", needs)
def chips_unaccounted(case: Case) -> Iterator[Offense]:
    """The product of the degrees against the chips, then the mesh, then expert groups inside the data ranks."""
    counts, replicas = rank_counts(case.stated), model_ways(case.stated, case.lane)
    if not counts:
        return
    data = data_ways(case.stated)
    products = [ways * share for ways in replicas for share in data] or list(replicas)  # none: a degree is unstated
    spread = (case.get(SHARD) or 1) * (case.get(REPLICATE) or 1)

    def holds(count: int) -> bool:
        """Whether the degrees make so many ranks."""
        return not replicas or (count in products if data else any(count % (ways * spread) == 0 for ways in replicas))

    # Where a chip is several devices, frameworks place their ranks on devices.
    fitting = [count for count in counts if holds(count)]
    fits, chips = bool(fitting), fitting[-1] if fitting else counts[0]
    if not fits:
        yield Offense(
            at=DATA if data else CHIPS,
            found=f"{_shown(case)} make {' or '.join(str(item) for item in products)} for {counted(chips, 'chip')}",
            expected=f"{chips}" if data else f"with shard and replicate, a divisor of {chips}",
            do="state the degrees as the framework counts them, or the chips that took part",
        )
    elif chips % spread:
        yield Offense(
            at=SHARD,
            found=f"shard {case.get(SHARD) or 1} × replicate {case.get(REPLICATE) or 1} are {spread} ranks",
            expected=f"a divisor of {counted(chips, 'chip')}",
            do="state over how many ranks parameters are sharded, and how many such groups there are",
        )
    yield from _meshed(case, chips)
    expert, tensor, stages = (degree(case.stated, case.lane, path) for path in (EXPERT, TENSOR, PIPELINE))
    if case.lane.convention != "expert_in_data" or not fits or not (expert and tensor and stages):
        return
    # Where a lane knows the tensor degree inside experts and it is not stated, each expert is on one rank or more.
    inside = expert * (case.get(EXPERT_TENSOR) or (1 if case.lane.applies(EXPERT_TENSOR) else tensor))
    stage = chips // stages
    if expert > 1 and stage % inside:
        yield Offense(
            at=EXPERT,
            found=f"expert groups of {inside} ranks among {stage} ranks of a stage",
            expected=f"a divisor of {stage}",
            do="state the expert degree as the framework counts it",
        )


def _meshed(case: Case, chips: int) -> Iterator[Offense]:
    """The mesh against the chips, or those of a stage where each has its own; then its axes against the degrees."""
    mesh = mesh_of(case.get(MESH) or "")
    size, stages = prod(mesh.values()), degree(case.stated, case.lane, PIPELINE) or 1
    if mesh and chips not in (size, size * stages):
        do = "state every axis of the mesh, or the chips that took part"
        yield Offense(MESH, f"{case.get(MESH)} make {size} for {counted(chips, 'chip')}", f"{chips}", do, level=I)
    for path, names in MESH_AXES.items():
        axes = [name for name in mesh if name in names]
        ways, stated = prod(mesh[name] for name in axes), case.get(path)
        if axes and stated is not None and ways != stated:
            do = f"state {path} as the mesh has it, or the mesh that ran"
            yield Offense(MESH, f"{' × '.join(axes)} of {ways}", f"{stated}, as {path}", do, level=I)


def _shown(case: Case) -> str:
    paths = (*wanted(case.lane), DATA)
    return ", ".join(f"{path.split('.')[1]} {case.get(path)}" for path in paths if case.get(path) is not None)
