"""What two surfaces are made of: parameters by family of tensors, and the routing scratch of one expert block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from receipts.estimate import weights
from receipts.estimate.routing import RoutingScratch
from receipts.estimate.saved_tensors import routing_of
from receipts.estimate.setup import Setup
from receipts.estimate.states import stored_bytes
from receipts.estimate.weights import Owner
from receipts.receipt.alphabets import BlockKind

_FAMILIES: Final = (
    ("norms", ("norm",)),
    ("routers", ("router",)),
    ("embedding and head", ("embedding", "head")),
    ("attention", ("qkv", "attention out", "indexer")),
    ("experts", ("experts",)),
    ("feed-forward", ("mlp", "shared expert")),
    ("mixers", ("mixer", "convolution", "transition")),
    ("multi-token prediction", ("mtp",)),
)


@dataclass(frozen=True, slots=True)
class ParameterFamily:
    """Parameters of one kind on a rank: ``bytes`` as stored, ``ways`` that tensor or expert degrees cut them.

    ``shard`` is the number of ranks that share what is left, 1 without state sharding of stage 3.
    """

    name: str
    owner: Owner
    bytes: float
    ways: int
    shard: int

    @property
    def cut(self) -> str:
        """How these parameters are cut."""
        degrees = f"cut {self.ways} ways" if self.ways > 1 else "whole on every rank"
        if self.shard > 1:
            return f"{degrees}, stored in {self.shard} shards" if self.ways > 1 else f"stored in {self.shard} shards"
        return degrees


def parameter_families(setup: Setup, stage: int) -> tuple[ParameterFamily, ...]:
    """Stored parameters of a pipeline stage by family, replicated families first."""
    layout = setup.layout
    tensors = (
        *weights.layers(setup.model, layout, setup.layers_of(stage)),
        *weights.ends(setup.model, layout, first=stage == 0, last=stage == layout.pipeline - 1),
    )
    held: dict[tuple[str, Owner], float] = {}
    for tensor in tensors:
        key = _family(tensor.name), tensor.owner
        held[key] = held.get(key, 0.0) + stored_bytes(tensor, setup)
    order = [name for name, _ in _FAMILIES]
    ways = {
        Owner.REPLICATED: 1,
        Owner.TENSOR: layout.tensor,
        Owner.EXPERT: layout.expert * layout.expert_tensor,
    }
    return tuple(
        ParameterFamily(name, owner, size, ways[owner], _shard(setup, owner))
        for (name, owner), size in sorted(held.items(), key=lambda item: order.index(item[0][0]))
    )


def routing_block(setup: Setup, stage: int) -> RoutingScratch | None:
    """The routing scratch of one expert block; None on a stage without experts."""
    has_experts = any(BlockKind.EXPERT in layer for layer in setup.layers_of(stage))
    return routing_of(setup) if has_experts and setup.model.experts else None


def _family(name: str) -> str:
    return next(family for family, words in _FAMILIES if any(word in name for word in words))


def _shard(setup: Setup, owner: Owner) -> int:
    if setup.layout.zero < 3:
        return 1
    return setup.layout.expert_shard if owner is Owner.EXPERT else setup.layout.shard
