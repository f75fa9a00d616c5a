"""# R403 over_limit

*Why.* More memory in use than the limit means that the units are mixed (GB with GiB, allocated with reserved), that the
limit is another chip's, or that memory was oversubscribed and the peak is not HBM.

*Rejected.* A live peak of 151 GiB on a chip whose limit is 139.8 GiB.

*Accepted.* Used bytes and live peak are at or below the chip's own limit. An allocator's pool may exceed it, since it
may count what was never mapped.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import GIB
from receipts.judging.rule import COMPARABLE, MEMORY, Case, E, Offense, rule


def _needs(case: Case) -> Iterator[str]:
    """The first row that lacks a figure, for each figure: a finding a row would be eight chips times four phases."""
    # R401 asks about a receipt without any row.
    rows = case.launch.account.rows
    for name, figures in (
        ("bytes_limit", [row.limit for row in rows]),
        ("bytes_used", [row.used for row in rows]),
        ("peak_bytes", [row.peak for row in rows]),
    ):
        if None in figures:
            yield f"memory.chips[{figures.index(None)}].{name}"


@rule("R403", "over_limit", E, question=COMPARABLE, taints=(MEMORY,), needs=_needs)
def over_limit(case: Case) -> Iterator[Offense]:
    """Figures of a chip that are larger than its limit."""
    for index, row in enumerate(case.launch.account.rows):
        limit = row.limit
        for name, value in (("bytes_used", row.used), ("peak_bytes", row.peak)):
            if value is not None and limit is not None and value > limit:
                yield Offense(
                    at=f"memory.chips[{index}].{name}",
                    found=f"{value / GIB:.2f} GiB on chip {row.chip} in phase {row.phase}",
                    expected=f"at most its limit, {limit / GIB:.2f} GiB: {value - limit:,} bytes less",
                    do="check the units (GB, GiB, MiB) and which chip and which kind of memory the figures are of",
                )
