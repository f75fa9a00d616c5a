"""# R402 chip_missing

*Why.* The unit is the physical chip. A list of peaks in which the fullest chip is missing, or is listed twice, says
nothing about the launch; rank 0 alone is the commonest such list.

*Rejected.* Seven rows for eight chips in phase `steady`; chip 3 twice in one phase.

*Accepted.* Every chip has one row in every phase that is listed at all. Where the launch did not end well some chip may
not have been able to answer: that is shown (W), and no comparison of memory rests on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import counted, named
from receipts.judging.rule import COMPARABLE, MEMORY, Case, E, I, Offense, W, rule
from receipts.judging.verdict import NOTHING
from receipts.metrics.chips import Phase
from receipts.receipt.document import UNFAILED

_ROWS = "memory.chips"
_FAILED = f"{NOTHING}the chips of a launch that failed cannot be asked again"


def _needs(case: Case) -> Iterator[str]:
    # R401 asks about a receipt without any row.
    memory = case.receipt.memory
    if memory is not None and memory.chips:
        yield "hardware.chips"


@rule("R402", "chip_missing", E, question=COMPARABLE, taints=(MEMORY,), needs=_needs)
def chip_missing(case: Case) -> Iterator[Offense]:
    """Phases in which a chip is missing, listed twice, or not one of the launch's."""
    account = case.launch.account
    if account.stated is None:
        return
    failed = case.get("run.outcome") not in UNFAILED
    for phase in account.phases:
        for chip in phase.chips if phase.doubled else ():
            if chip.chip in phase.doubled:
                yield Offense(
                    at=f"{_ROWS}[{chip.rows[1]}]",
                    found=f"chip {chip.chip} is listed {_times(len(chip.rows))} in phase {phase.name}",
                    expected="one row per chip and phase",
                    do="keep the row that was read in that phase",
                    level=I if failed else E,
                )
        if phase.missing or phase.unnamed or phase.strange:
            yield Offense(
                at=_ROWS,
                found=f"{len(phase.chips)} of {counted(account.stated, 'chip')} in phase {phase.name}{_which(phase)}",
                expected=_FAILED
                if failed and not phase.strange
                else f"a row for each of {counted(account.stated, 'chip')}",
                do="gather the rows of every host and rank before writing the receipt",
                level=E if not failed else I if phase.strange else W,
            )


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


def _which(phase: Phase) -> str:
    if not phase.missing:
        return ""
    return f": {'chips' if len(phase.missing) > 1 else 'chip'} {named(phase.missing, 8)} missing"
