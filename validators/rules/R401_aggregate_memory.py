"""# R401 aggregate_memory

*Why.* One number for several chips hides the chip that matters. Ranks of one eight-GPU run differed by 4.7 to 11 GiB,
and an average mesh figure can look healthy while one chip is already over the edge.

*Rejected.* 118 GiB "peak" for eight chips, without a row a chip.

*Accepted.* A row by chip and phase; a single chip's one figure. Where the launch did not end well, its chips cannot be
asked again: the figure is then shown (W), and no comparison of memory rests on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import COMPARABLE, MEMORY, Case, E, Offense, W, rule
from receipts.judging.verdict import NOTHING
from receipts.receipt.document import UNFAILED

_ROWS, _ONE = "memory.chips", "memory.aggregate"


def _needs(case: Case) -> Iterator[str]:
    memory = case.receipt.memory
    if memory is not None and memory.aggregate is not None and not memory.chips:
        yield "hardware.chips"
    elif case.get("run.kind") == "training" and case.get("run.outcome") in UNFAILED:
        yield f"{_ROWS}[0].chip|{_ONE}" if memory is not None and memory.chips == () else f"{_ROWS}|{_ONE}"


@rule("R401", "aggregate_memory", E, question=COMPARABLE, taints=(MEMORY,), needs=_needs)
def aggregate_memory(case: Case) -> Iterator[Offense]:
    """One figure where there are several chips and no rows."""
    memory, chips = case.receipt.memory, case.get("hardware.chips")
    if memory is None or memory.aggregate is None or memory.chips or chips is None or chips == 1:
        return
    found, do = f"one figure ({memory.aggregate.over}) for {chips} chips", "record the memory of every chip by phase"
    if case.get("run.outcome") in UNFAILED:
        yield Offense(_ONE, found, f"a row for each of {chips} chips, by phase", do)
    else:
        yield Offense(_ONE, found, f"{NOTHING}the chips of a launch that failed cannot be asked again", do, level=W)
