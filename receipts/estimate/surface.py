"""One surface of the memory geometry: what it holds, when, and by which axes it shrinks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Name(StrEnum):
    """Surfaces, in the order in which they are shown. The values are those of `memory.predicted[].surface`."""

    REPLICATED = "replicated parameters"
    TENSOR = "tensor-sharded parameters"
    EXPERT = "expert-sharded parameters"
    GRADIENTS = "gradients"
    MATRIX_OPTIMIZER = "matrix optimizer"
    OTHER_OPTIMIZER = "other optimizer"
    ACTIVATIONS = "activations"
    ROUTING = "routing scratch"
    COMMUNICATION = "communication buffers"
    COMPILE = "compile peak"
    RECURRENT = "recurrent-state pool"
    KV_CACHE = "kv cache"
    FEATURES = "feature activations"
    RESERVE = "runtime reserve"
    OVERHEAD = "allocator overhead"


# What no allocator counts as live: the rest of the surfaces is what a live peak is compared with.
OUTSIDE = frozenset({Name.RESERVE, Name.OVERHEAD})


@dataclass(frozen=True, slots=True)
class Surface:
    """Bytes of one surface on the fullest rank.

    ``peak_bytes`` are live at the moment of the launch's peak, ``bytes`` at the surface's own largest. ``scales`` says
    by which axes it grows, ``source`` where its formula stands.
    """

    name: Name
    bytes: float
    peak_bytes: float
    scales: str = ""
    source: str = ""
