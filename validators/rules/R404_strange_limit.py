"""# R404 strange_limit

*Why.* The limit that a runtime reports is a fingerprint of the chip: 139.8 GiB is an H200, 31.25 GiB a v6e. Another
limit means another chip, a slice of one, a capped pool, or figures that were typed.

*Rejected.* 80 GiB as the limit of an H200; 16 GiB on a v6e.

*Accepted.* A limit that this accelerator's runtimes are known to report; any limit where none is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.accelerators import find
from receipts.rule import MEMORY, NONE, Case, Offence, W, rule

_GIB = 2**30


@rule("R404", "strange_limit", W, question=NONE, taints=(MEMORY,))
def strange_limit(case: Case) -> Iterator[Offence]:
    """Each limit that the stated accelerator does not have, once, at the first row that states it."""
    machine = find(str(case.get("hardware.accelerator") or ""))
    rows = case.receipt.memory.chips if case.receipt.memory is not None else None
    told: set[int] = set()
    for index, row in enumerate(rows or ()):
        limit = row.bytes_limit
        if machine is None or limit is None or limit in told or machine.accepts_limit(limit) is not False:
            continue
        told.add(limit)
        yield Offence(
            at=f"memory.chips[{index}].bytes_limit",
            found=f"{limit / _GIB:.2f} GiB on {machine.key}",
            expected=" or ".join(str(item) for item in machine.memory_limits),
            do="check the accelerator's name, a memory cap, and the unit",
        )
