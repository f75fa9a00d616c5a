"""# R404 strange_limit

*Why.* The limit that a runtime reports is a fingerprint of the chip: 139.8 GiB is an H200, 31.25 GiB a v6e. Another
limit means another chip, a slice of one, a capped pool, or figures that were typed.

*Rejected.* 80 GiB as the limit of an H200; 16 GiB on a v6e.

*Accepted.* A limit that this accelerator's runtimes are known to report; any limit where none is known.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import GIB
from receipts.judging.rule import MEMORY, NONE, Case, Offense, W, rule
from receipts.receipt.accelerators import find_accelerator


@rule("R404", "strange_limit", W, question=NONE, taints=(MEMORY,))
def strange_limit(case: Case) -> Iterator[Offense]:
    """Each limit that the stated accelerator does not have, once, at the first row that states it."""
    machine = find_accelerator(str(case.get("hardware.accelerator") or ""))
    seen: set[int] = set()
    for index, row in enumerate(case.launch.account.rows):
        limit = row.limit
        if machine is None or limit is None or limit in seen:
            continue
        seen.add(limit)
        if machine.accepts_limit(limit) is not False:
            continue
        yield Offense(
            at=f"memory.chips[{index}].bytes_limit",
            found=f"{limit / GIB:.2f} GiB on {machine.key}",
            expected=" or ".join(str(item) for item in machine.memory_limits),
            do="check the accelerator's name, a memory cap, and the unit",
        )
