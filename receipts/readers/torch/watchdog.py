"""The watchdog of torch's process groups: a rank's stderr may hold nothing else, and it says how the run ended.

Source: `ProcessGroupNCCL.cpp` of torch 1.13 to 2.x. The outcome itself is read from the end of the log. What NCCL
itself prints with ``NCCL_DEBUG=INFO`` (or to ``NCCL_DEBUG_FILE``) tells its version, its network and the ranks of its
communicators, of which the largest need not be the whole job.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.prefix import rank_of
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

_TIMEOUT: Final = re.compile(
    r"caught collective operation timeout: WorkNCCL\([^)]{0,200}?OpType=(?P<what>\w{1,40})[^\n]{0,200}?"
    r"Timeout\(ms\)=(?P<limit>\d{1,12})"
)
_MAX_NOTES: Final = 20
_VERSION: Final = re.compile(r"\bNCCL version (\d[\w.+]{1,60})")
_NETWORK: Final = re.compile(r"NCCL INFO Using (?:network|internal Network) (\S{1,40})")
_RANKS: Final = re.compile(r"NCCL INFO .{0,120}?\bn[rR]anks (\d{1,7})\b")


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


class NcclInfo(LineReader):
    """Reads what NCCL says of itself when a communicator is made."""

    source: ClassVar[str] = "nccl"
    anchors: ClassVar[tuple[bytes, ...]] = (b"NCCL INFO ", b"NCCL version ")

    def __init__(self) -> None:
        super().__init__()
        self._most = self._informs = 0
        self._networks: set[str] = set()

    def line(self, text: str, number: int) -> bool:
        """Take one line."""
        self._informs += "NCCL INFO " in text
        if match := _VERSION.search(text):
            self.reading.state("platform.nccl", match[1], f"NCCL version {match[1]}", number)
        elif match := _RANKS.search(text):
            self._most = max(self._most, int(match[1]))
        elif (match := _NETWORK.search(text)) and len(self._networks) < _MAX_NOTES:
            self._networks.add(match[1])
        return False

    def finish(self) -> Reading | None:
        """The reading; a version alone is that of the program which prints it."""
        self.reading.records += self._informs
        if self._most:
            network = f" over {', '.join(sorted(self._networks))}" if self._networks else ""
            what = f"NCCL's largest communicator has {self._most:,} ranks{network}: at least so many chips"
            self.reading.remark("note", what)
        return super().finish()


READERS = (NcclWatchdog, NcclInfo)
