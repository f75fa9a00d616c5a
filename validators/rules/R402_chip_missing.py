"""# R402 chip_missing

*Why.* The unit is the physical chip. A list of peaks in which the fullest chip is missing, or stands twice, says
nothing about the launch; rank 0 alone is the commonest such list.

*Rejected.* Seven rows for eight chips in phase `steady`; chip 3 twice in one phase.

*Accepted.* Every chip has one row in every phase that is listed at all. Where the launch did not end well some chip may
not have been able to answer: the question is then left open.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from receipts.rule import COMPARABLE, MEMORY, Case, E, I, Offence, rule

_ROWS = "memory.chips"


def _needs(case: Case) -> Iterator[str]:
    # A receipt without any row is R401's to ask about.
    memory = case.receipt.memory
    if memory is not None and memory.chips:
        yield "hardware.chips"


@rule("R402", "chip_missing", E, question=COMPARABLE, taints=(MEMORY,), needs=_needs)
def chip_missing(case: Case) -> Iterator[Offence]:
    """Phases in which a chip is missing, stands twice, or is one too many."""
    memory, chips = case.receipt.memory, case.get("hardware.chips")
    if memory is None or not memory.chips or chips is None:
        return
    level = E if case.get("run.outcome") == "ok" else I
    phases: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for index, row in enumerate(memory.chips):
        seen = phases[row.phase]
        seen[row.chip] += 1
        if seen[row.chip] == 2:
            yield Offence(
                at=f"{_ROWS}[{index}]",
                found=f"chip {row.chip} stands twice in phase {row.phase}",
                expected="one row a chip and phase",
                do="keep the row that was read in that phase",
                level=level,
            )
    for phase, seen in phases.items():
        if len(seen) != chips:
            yield Offence(
                at=_ROWS,
                found=f"{len(seen)} of {chips} chips in phase {phase}",
                expected=f"a row for each of {chips} chips",
                do="gather the rows of every host and rank before writing the receipt",
                level=level,
            )
