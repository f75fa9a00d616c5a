"""How ranks divide a model: wrappers, meshes, placements, stages of a pipeline, and the degrees that these make.

No collective is called. Each rank of a pipeline of `torch.distributed.pipelining` says in the store of the process
group what its stages are made of, and the first rank joins what all of them said. Nobody waits for anybody: a rank that
has not said it yet is asked again after the next step.
"""

from __future__ import annotations

import json
import weakref
from collections import Counter

from receipts.emit.probes import imported
from receipts.emit.sight import geometry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from receipts.emit.sight.watch import Watch

PARTS = (
    ("torch.distributed.pipelining.stage", "_PipelineStageBase"),
    ("torch.distributed.pipelining.schedules", "_PipelineSchedule"),
)


class Pipeline:
    """The stages of this rank. ``size`` is how many ranks the pipeline has, ``whole`` the leaves of its model."""

    def __init__(self, stages: Sequence[Any], schedules: Sequence[Any]) -> None:
        self._modules = {int(item.stage_index): weakref.ref(item.submod) for item in stages}
        self._count, self.size = int(stages[0].num_stages), int(stages[0].group_size)
        names = {type(item).__name__.removeprefix("Schedule").lower() for item in schedules}
        self.leaves = {
            "pipeline": self.size,
            "virtual_pipeline": self._count // self.size if self._count > self.size else None,
            "schedule": names.pop() if len(names) == 1 else None,
        }
        self._key = ""
        self.whole: dict[str, Any] = {}

    @property
    def first(self) -> bool:
        """Whether this rank has the first stage, which alone is called with a batch."""
        return 0 in self._modules

    @property
    def model(self) -> Any:
        """The first stage of this rank, which is called with what the rank is given."""
        return self._modules[min(self._modules)]()

    def tell(self, watch: Watch, launch: str) -> None:
        """Say what the stages of this rank are made of."""
        if self._key:
            return
        self._key = f"receipts/stage/{launch}"
        for index, living in self._modules.items():
            if (module := living()) is not None:
                kind = geometry.Geometry(watch, module)
                held = sum(item.numel() for item in module.parameters())
                own = {"seen": kind.seen, "inferred": kind.inferred, "letters": kind.letters, "parameters": held}
                self._store().set(f"{self._key}/{index}", json.dumps(own))

    def join(self) -> None:
        """Join what all ranks said, where this one has the first stage and each has said it.

        Widths are those of the first stage that has them, and what each has a part of is summed up.
        """
        if not self._key or self.whole or not self.first:
            return
        keys = [f"{self._key}/{index}" for index in range(self._count)]
        if not self._store().check(keys):
            return
        stages = [json.loads(self._store().get(key)) for key in keys]
        whole: dict[str, Any] = {}
        for stage in stages:
            whole = {**stage["inferred"], **stage["seen"], **whole}
        letters = [letter for stage in stages for letter in stage["letters"]]
        whole["parameters_total"] = sum(stage["parameters"] for stage in stages)
        if letters and all(letters):
            kinds = Counter[str]()
            for stage in stages:
                for part in filter(None, str(stage["inferred"].get("attention_kinds") or "").split(" + ")):
                    kinds[part.partition(" ")[2]] += int(part.partition(" ")[0])
            whole |= geometry.stacked(letters)
            whole["attention_kinds"] = " + ".join(f"{count} {kind}" for kind, count in kinds.items()) or None
        self.whole = whole

    def _store(self) -> Any:
        return imported.part("torch.distributed.distributed_c10d", "_get_default_store")()


# Names that people give the axes of a device mesh, by the degree that they are.
DEGREES = {
    "tensor": ("tp", "tensor", "model", "mp", "tensor_parallel"),
    "context": ("cp", "context", "seq", "sp"),
    "pipeline": ("pp", "pipe", "pipeline", "stage"),
    "expert": ("ep", "expert"),
    "replicate": ("dp_replicate", "replicate", "ddp", "hsdp_replicate"),
    "shard": ("dp_shard", "fsdp", "shard", "dp_shard_cp"),
}
DATA = ("dp", "data", "data_parallel", "batch")


class Layout:
    """The degrees that are known; ``data`` is how many ranks see batches of their own, None where nothing tells."""

    def __init__(self, world: int) -> None:
        self.world = world
        self.strategy: str | None = None
        self.degrees: dict[str, int] = {}
        self.mesh: dict[str, int] = {}
        self.data: int | None = 1 if world == 1 else None

    def __repr__(self) -> str:
        return f"Layout({self.world}, {self.strategy}, {self.degrees})"

    @property
    def whole(self) -> bool:
        """Whether the degrees account for every rank, so that what is not among them is 1."""
        known = self.data or 0
        for name in ("tensor", "context", "pipeline"):
            known *= self.degrees.get(name, 1)
        return known == self.world


def world_of(stated: int) -> int:
    """Ranks of the job: torch's process group goes before what a launcher's environment says."""
    ask = imported.part("torch.distributed", "is_initialized")
    if ask is None or not ask():
        return stated
    return int(imported.part("torch.distributed", "get_world_size")())


def layout(chain: list[Any], parameters: list[Any], world: int, pipeline: Pipeline | None = None) -> Layout:
    """The layout of a model by its wrappers, its parameters, and the pipeline that it is a stage of."""
    plan = Layout(world)
    # What sharded parameters say: the axes of their meshes, by name, else by how they are placed on them.
    for item in (item for item in parameters if getattr(item, "device_mesh", None) is not None):
        mesh = item.device_mesh
        shape, placed = tuple(mesh.shape), tuple(item.placements)
        axes = tuple(mesh.mesh_dim_names or ("",) * len(shape))
        for name, size, placement in zip(axes, shape, placed, strict=True):
            degree = next((degree for degree, words in DEGREES.items() if name.lower() in words), None)
            if degree is None and (not name or name.lower() in DATA):
                degree = "shard" if placement.is_shard() else "replicate"
            if degree is not None:
                plan.degrees[degree] = max(plan.degrees.get(degree, 1), int(size))
            if name:
                plan.mesh[name] = int(size)
        if plan.degrees.get("shard", 0) > 1 or "replicate" in plan.degrees:
            plan.strategy = "fsdp2"
        plan.mesh.setdefault("", 1)
    names = [{kind.__name__ for kind in type(module).__mro__} for module in chain]
    for module, kinds in zip(chain, names, strict=True):
        if "DistributedDataParallel" in kinds:
            plan.strategy = plan.strategy or "ddp"
            group = getattr(module, "process_group", None)
            plan.data = group.size() if group is not None else None
        elif "FullyShardedDataParallel" in kinds:
            plan.strategy = "fsdp1"
            plan.degrees["shard"] = plan.data = int(module.world_size)
        elif "DeepSpeedEngine" in kinds:
            plan.strategy = f"zero{module.zero_optimization_stage()}"
            plan.data = int(module.dp_world_size)
    if plan.data is None and plan.mesh:
        plan.data = plan.degrees.get("shard", 1) * plan.degrees.get("replicate", 1)
    if pipeline is not None:
        plan.degrees["pipeline"] = pipeline.size
        plan.data = plan.data or world // pipeline.size
    plan.degrees = {name: size for name, size in plan.degrees.items() if size}
    return plan


def leaves(plan: Layout) -> Mapping[str, Any]:
    """The leaves of `parallelism`, those that follow by exclusion among them."""
    known: dict[str, Any] = {name: plan.degrees[name] for name in DEGREES if name in plan.degrees}
    if plan.whole:
        for name in ("tensor", "context", "pipeline", "expert"):
            known.setdefault(name, 1)
    axes = ",".join(f"{name}:{size}" for name, size in plan.mesh.items() if name)
    return {**known, "data": plan.data, "strategy": plan.strategy, "mesh_axes": axes or None}
