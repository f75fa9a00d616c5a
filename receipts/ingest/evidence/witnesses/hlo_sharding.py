"""How a program on several chips splits the arrays of its step, and which chips exchange with one another."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from receipts.ingest.evidence.witnesses.hlo_dots import dtype, shape
from receipts.ingest.evidence.witnesses.hlo_findings import OP_NAME

MAX_REPLICATED: Final = 200
MAX_WHOLE: Final = 20_000
MAX_SHAPES: Final = 2_000
# Of all parameters of a program, an array with less than this share was never worth splitting (norms, biases).
_SMALL: Final = 1e-3
# With so much of its arguments split a program is sharded, though some were left whole. Where the optimizer's states
# alone are split, the parameters are a quarter of it and more.
_MOST: Final = 0.8
_SHARDING: Final = re.compile(r"sharding=\{((?:[^{}]|\{[^{}]*\}){0,500})\}")
_TILES: Final = re.compile(r"devices=\[([\d,]{1,100})\]")
_GROUPS: Final = re.compile(r"replica_groups=(?:\{\{([\d,]{1,4000})|\[(\d{1,9}),(\d{1,9})\]<=)")
# Since JAX 0.10: ``replica_groups=mesh['data'=4,'model'=2] {'model'}``.
_MESH: Final = re.compile(r"replica_groups=mesh\[([^\]]{1,1000})\] \{([^}]{0,1000})\}")
_AXIS: Final = re.compile(r"'([^']{1,100})'=(\d{1,9})")


@dataclass(slots=True)
class Sharding:
    """The arguments of one program with how each was left, and its collectives."""

    whole: list[tuple[str, float]] = field(default_factory=list)
    whole_elements: float = 0.0
    elements: float = 0.0
    split: set[tuple[int, ...]] = field(default_factory=set)
    gathered: set[tuple[int, ...]] = field(default_factory=set)
    groups: set[int] = field(default_factory=set)
    exchanges: Counter[str] = field(default_factory=Counter)

    def exchange(self, opcode: str, text: str, operand: str | None) -> None:
        """Take a collective; of what is gathered, the array's extents: a parameter's, or an activation's."""
        self.exchanges[opcode] += 1
        if (size := _group_size(text)) is not None and len(self.groups) < MAX_SHAPES:
            self.groups.add(size)
        if operand is not None and len(self.gathered) < MAX_SHAPES and (extents := shape(operand)) is not None:
            self.gathered.add(_extents_of(extents[1]))

    def parameter(self, name: str, type_: str, text: str) -> None:
        """Take one array of the step's arguments: the compiler split it, or left it whole on every chip."""
        sharding, extents = _SHARDING.search(text), shape(type_)
        if sharding is None or extents is None or len(extents[1]) < 2 or dtype(extents[0]) is None:
            return
        tiles = _TILES.search(sharding[1])
        pieces = [int(part) for part in tiles[1].split(",") if part] if tiles else []
        if tiles and "last_tile_dim_replicate" in sharding[1]:
            pieces = pieces[:-1]
        elements = math.prod(float(extent) for extent in extents[1])
        if any(piece > 1 for piece in pieces):
            self.elements += elements * math.prod(pieces)
            if len(self.split) < MAX_SHAPES:
                self.split.add(_extents_of(extents[1]))
        elif tiles or sharding[1].startswith("replicated"):
            self.elements += elements
            self.whole_elements += elements
            if len(self.whole) < MAX_WHOLE:
                op = OP_NAME.search(text)
                name = op[1].replace("\\'", "'").replace('\\"', '"')[:200] if op else name
                self.whole.append((name, elements))

    @property
    def replicated(self) -> list[str]:
        """Arrays of the step's arguments that every chip holds whole, but for those too small to be worth splitting."""
        names = (name for name, elements in self.whole if elements >= _SMALL * self.elements)
        return list(islice(names, MAX_REPLICATED))

    @property
    def complete(self) -> bool:
        """Whether parameters are split, and none of size is left whole."""
        return bool(self.split) and len(self.whole) < MAX_WHOLE and not self.replicated

    def kind(self, chips: int) -> str | None:
        """``fsdp`` or ``dp``, where the collectives leave no other reading; None for anything else.

        Beside another axis of the mesh (groups that are not of all chips) it is ``fsdp`` where arrays of the split
        parameters' own extents are gathered: a tensor-parallel program gathers activations, and weights never.
        """
        mostly = self.whole_elements <= (1 - _MOST) * self.elements
        # A stack of layers is a parameter of one more extent than the layer that a loop takes out of it.
        layers = {key[:at] + key[at + 1 :] for key in self.split if len(key) > 2 for at in range(len(key))}
        if self.split and mostly and self.gathered & (self.split | layers):
            return "fsdp"
        if self.groups - {chips}:
            return None
        kinds = {name.removesuffix("-start") for name in self.exchanges}
        if "all-gather" in kinds and kinds & {"reduce-scatter", "fused_reduce_scatter"}:
            return "fsdp" if not self.replicated else None
        return "dp" if kinds == {"all-reduce"} and self.replicated else None


def _extents_of(dims: tuple[int, ...]) -> tuple[int, ...]:
    """An array by its extents, without their order and those of one."""
    return tuple(sorted(extent for extent in dims if extent > 1))


def _group_size(text: str) -> int | None:
    """How many chips exchange with one another; None where the text does not say."""
    groups = _GROUPS.search(text)
    if groups is not None:
        return len(groups[1].split(",")) if groups[1] else int(groups[3])
    mesh = _MESH.search(text)
    if mesh is None:
        return None
    named = {word.strip(" '") for word in mesh[2].split(",")}
    return math.prod(int(size) for axis, size in _AXIS.findall(mesh[1]) if axis in named)
