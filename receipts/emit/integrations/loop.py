"""What every integration does with a loop that is not its own: steps, spans between them, statements. Never raises."""

from __future__ import annotations

from functools import wraps
from time import perf_counter_ns

from receipts.emit.stated import Stated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, TypeVar

    from receipts.emit.recorder import Recorder
    from receipts.emit.steps import Span

    Hook = TypeVar("Hook", bound=Callable[..., None])


class Loop:
    """One framework's loop as the recorder sees it.

    ``name`` is the framework's, as `path.witnessed.framework` has it. A step that `begin` begins has run since the end
    of the step before it, or since the end of a span that lay between the two.
    """

    def __init__(self, rec: Recorder, name: str) -> None:
        self.rec = rec
        self.name = name
        self._since = 0
        self._span: Span | None = None

    def start(self) -> None:
        """Start the recorder where no with block has, and name the framework as the one that drives the loop."""
        self.rec.start()
        self.stated({"path.witnessed.framework": self.name, "path.witnessed.frameworks": [self.name]})

    def stated(self, found: Mapping[str, Any]) -> None:
        """State leaves by their paths; None is skipped, and what the caller states stands above."""
        door = Stated(self.rec._run.facts, self.name)
        for path, value in found.items():
            door.put(path, value)

    def begin(self) -> None:
        """Begin a step, where none is running."""
        steps = self.rec._steps
        if steps.inside:
            return
        self.leave()
        self.rec.step_begin()
        if self._since:
            steps.begun = self._since

    def end(self, tokens: int | None = None) -> None:
        """End the step that is running."""
        if not self.rec._steps.inside:
            return
        self.rec.step_end(tokens if tokens else None)
        self._since = perf_counter_ns()

    def drop(self) -> None:
        """Forget the step that is running: it has failed, or was none."""
        self.rec._steps.inside = False
        self._since = perf_counter_ns()

    def rest(self) -> None:
        """The loop is over: what comes now belongs to no step."""
        self.leave()
        self.rec._steps.inside = False
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
        self.rec._run.fault(f"{self.name}: {where}: {type(error).__name__}: {error}")

    def __repr__(self) -> str:
        return f"Loop({self.name!r}, {self.rec!r})"


def guarded(hook: Hook) -> Hook:
    """A hook of an object with a ``loop``, whose faults become notes."""

    @wraps(hook)
    def call(self: Any, *given: Any, **named: Any) -> None:
        try:
            hook(self, *given, **named)
        except Exception as error:
            self.loop.fault(hook.__name__, error)

    return call  # type: ignore[return-value]


def quietly(loop: Loop, where: str, work: Callable[..., Any], *given: Any) -> Any:
    """What ``work`` returns; None, and a note, where it raises."""
    try:
        return work(*given)
    except Exception as error:
        loop.fault(where, error)
        return None


def part(loop: Loop, of: Any, name: str) -> Any:
    """An attribute; None where there is none, or where asking for it fails."""
    return quietly(loop, name, lambda: getattr(of, name, None))


def whole(value: Any) -> int | None:
    """A whole number above zero, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
