"""What ingesting makes of one reading's compiles: those after the warm-up."""

from __future__ import annotations

from pathlib import Path

from receipts.ingest.draft import ReceiptDraft
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reading import Reading
from receipts.ingest.warmup import AFTER, state_warmup


def late(*readings: Reading, window: int | None = None) -> int | None:
    """Compiles after the warm-up, which ends at a stated window's start or where the readings show it."""
    draft = ReceiptDraft()
    if window is not None:
        draft.tree["measurement"] = {"window": {"start": window}}
    files = [FileEvidence(Path(f"{at}.log"), f"{at}.log", "0" * 64, 1, (item,), ()) for at, item in enumerate(readings)]
    state_warmup(draft, files, False)
    found = draft.get(AFTER)
    return None if found is None else int(found)
