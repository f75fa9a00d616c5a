"""All that is known of one process's run, whether it is still going or was read from its journal, and when it is stuck.

Nothing watches the job while it runs, since a watchdog would be a thread in it. What is known afterwards is when the
last step ended or the next began, and when the process was asked to stop, or somebody looked.
"""

from __future__ import annotations

from receipts.emit import journal
from receipts.emit.facts import StatedFacts
from receipts.emit.identity import ProcessRank
from receipts.emit.losses import ScalarSeries

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


# A step is stuck when it has run for so many times the median step, and for at least so many seconds: long enough for
# a straggler or a retried request, and shorter than the time-outs of collectives, which are minutes.
STALL_MEDIANS, MIN_STALL_SECONDS = 20, 60.0
# With fewer steps there is no telling what is usual; the first ones compile.
MIN_STALL_STEPS = 5


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


def stall_of(record: RunRecord, now_ns: int) -> Stall | None:
    """The stall of a run at a moment of its own clock; None where it steps on, or where that cannot be told.

    Only a step that has begun can be stuck. What lies between steps, or inside a span (a checkpoint, an evaluation, a
    compilation), may take its time.
    """
    gauges, steps = record.gauges, record.steps
    if gauges is None or steps < MIN_STALL_STEPS or gauges[journal.OPEN_SPAN]:
        return None
    begun = gauges[journal.BEGUN]
    ended = next((words[used - 2] for words, used in reversed(record.blocks) if used > 1), 0)
    if begun <= max(ended, gauges[journal.LAST]):
        return None
    durations = sorted(record.durations())
    median = durations[len(durations) // 2]
    running = now_ns - begun
    if running < MIN_STALL_SECONDS * 1e9 or running < STALL_MEDIANS * median:
        return None
    return Stall(steps, running / 1e9, median / 1e9)


LOSS_SERIES = ("loss", (journal.LOSSES, journal.LOSS, journal.NOT_FINITE), journal.LOSS_TABLE)
NORM_SERIES = ("gradient_norm", (journal.NORMS, journal.NORM, journal.NORM_NOT_FINITE), journal.NORM_TABLE)
# A batch at the end of an epoch is shorter; the median step, from which rates follow, is not.
NEARLY_EVERY = 0.9


class RunRecord:
    """What a receipt is built from. ``head`` is the journal's first frame, ``blocks`` words of steps, two a step.

    ``last_ns`` is the last sign of life in the process's clock, ``last_elapsed`` the run's end in seconds of the
    kernel's ticks, ``finished`` the end by the time of day, ``stall`` a step that was stuck; ``apart`` are nanoseconds
    of spans before steps, by step; ``outcome`` is None while the run goes on, ``ended`` says whether a journal holds
    the run's own word on it. ``journal`` is the SHA-256 of its journal, empty without one.
    """

    def __init__(self, head: dict[str, Any], tell: Callable[[list[Any]], None] | None = None) -> None:
        self.head = head
        self.place = ProcessRank(head.get("rank", 0), head.get("world", 1), head.get("local_rank", 0), "", head["host"])
        self.facts = StatedFacts(tell)
        self.blocks: list[tuple[Any, int]] = []
        self.gauges: Any = None
        self.losses = ScalarSeries(*LOSS_SERIES)
        self.norms = ScalarSeries(*NORM_SERIES)
        self.tokens: list[tuple[int, int]] = []
        self.apart: dict[int, int] = {}
        self.warmup: int | None = head.get("warmup")
        self.window: tuple[int | None, int | None] = (None, None)
        self.signal: int | None = None
        self.outcome: str | None = None
        self.exit_code: int | None = None
        self.failure: dict[str, Any] = {}
        self.stall: Stall | None = None
        self.finished = ""
        self.ended = False
        self.last_ns = 0
        self.last_elapsed = 0.0
        self.journal = ""

    @property
    def steps(self) -> int:
        """Steps that have ended."""
        return sum(words for _, words in self.blocks) // 2

    @property
    def name(self) -> str:
        """What to call this part of the launch."""
        return f"rank {self.place.rank}"

    def durations(self) -> Iterator[int]:
        """Nanoseconds of every step in order."""
        for words, used in self.blocks:
            for at in range(1, used, 2):
                yield words[at] & journal.DURATION_MASK

    def walls(self) -> Iterator[int]:
        """Nanoseconds from the end of the step before to that of each step, less what was apart from both."""
        step, before = 0, 0
        for words, used in self.blocks:
            for at in range(0, used, 2):
                took = words[at + 1] & journal.DURATION_MASK
                yield max(took, words[at] - before - self.apart.get(step, 0)) if before else took
                step, before = step + 1, words[at]

    def flagged(self) -> dict[str, list[int]]:
        """Positions of steps by flag, the warm-up among them."""
        from receipts.emit.steps import BITS

        steps: dict[str, list[int]] = {}
        if self.warmup:
            steps["warmup"] = list(range(min(self.warmup, self.steps)))
        step = 0
        for words, used in self.blocks:
            for at in range(1, used, 2):
                bits = words[at] >> journal.FLAG_SHIFT
                if bits:
                    for name, bit in BITS.items():
                        if bits & bit and not (name == "warmup" and step < (self.warmup or 0)):
                            steps.setdefault(name, []).append(step)
                step += 1
        return steps

    def tokens_per_step(self, start: int, stop: int | None) -> int | None:
        """What nearly every measured step has; else their mean, which no batch explains (R106).

        Without a number the batch would stand for every step, however short its sequences were.
        """
        last = self.steps if stop is None else min(stop, self.steps)
        ends = [step for step, _ in self.tokens[1:]] + [last]
        counts: dict[int, int] = {}
        for (begin, tokens), end in zip(self.tokens, ends, strict=False):
            counts[tokens] = counts.get(tokens, 0) + max(min(end, last) - max(begin, start), 0)
        total = sum(counts.values())
        most = max(counts, key=lambda tokens: counts[tokens], default=None)
        if most is None or counts[most] >= NEARLY_EVERY * total:
            return most
        return round(sum(tokens * often for tokens, often in counts.items()) / total)

    def __repr__(self) -> str:
        return f"RunRecord(rank={self.place.rank}, {self.steps} steps, outcome={self.outcome})"

    def replay(self, events: Sequence[list[Any]]) -> None:
        """Take the events of a journal in their order; one of an unknown kind is left out."""
        for event in events:
            try:
                if self.facts.apply(event):
                    continue
                name, *rest = event
                if name == "tokens":
                    self.tokens.append((int(rest[0]), int(rest[1])))
                elif name == "apart":
                    self.apart[int(rest[0])] = self.apart.get(int(rest[0]), 0) + int(rest[1])
                elif name == "warmup":
                    self.warmup = int(rest[0])
                elif name == "window":
                    self.window = (rest[0], rest[1])
                elif name == "place":
                    self.place = ProcessRank(*rest)
                elif name == "launch":
                    self.head["launch"] = str(rest[0])
                elif name == "digest":
                    for row in self.facts.evidence:
                        if row.get("uri") == rest[0]:
                            row.setdefault("sha256", rest[1])
                elif name == "signal":
                    self.signal = int(rest[0])
                elif name == "failure":
                    self.outcome, self.failure = str(rest[0]), dict(rest[1])
                elif name == "end":
                    self.outcome, self.exit_code, self.finished = rest[0], rest[1], str(rest[2])
                    self.last_elapsed = float(rest[3]) if len(rest) > 3 else 0.0
                    self.ended = True
            except (TypeError, ValueError, KeyError, IndexError, AttributeError):
                self.facts.fault("journal", f"an event could not be taken: {event!r:.120}")
