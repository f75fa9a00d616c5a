"""# R309 drifted_sharding

*Why.* A sharding annotation is a wish: the compiler propagates it, and where it cannot, it replicates. The model still
trains, with every chip holding and computing all of what it should hold one sixteenth of.

*Rejected.* `zero3-data16` was asked for, and the compiled program holds `replicated` parameters. The partition is the
one that was asked for, and the program replicates two arrays that it was to split.

*Accepted.* The compiled program keeps the partition, and what it replicates was never to be split (`replicated: []`, or
`dp` and `ddp`, which replicate parameters by design). One chip has nothing to keep apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import named
from receipts.judging.rule import ALL, PATH, Case, E, Offense, rule
from receipts.receipt.names import ANYTHING, parts

ASKED, SEEN = "path.intended.sharding", "path.witnessed.sharding"
REPLICATED = "path.witnessed.replicated"
_WHOLE = frozenset({"replicated", "dp", "ddp", "data_parallel"})
# What a program shows of its partition is its family: parameters split over the data axis, or copied there. A name that
# begins so (`zero3-data16`, `fsdp4_tp2`) asks for that family, and the rest of the name cannot be read off a program.
_SPLIT = ("zero", "fsdp", "fully_sharded", "spmd_zero")
_SHOWN = 5


def _needs(case: Case) -> Iterator[str]:
    if case.get("hardware.chips") == 1 or not case.lane.applies("path.sharding"):
        return
    yield from (ASKED, SEEN)
    if case.get(ASKED) is None or _split(case):
        yield REPLICATED


def _split(case: Case) -> bool:
    """Whether parameters were to be split at all."""
    requested = parts(case.get(ASKED) or "")
    return bool(requested - ANYTHING) and not requested <= _WHOLE


def _kept(requested: str, seen: str) -> bool:
    """Whether the partition seen is the one asked for, as far as its name tells."""
    if parts(requested) == parts(seen):
        return True
    if parts(seen) == {"fsdp"}:
        return all(word.startswith(_SPLIT) for word in parts(requested))
    return parts(seen) == {"dp"} and parts(requested) <= _WHOLE


@rule("R309", "drifted_sharding", E, question=PATH, taints=(ALL,), needs=_needs, of_configuration=True)
def drifted_sharding(case: Case) -> Iterator[Offense]:
    """Another partition than the intended one, and arrays replicated that were to be split."""
    requested, seen = case.get(ASKED), case.get(SEEN)
    if requested is not None and seen is not None and parts(requested) - ANYTHING and not _kept(requested, seen):
        yield Offense(
            at=SEEN,
            found=f"sharding {seen}",
            expected=f"{requested}, as {ASKED} asks",
            do="annotate the arrays that lost their sharding, or state the partition that ran",
        )
    replicated = tuple(case.get(REPLICATED) or ())
    if replicated and _split(case):
        yield Offense(
            at=REPLICATED,
            found=f"the compiler replicated {named(replicated, _SHOWN)}",
            expected=f"what {requested} splits to stay split",
            do="give these arrays a sharding that divides their shape, and compile again",
        )
