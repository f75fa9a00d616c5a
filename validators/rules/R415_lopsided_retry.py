"""# R415 lopsided_retry

*Why.* All ranks of a mesh run one program over one layout. A rank that halves its own batch after an out-of-memory
failure waits in other collectives than its peers, or contributes another share of the gradient. So stepping down must
hold for the whole mesh.

*Rejected.* An attempt that names the one rank that was degraded, on a mesh of eight chips.

*Accepted.* Attempts that hold for every rank. One chip: its rank is the mesh.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.judging.rule import NONE, Case, E, Offense, failed, rule

_CHIPS = "hardware.chips"


def needs(case: Case) -> Iterable[str]:
    """How large the mesh is, where an attempt names a rank."""
    if any(True for _ in _lopsided(case)):
        yield _CHIPS


@rule("R415", "lopsided_retry", E, question=NONE, needs=needs, applies=failed)
def lopsided_retry(case: Case) -> Iterator[Offense]:
    """Attempts that degraded one rank of several."""
    chips = case.get(_CHIPS)
    if chips is None or chips == 1:
        return
    for number, rung, rank in _lopsided(case):
        yield Offense(
            at=f"failure.ladder[{number}].rank",
            found=f"{rung} on rank {rank} alone, of {chips} chips",
            expected="every rank of the mesh alike",
            do="shrink the whole mesh: the same plan on every rank",
        )


def _lopsided(case: Case) -> Iterator[tuple[int, str, int]]:
    failure = case.receipt.failure
    for number, attempt in enumerate((failure.ladder or ()) if failure is not None else ()):
        if attempt.rank is not None:
            yield number, attempt.rung, attempt.rank
