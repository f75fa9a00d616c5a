"""A run that stopped stepping: how long a step had been running when it was ended, and when that is a hang.

Nothing watches the job while it runs, since a watchdog would be a thread in it. What is known afterwards is when the
last step ended or the next began, and when the process was told to stop, or somebody looked.
"""

from __future__ import annotations

from receipts.emit import journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from receipts.emit.record import RunRecord

# A step is stuck when it has run for so many times the median step, and for at least so many seconds: long enough for
# a straggler or a retried request, and shorter than the time-outs of collectives, which are minutes.
TIMES, LEAST_SECONDS = 20, 60.0
# With fewer steps there is no telling what is usual; the first ones compile.
LEAST_STEPS = 5


class Stall:
    """A step that had been running for ``seconds`` when the run ended or was looked at; the median one, in seconds."""

    __slots__ = ("median", "seconds", "step")

    def __init__(self, step: int, seconds: float, median: float) -> None:
        self.step = step
        self.seconds = seconds
        self.median = median

    def __str__(self) -> str:
        return f"step {self.step} had been running for {self.seconds:,.0f} s; the median step took {self.median:.3g} s"

    def __repr__(self) -> str:
        return f"Stall(step={self.step}, seconds={self.seconds:.1f})"


def of(record: RunRecord, now_ns: int) -> Stall | None:
    """The stall of a run at a moment of its own clock; None where it steps on, or where that cannot be told.

    Only a step that has begun can be stuck. What lies between steps, or inside a span (a checkpoint, an evaluation, a
    compilation), may take its time.
    """
    gauges, steps = record.gauges, record.steps
    if gauges is None or steps < LEAST_STEPS or gauges[journal.OPEN_SPAN]:
        return None
    begun = gauges[journal.BEGUN]
    if begun <= max(_last_end(record), gauges[journal.LAST]):
        return None
    durations = sorted(record.durations())
    median = durations[len(durations) // 2]
    running = now_ns - begun
    if running < LEAST_SECONDS * 1e9 or running < TIMES * median:
        return None
    return Stall(steps, running / 1e9, median / 1e9)


def _last_end(record: RunRecord) -> int:
    for words, used in reversed(record.blocks):
        if used > 1:
            return int(words[used - 2])
    return 0
