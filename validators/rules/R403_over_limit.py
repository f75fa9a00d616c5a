"""# R403 over_limit

*Why.* More in use than there is means that the units are mixed (GB with GiB, allocated with reserved), that the limit
is another chip's, or that memory was oversubscribed and the peak is not HBM.

*Rejected.* A live peak of 151 GiB on a chip whose limit is 139.8 GiB.

*Accepted.* Used bytes and live peak are at or below the chip's own limit. A pool may count what was never mapped.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.rule import COMPARABLE, MEMORY, Case, E, Offence, rule

_STATED = ("bytes_limit", "bytes_used", "peak_bytes")
_COUNTED = ("bytes_used", "peak_bytes")
_GIB = 2**30


def _needs(case: Case) -> Iterator[str]:
    """The first row that lacks a figure, for each figure: a finding a row would be eight chips times four phases."""
    # A receipt without any row is R401's to ask about.
    rows = (case.receipt.memory.chips if case.receipt.memory is not None else None) or ()
    for name in _STATED:
        lacks = next((index for index, row in enumerate(rows) if getattr(row, name) is None), None)
        if lacks is not None:
            yield f"memory.chips[{lacks}].{name}"


@rule("R403", "over_limit", E, question=COMPARABLE, taints=(MEMORY,), needs=_needs)
def over_limit(case: Case) -> Iterator[Offence]:
    """Figures of a chip that are larger than its limit."""
    rows = case.receipt.memory.chips if case.receipt.memory is not None else None
    for index, row in enumerate(rows or ()):
        for name in _COUNTED:
            value = getattr(row, name)
            if value is not None and row.bytes_limit is not None and value > row.bytes_limit:
                yield Offence(
                    at=f"memory.chips[{index}].{name}",
                    found=f"{value / _GIB:.2f} GiB on chip {row.chip} in phase {row.phase}",
                    expected=f"at most its limit, {row.bytes_limit / _GIB:.2f} GiB",
                    do="check the units (GB, GiB, MiB) and which chip and which kind of memory the figures are of",
                )
