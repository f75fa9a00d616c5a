"""What people credit a win to, each declared once: the axes that can carry it, and what the receipts would show.

A mechanism is held against the receipts by K102: the changed axis must be one that can carry it, and nothing that was
observed may contradict it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

Sign = Literal["more", "less", "differs"]


@dataclass(frozen=True, slots=True)
class Trace:
    """What a mechanism leaves behind: a leaf, a metric or `SEQUENCE_WAYS` that ``moves`` so from baseline to candidate.

    A ``required`` trace has to be seen: without it the claim stays open. It says nothing against a change of other
    axes than ``on``, nor where a leaf of ``same`` differs between the sides.
    """

    of: str
    moves: Sign
    because: str
    required: bool = False
    on: str = "*"
    same: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One mechanism. ``axes`` are patterns of the axes that can carry it; ``traces`` what must not be contradicted."""

    name: str
    says: str
    axes: tuple[str, ...]
    traces: tuple[Trace, ...] = ()

    def carried_by(self, axis: str) -> bool:
        """Whether a change of this axis can be that mechanism."""
        return any(fnmatch.fnmatchcase(axis, pattern) for pattern in self.axes)


# How many ranks share a sequence: the context degree, times the tensor degree with sequence parallelism.
SEQUENCE_WAYS = "ranks that share a sequence"
_PROGRAM = Trace("compile.program_digest", "differs", "another program was compiled")
_SOFTWARE = ("path.*", "patches.*", "features.*", "flags.*", "wheels", "code")
_SHARDING = (
    "parallelism.shard",
    "parallelism.replicate",
    "parallelism.strategy",
    "parallelism.reshard_after_forward",
    "parallelism.mesh_axes",
    "parallelism.placement",
    "path.sharding",
)

MECHANISMS: Mapping[str, Mechanism] = {
    item.name: item
    for item in (
        Mechanism(
            "weight-residency",
            "a rank holds fewer weights",
            (
                *_SHARDING,
                *("parallelism.tensor", "parallelism.pipeline", "parallelism.expert", "parallelism.expert_tensor"),
                *("precision", "numerics.parameter_dtype", "flags.*", "features.*"),
            ),
            (Trace("peak_bytes", "less", "fewer weights on a rank take less room", required=True),),
        ),
        Mechanism(
            "weight-gathering",
            "weights stay gathered on the chip and are not gathered again",
            (*_SHARDING, "parallelism.tensor", "parallelism.pipeline", "flags.*", "features.*"),
            (Trace("peak_bytes", "more", "weights that stay take room"),),
        ),
        Mechanism(
            "sequence-partition",
            "activations are divided along the sequence",
            ("parallelism.sequence", "parallelism.context", "parallelism.tensor", "path.sharding", "features.*"),
            (
                Trace(
                    SEQUENCE_WAYS,
                    "differs",
                    "context parallelism, or the tensor degree with sequence parallelism, divides a sequence otherwise",
                    required=True,
                    on="parallelism.*",
                ),
            ),
        ),
        Mechanism(
            "compile-shape",
            "shapes that the compiler lays out better, or compiles once",
            (
                *("batch.*", "posture", "cuda_graphs", "compile.*", "parallelism.*", "path.sharding", "topology"),
                *("dimensions", "pattern", "flags.*", "features.*"),
            ),
            (replace(_PROGRAM, required=True),),
        ),
        Mechanism(
            "feasible-topology",
            "a topology that did not run, or did not fit, before",
            ("topology", "parallelism.*", "batch.micro_batch", "path.sharding"),
            (
                Trace(
                    "run.outcome",
                    "differs",
                    "a baseline that could not run this work",
                    required=True,
                    same=("batch.micro_batch", "batch.sequence_length"),
                ),
            ),
        ),
        Mechanism(
            "algorithmic-substitution",
            "another algorithm computes the same, or nearly the same",
            ("path.*", "optimizer", "recompute", "routing", "model.*", "pattern", "features.*", "patches.*", "code"),
        ),
        Mechanism("kernel", "another kernel for the same operation", _SOFTWARE, (_PROGRAM,)),
        Mechanism("precision", "fewer bits", ("precision", "numerics.*_dtype", "optimizer", "features.*", "flags.*")),
        Mechanism(
            "overlap",
            "communication hides behind computation",
            ("path.overlap", *_SHARDING, "parallelism.prefetch", "parallelism.bucket_bytes", "flags.*", "features.*"),
            (Trace("measurement.exposed_communication_seconds", "less", "what is hidden is not exposed"),),
        ),
        Mechanism(
            "launch-overhead",
            "fewer or cheaper launches: graphs, fusion, lazier dispatch",
            ("cuda_graphs", "posture", "compile.*", *_SOFTWARE),
        ),
        Mechanism("batch", "more work a step, for the same fixed cost", ("batch.*", "topology", "parallelism.data")),
        Mechanism("recompute", "less is computed twice, or more", ("recompute", "features.*")),
        Mechanism("pipeline", "fewer bubbles", ("parallelism.*pipeline", "parallelism.s[ct]*")),
        Mechanism("hardware", "another chip, fabric or host", ("hardware.*", "topology", "platform")),
        Mechanism("software", "a newer or patched stack", ("wheels", "platform", "code", "patches.*", "flags.*")),
        Mechanism("model", "less model", ("model.*", "pattern", "dimensions", "routing", "adapters", "features.*")),
        Mechanism("data", "other data, or another way to read it", ("data.*", "features.*", "flags.*")),
    )
}


def get(name: str) -> Mechanism | None:
    """The mechanism of that name; spaces and underscores count as hyphens."""
    return MECHANISMS.get(name.strip().lower().replace(" ", "-").replace("_", "-"))
