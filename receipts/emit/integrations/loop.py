"""What every integration does with a loop that is not its own: steps, spans between them, statements. Never raises."""

from __future__ import annotations

from functools import wraps

from receipts.emit.clock import perf_counter_ns
from receipts.emit.console import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from receipts.emit.recorder import Recorder
    from receipts.emit.steps import TimedSpan

__all__ = ["Hooked", "Loop", "guarded", "part", "quietly", "spanned", "stepped", "whole"]


class Loop:
    """One framework's loop as the recorder sees it.

    ``name`` is the framework's, as `path.witnessed.framework` has it. A step that `begin` begins has run since the end
    of the step before it, or since the end of a span that lay between the two.
    """

    def __init__(self, rec: Recorder, name: str) -> None:
        self.rec = rec
        self.name = name
        self._door = rec.stated_by(name)
        self._since = 0
        self._span: TimedSpan | None = None

    def start(self) -> None:
        """Start the recorder where no with block has, and name the framework as the one that drives the loop.

        Who attached the integration intends that framework; its hooks being called is the evidence that it ran.
        """
        self.rec.start()
        self.stated(
            {
                "path.intended.framework": self.name,
                "path.witnessed.framework": self.name,
                "path.witnessed.frameworks": [self.name],
            }
        )

    def stated(self, leaves: Mapping[str, Any]) -> None:
        """State leaves by their paths; None is skipped, and the caller's statements win."""
        for path, value in leaves.items():
            self._door.put(path, value)

    def resolved(self, configuration: Any) -> None:
        """State the settings that the framework resolved, on the first rank: those of the others name themselves."""
        from receipts.emit.configuration import object_settings

        if self.rec.stated_by(self.name).rank == 0:
            self._door.inputs("resolved", object_settings(configuration))

    def begin(self) -> None:
        """Begin a step, where none is running."""
        if not self.rec.in_step:
            self.leave()
            self.rec.step_begin(self._since)

    def end(self, tokens: int | None = None, steps: int = 1) -> None:
        """End the step that is running; of several in one call each has its share of the time."""
        rec = self.rec
        if not rec.in_step:
            return
        begun, share = rec._steps.begun, (perf_counter_ns() - rec._steps.begun) // steps
        for at in range(steps - 1):
            rec.step_past(begun + at * share, begun + (at + 1) * share, tokens or None)
            rec.step_told()
        if steps > 1:
            rec.step_begin(begun + (steps - 1) * share)
        rec.step_end(tokens or None)
        self._since = perf_counter_ns()

    def drop(self, reason: str = "") -> None:
        """Forget the step that is running: it has failed, or was none."""
        self.rec.abandon_step(reason)
        self._since = perf_counter_ns()

    def rest(self) -> None:
        """The loop is over: what comes now belongs to no step."""
        self.leave()
        self.rec.abandon_step()
        self._since = 0

    def enter(self, name: Literal["eval", "checkpoint"]) -> None:
        """Begin a span, where none is open."""
        if self._span is None:
            self._span = self.rec.span(name)
            self._span.__enter__()

    def leave(self) -> None:
        """End the span that is open; the next step begins here."""
        span, self._span = self._span, None
        if span is not None:
            span.__exit__(None, None, None)
            self._since = perf_counter_ns()

    def fault(self, where: str, error: Exception) -> None:
        """A note in the receipt instead of an exception in the job."""
        self._door.fault(f"{where}: {type(error).__name__}: {error}")

    def __repr__(self) -> str:
        return f"Loop({self.name!r}, {self.rec!r})"


class Hooked:
    """An object whose guarded methods a framework calls by their names."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    def _fault(self, where: str, error: Exception) -> None:
        self.loop.fault(where, error)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.loop!r})"


def quietly(loop: Loop, where: str, work: Callable[..., Any], *given: Any) -> Any:
    """What ``work`` returns; None, and a note, where it raises."""
    try:
        return work(*given)
    except Exception as error:
        loop.fault(where, error)
        return None


def spanned(loop: Loop, inner: Callable[..., Any], name: Literal["eval", "checkpoint"]) -> Callable[..., Any]:
    """A function of the framework's, whose time is a span."""

    @wraps(inner)
    def call(*given: Any, **named: Any) -> Any:
        quietly(loop, name, loop.enter, name)
        try:
            return inner(*given, **named)
        finally:
            quietly(loop, name, loop.leave)

    return call


def stepped(loop: Loop, inner: Callable[..., Any], tokens: Callable[[], int | None]) -> Callable[..., Any]:
    """A function of the framework's that is one step; ``tokens`` is asked before it, since a batch may ramp up."""

    @wraps(inner)
    def call(*given: Any, **named: Any) -> Any:
        quietly(loop, "step", loop.begin)
        every = quietly(loop, "tokens", tokens)
        try:
            result = inner(*given, **named)
        except BaseException as error:
            quietly(loop, "step", loop.drop, f"{type(error).__name__} left it")
            raise
        quietly(loop, "step", loop.end, every)
        return result

    return call


def part(loop: Loop, of: Any, name: str) -> Any:
    """An attribute; None where there is none, or where asking for it fails."""
    return quietly(loop, name, lambda: getattr(of, name, None))


def whole(value: Any) -> int | None:
    """A whole number above zero, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
