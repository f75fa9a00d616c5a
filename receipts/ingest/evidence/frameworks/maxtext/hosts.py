"""Hosts that write to one file: Ray names its workers; without names, a record that repeats another is one's copy."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.record import RecordRows
from receipts.ingest.steps import ABSENT, Steps

_RAY: Final = re.compile(r"\(\S{1,80} pid=(\d{1,10})(?:, ip=([\d.:a-f]{1,45}))?\)")
_RECENT: Final = 8
_WORKERS: Final = 1 << 16


class Hosts:
    """The ranks of records, in the order in which their hosts first wrote."""

    def __init__(self) -> None:
        self._copies: dict[int, int] = {}
        self._workers: dict[tuple[str, str], int] = {}

    def named(self, before: str) -> int | None:
        """The rank of the worker that is before a record, from 0; -1 where none does, None beyond a bound."""
        workers = _RAY.findall(before) if "pid=" in before else []
        if not workers:
            return -1
        if workers[-1] not in self._workers and len(self._workers) < _WORKERS:
            self._workers[workers[-1]] = len(self._workers)
        return self._workers.get(workers[-1])

    def copy(self, row: RecordRows, steps: Steps, last: int) -> int | None:
        """The rank of a record that repeats step and loss of one of the last few; None for the first one."""
        step, loss = row.steps[0], row.figures.get("loss", [ABSENT])[0]
        recent = last - _RECENT < step <= last
        if not recent or loss == ABSENT or steps.get(step, "loss") != loss:
            return None
        copies = self._copies.get(step, 0)
        if copies == 0:
            # Its first record was put without a rank: give it one, so that both times count.
            steps.put(step, {"step_seconds": steps.get(step, "step_seconds")}, 0)
        self._copies[step] = copies + 1
        if len(self._copies) > _RECENT:
            del self._copies[next(iter(self._copies))]
        return copies + 1
