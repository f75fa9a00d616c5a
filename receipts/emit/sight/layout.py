"""How ranks divide a model: wrappers, meshes and placements, and the degrees they make. No collective is called."""

from __future__ import annotations

from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from receipts.emit.sight.stages import Pipeline

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
    _meshes(plan, parameters)
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


def _meshes(plan: Layout, parameters: list[Any]) -> None:
    """What sharded parameters say: the axes of their meshes, by name, else by how they are placed on them."""
    for item in parameters:
        mesh = getattr(item, "device_mesh", None)
        if mesh is None:
            continue
        shape, placed = tuple(mesh.shape), tuple(item.placements)
        names = tuple(mesh.mesh_dim_names or ("",) * len(shape))
        for name, size, placement in zip(names, shape, placed, strict=True):
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


def leaves(plan: Layout) -> Mapping[str, Any]:
    """The leaves of `parallelism`, those that follow by exclusion among them."""
    known: dict[str, Any] = {name: plan.degrees[name] for name in DEGREES if name in plan.degrees}
    if plan.whole:
        for name in ("tensor", "context", "pipeline", "expert"):
            known.setdefault(name, 1)
    axes = ",".join(f"{name}:{size}" for name, size in plan.mesh.items() if name)
    return {**known, "data": plan.data, "strategy": plan.strategy, "mesh_axes": axes or None}
