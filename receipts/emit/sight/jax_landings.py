"""When steps that were only dispatched have ended on their device: a thread of the recorder waits, and never the job.

A call of a jitted step returns at its dispatch. Where the job reads a result of every step, calls are as far apart as
steps; where it reads one step in ten, nine calls take a tenth of a millisecond and one takes ten steps. So a result of
every call is waited for in a thread, and its time is the end of that step. Steps that end within a few milliseconds of
one another share their time, so that the thread takes no processor from the job.
"""

from __future__ import annotations

import threading
from collections import deque
from time import perf_counter_ns, sleep

from receipts.emit import journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.run_record import RunRecord

# Between two waits, and seconds until the thread looks again where nothing is to be waited for.
SPACING_NS, IDLE = 5_000_000, 0.002
# Seconds at the end of a run in which the last of what was dispatched may end.
PATIENCE = 10.0


class Landings:
    """Results of calls in their order, and when each was there. ``put`` takes the next one and returns at once.

    Each call makes ``steps`` steps, which have equal shares of its time.
    """

    def __init__(self, first: int, steps: int = 1) -> None:
        self.first, self.steps = first, steps
        self._waiting: deque[Any] = deque()
        self.put = self._waiting.append
        # The step and the time of each result that was waited for.
        self._ends: list[tuple[int, int]] = []
        self._taken, self._closed, self._failed = 0, False, False
        self._thread = threading.Thread(target=self._run, name="receipts-landings", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"Landings({self._taken} steps from {self.first})"

    def _run(self) -> None:
        waiting, stride = self._waiting, 1
        while waiting or not self._closed:
            if not waiting:
                sleep(IDLE)
                continue
            # Of short steps every so many share a wait, as far as they have been dispatched.
            for _ in range(min(stride, len(waiting))):
                result = waiting.popleft()
                self._taken += 1
            try:
                result.block_until_ready()
            except Exception:  # given to the next step, which may write over it; or the step failed, which the job sees
                self._failed = True
                return
            self._ends.append((self._taken - 1, perf_counter_ns()))
            if len(self._ends) > 1:
                (before, begun), (step, ended) = self._ends[-2:]
                stride = max(1, SPACING_NS * (step - before) // max(1, ended - begun))

    def stop(self) -> None:
        """Wait for nothing more."""
        self._waiting.clear()
        self._closed = True

    def close(self, record: RunRecord) -> bool:
        """Write the ends over those of the calls; False, and nothing is written, where not every step has one."""
        self._closed = True
        self._thread.join(PATIENCE)
        if (
            self._thread.is_alive()
            or self._failed
            or self.first + self._taken * self.steps != record.steps
            or not self._ends
        ):
            return False
        ends, known = [0] * self._taken, -1
        for step, end in self._ends:
            before = ends[known] if known >= 0 else end
            for between in range(known + 1, step + 1):
                ends[between] = before + (end - before) * (between - known) // (step - known)
            known = step
        step, before = 0, 0
        for words, used in record.blocks:
            for at in range(0, used, 2):
                if step >= self.first:
                    call, part = divmod(step - self.first, self.steps)
                    took = words[at + 1] & journal.DURATION_MASK
                    begun = max(words[at] - took, before)
                    end = begun + (max(ends[call], words[at]) - begun) // (self.steps - part)
                    flags = words[at + 1] & ~journal.DURATION_MASK
                    words[at], words[at + 1] = end, max(1, end - begun) | flags
                step, before = step + 1, words[at]
        record.last_ns = max(record.last_ns, before)  # what was dispatched ends after the job's last call
        return True
