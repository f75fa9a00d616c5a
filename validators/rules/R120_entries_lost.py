"""# R120 entries_lost

*Why.* A list of fallbacks without the one operator that fell back is a clean list, and seven wheels of eight are an
environment that works. No rule can ask for an entry that it does not know: whoever writes a receipt counts the entries
of what is read whole, in `run.entries`.

*Rejected.* Seven wheels where eight were counted. A step flag `compile` that was counted, and is not stated.

*Accepted.* As many entries as were counted, or more: a person may add what a log shows. A receipt without counts, as
people write them.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import ALL, COMPARABLE, Case, I, Offense, rule
from receipts.receipt.leaves import lost_entries


@rule("R120", "entries_lost", I, question=COMPARABLE, taints=(ALL,))
def entries_lost(case: Case) -> Iterator[Offense]:
    """Collections with fewer entries than were counted when the receipt was written."""
    # What a witness lends is no entry of this receipt.
    for item in lost_entries(case.launch.parsed.receipt):
        yield Offense(
            at=item.path,
            found=str(item),
            expected=f"the {item.counted:,} that run.entries counts",
            do="submit the receipt as it was written, or write it again from its files",
        )
