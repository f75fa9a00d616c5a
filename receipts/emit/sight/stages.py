"""A pipeline of `torch.distributed.pipelining`: the stages of this rank, and the whole model, which no rank holds.

Each rank says in the store of the process group what its stages are made of, and the first rank joins what all of them
said. Nobody waits for anybody: a rank that has not said it yet is asked again after the next step.
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

    def __repr__(self) -> str:
        return f"Pipeline({len(self._modules)} of {self._count} stages)"

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
        """Join what all ranks said, where this one has the first stage and each has said it."""
        if not self._key or self.whole or not self.first:
            return
        keys = [f"{self._key}/{index}" for index in range(self._count)]
        if self._store().check(keys):
            self.whole = _joined([json.loads(self._store().get(key)) for key in keys])

    def _store(self) -> Any:
        return imported.part("torch.distributed.distributed_c10d", "_get_default_store")()


def _joined(stages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Leaves of `model`: widths of the first stage that has them, sums of what each has a part of."""
    leaves: dict[str, Any] = {}
    for stage in stages:
        leaves = {**stage["inferred"], **stage["seen"], **leaves}
    letters = [letter for stage in stages for letter in stage["letters"]]
    leaves["parameters_total"] = sum(stage["parameters"] for stage in stages)
    if letters and all(letters):
        kinds = Counter[str]()
        for stage in stages:
            for part in filter(None, str(stage["inferred"].get("attention_kinds") or "").split(" + ")):
                kinds[part.partition(" ")[2]] += int(part.partition(" ")[0])
        leaves |= geometry.stacked(letters)
        leaves["attention_kinds"] = " + ".join(f"{count} {kind}" for kind, count in kinds.items()) or None
    return leaves
