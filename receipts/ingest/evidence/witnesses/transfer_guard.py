"""JAX's transfer guard: `JAX_TRANSFER_GUARD=log` writes every implicit transfer, `disallow` raises on one.

``W1120 12:33:35.266411 21084 guard_lib.cc:140] device-to-device transfer: aval=…``, and the error ``Disallowed
device-to-host transfer: …``. On CPU a read of a value makes no line, so that none is seen proves nothing.
Source: jaxlib/guard_lib.cc; a real run of JAX 0.10.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading
from receipts.ingest.steps import STEP_ANCHORS, step_of

_TRANSFER: Final = re.compile(r"(Disallowed )?(host-to-device|device-to-host|device-to-device) transfer:")
MAX_STEPS: Final = 100_000


class TransferGuard(LineReader):
    """Implicit transfers by direction; those to the host are reads of live arrays."""

    source = "transfer-guard"
    anchors = (
        b"host-to-device transfer:",
        b"device-to-host transfer:",
        b"device-to-device transfer:",
    )
    companions = STEP_ANCHORS

    def __init__(self) -> None:
        super().__init__()
        self.follows = False
        self._steps: set[int] = set()

    def line(self, text: str, number: int) -> bool:
        """Count one transfer, or note a step."""
        match = _TRANSFER.search(text)
        if match is None:
            if (step := step_of(text)) is not None and len(self._steps) < MAX_STEPS:
                self._steps.add(step)
            return False
        reading = self.reading
        reading.records += 1
        self.follows = True
        reading.count(match[2])
        if match[1]:
            reading.count(f"disallowed {match[2]}")
            reading.remark("note", text[match.start() :][:200], number)
        return False

    def finish(self) -> Reading | None:
        """Transfers to the host, where there were any: their absence is no evidence."""
        reading = self.reading
        if not reading.records:
            return None
        reading.host_transfers = reading.counters.get("device-to-host")
        reading.steps_covered = len(self._steps) or None
        if reading.host_transfers is None:
            reading.remark("missing", "no transfer to the host is logged, which some backends do not log")
        return reading


READERS = (TransferGuard,)
