"""The hot path: a step is two readings of the clock and three stores; a span is two readings and two additions."""

from __future__ import annotations

from array import array

from receipts.emit import journal
from receipts.emit.clock import perf_counter_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Literal

FLAGS = ("warmup", "compile", "recompile", "checkpoint", "eval", "profile", "data")
BITS = {name: 1 << index for index, name in enumerate(FLAGS)}
# Spans of work that is not the step's: what is compiled and read in them is theirs.
APART = ("checkpoint", "eval")
_APART = tuple(journal.SPANS.index(name) + 1 for name in APART)
# Without a journal as many steps are kept in memory at once; then in a further block.
IN_MEMORY = 4096


class StepTimer:
    """The steps of a run, as a context manager of one step: `with steps: …`.

    Durations go to ``view``, two words a step, which ``more`` replaces when it is full. A step that raises is none.
    ``flags`` are the bits of the step that is running or comes next, ``held`` those of spans around whole steps.
    ``around`` counts blocks that ended around a step that had ended in them: of steps within steps the inner counts.
    """

    __slots__ = (
        "_after",
        "_more",
        "around",
        "at",
        "begun",
        "ended",
        "flags",
        "gauges",
        "held",
        "inside",
        "limit",
        "view",
    )

    def __init__(self, more: Callable[[int], Any], after: Callable[[int], None]) -> None:
        self._more = more
        self._after = after
        self.view: Any = array("q")
        self.at = 0
        self.limit = 0
        self.begun = 0
        self.ended = 0
        self.flags = 0
        self.held = 0
        self.inside = False
        self.around = 0
        self.gauges: Any = array("q", bytes(8 * journal.GAUGES))

    @property
    def count(self) -> int:
        """Steps that have ended."""
        return self.ended + self.at // 2

    @property
    def working(self) -> bool:
        """Whether a step is running, and no evaluation or checkpoint within it."""
        return self.inside and self.gauges[journal.OPEN_SPAN] not in _APART

    @property
    def current(self) -> int:
        """The step that a value belongs to: the one that is running, else the last one that ended."""
        count = self.count
        return count if self.inside else max(0, count - 1)

    def __enter__(self) -> StepTimer:
        self.inside = True
        self.begun = self.gauges[0] = perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        now = perf_counter_ns()
        if kind is not None:
            return False
        at = self.at
        if at < self.limit and not self.flags and self.inside:
            # The duration last: it is what says that the step has ended.
            view = self.view
            view[at] = now
            view[at + 1] = now - self.begun or 1
            self.at = at + 2
            self.inside = False
        elif self.inside:
            # It is flagged, the first one, or the first one of a block.
            self._write(now)
            self._after(self.count)
        else:
            # None: it was abandoned, or a step ended inside it.
            self.around += self.begun > 0
        return False

    def _write(self, now: int) -> None:
        if self.at >= self.limit:
            self.ended = self.count
            self.at, self.view = 0, self._more(self.ended)
            self.limit = len(self.view) // 2 * 2
        self.view[self.at] = now
        self.view[self.at + 1] = (now - self.begun or 1) & journal.DURATION_MASK | self.flags << journal.FLAG_SHIFT
        self.at += 2
        self.flags, self.inside = self.held, False

    def past(self, begun: int, ended: int) -> None:
        """Take a step that ended before anybody could say so; times by `perf_counter_ns`. `follow` has to come next."""
        self.inside, self.begun = True, begun
        self._write(ended)

    def follow(self) -> None:
        """What follows a step of the past, at a place of the job where a profiler may begin and end."""
        self._after(self.count)

    def abandon(self) -> None:
        """Forget the step that is running, and the flags that were its own."""
        self.inside, self.flags, self.begun = False, self.held, 0
        self.gauges[journal.BEGUN] = 0
        self.gauges[journal.LAST] = perf_counter_ns()

    def mark(self, flag: str) -> None:
        """Flag the step that is running, or the next one where none is. Raises ValueError for no such flag."""
        if flag not in BITS:
            raise ValueError(f"a step is flagged {', '.join(FLAGS)}, and not {flag!r:.40}")
        self.flags |= BITS[flag]

    def __repr__(self) -> str:
        return f"StepTimer({self.count} ended{', inside one' if self.inside else ''})"


class TimedSpan:
    """One span of wall time: `with span: …`. Its time and count stand in the gauges as soon as it ends.

    A step inside it, or around it, is flagged with its name; spans of data flag none, since every step may have one.
    Of spans within spans the outermost counts, and a span of profiling is no time of its own. ``turn`` is called where
    an outermost span begins and ends that is not of data: with the name, whether it begins, and the nanoseconds that
    it took between steps.
    """

    __slots__ = ("_turn", "begun", "bit", "index", "name", "open", "outer", "steps")

    def __init__(self, name: str, steps: StepTimer, turn: Callable[[str, bool, int], None]) -> None:
        self.name = name
        self.index = journal.SPANS.index(name)
        self.steps = steps
        self.bit = 0 if name == "data" else BITS[name]
        self.begun = 0
        self.open = False
        self.outer = False
        self._turn = turn

    def __enter__(self) -> TimedSpan:
        steps = self.steps
        self.open = True
        steps.flags |= self.bit
        if not steps.inside:
            steps.held |= self.bit
        self.outer = self.name != "profile" and not steps.gauges[journal.OPEN_SPAN]
        if self.outer:
            steps.gauges[journal.OPEN_SPAN] = self.index + 1
            if self.bit:
                self._turn(self.name, True, 0)
        self.begun = perf_counter_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        now = perf_counter_ns()
        steps, gauges = self.steps, self.steps.gauges
        self.open = False
        gauges[journal.LAST] = now
        gauges[journal.SPAN_COUNT + self.index] += 1
        if self.outer:
            gauges[journal.SPAN_TIME + self.index] += now - self.begun
            if steps.inside:
                gauges[journal.SPANS_IN_STEPS] += now - self.begun
        if kind is None:
            if self.outer:
                gauges[journal.OPEN_SPAN] = 0
            steps.held &= ~self.bit
            if not steps.inside:
                steps.flags = steps.held
        if self.outer and self.bit:
            self._turn(self.name, False, 0 if steps.inside else now - self.begun)
        return False

    def __repr__(self) -> str:
        return f"TimedSpan({self.name!r})"
