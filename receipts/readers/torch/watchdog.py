"""The watchdog of torch's process groups: a rank's stderr may hold nothing else, and it says how the run ended.

Source: `ProcessGroupNCCL.cpp` of torch 1.13 to 2.x. The outcome itself is read from the end of the log.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.prefix import rank_of
from receipts.ingest.reader import LineReader

_TIMEOUT: Final = re.compile(
    r"caught collective operation timeout: WorkNCCL\([^)]{0,200}?OpType=(?P<what>\w{1,40})[^\n]{0,200}?"
    r"Timeout\(ms\)=(?P<limit>\d{1,12})"
)
_MAX_NOTES: Final = 20


class NcclWatchdog(LineReader):
    """Reads collectives that timed out."""

    source: ClassVar[str] = "nccl-watchdog"
    anchors: ClassVar[tuple[bytes, ...]] = (b"caught collective operation timeout",)

    def line(self, text: str, number: int) -> bool:
        """Take one timeout."""
        match = _TIMEOUT.search(text)
        self.reading.records += 1
        if match is not None and self.reading.records <= _MAX_NOTES:
            rank = rank_of(text, match.start())
            where = f"rank {rank}: " if rank is not None else ""
            seconds = int(match["limit"]) / 1e3
            self.reading.remark("note", f"{where}{match['what']} timed out after {seconds:,.0f} s", number)
        return False


READERS = (NcclWatchdog,)
