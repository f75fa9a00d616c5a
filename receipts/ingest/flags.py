"""The flags of steps that are not ordinary ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence.reading import Reason
from receipts.ingest.series import StepSeries

# The receipt's flags by what readers say. A time that cannot be, and one in which nothing was updated, are no
# ordinary steps either, and the receipt has no word of their own for them.
FLAGS: Final[Mapping[Reason, str]] = {
    "compile": "compile",
    "warmup": "warmup",
    "profile": "profile",
    "impossible": "warmup",
    "stall": "data",
    "eval": "eval",
    "checkpoint": "checkpoint",
    "skipped": "warmup",
}
_SAID_OTHERWISE: Final = ("impossible", "stall", "skipped")


def flags_of(draft: ReceiptDraft, steps: StepSeries, rows: Sequence[int], where: Where) -> dict[str, list[int]]:
    """Flags with the positions among ``rows`` of the steps that they are of."""
    flagged: defaultdict[str, list[int]] = defaultdict(list)
    renamed: defaultdict[str, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        reason = steps.not_steady.get(steps.numbers[row])
        if reason is not None:
            flagged[FLAGS[reason]].append(position)
            if reason in _SAID_OTHERWISE:
                renamed[reason].append(steps.numbers[row])
    for word, numbers in renamed.items():
        few = ", ".join(map(str, numbers[:5])) + (f" and {len(numbers) - 5} more" if len(numbers) > 5 else "")
        draft.tell("note", f"step {few}: {word}, no ordinary step", where)
    return dict(flagged)
