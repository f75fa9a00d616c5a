"""Losses and gradient norms, read without making the job wait: numbers at once, what lies on a device at the end.

A series keeps some tens of values, evenly spread over the run: when it is full, every second one goes.
"""

from __future__ import annotations

from receipts.emit import journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.steps import Steps

KEPT = 128
WAITING = 64


class Series:
    """One quantity over the steps. ``floats`` and ``gauges`` are words that survive the process (see `journal`)."""

    __slots__ = (
        "due",
        "finite",
        "first",
        "floats",
        "gauges",
        "given",
        "kept",
        "largest",
        "last",
        "latest",
        "name",
        "numbers",
        "places",
        "stride",
        "tell",
        "unread",
        "wait_stride",
        "waiting",
    )

    def __init__(self, name: str, places: tuple[int, int, int], tell: Callable[[list[Any]], None]) -> None:
        self.name = name
        self.places = places
        self.tell = tell
        self.gauges: Any = None
        self.floats: Any = None
        self.given = 0
        self.numbers = 0
        self.unread = 0
        self.first: float | None = None
        self.last: float | None = None
        self.largest: float | None = None
        self.finite = True
        self.kept: list[tuple[int, float]] = []
        self.stride = 1
        self.waiting: list[tuple[int, Any]] = []
        self.wait_stride = 1
        self.due = 1
        self.latest: Any = None

    def __repr__(self) -> str:
        return f"Series({self.name!r}, given={self.given}, last={self.last}, finite={self.finite})"

    def add(self, steps: Steps, value: Any) -> None:
        """Take a step's value: a number, or what gives one when it is called or converted at the end."""
        if isinstance(value, int | float) or type(value).__module__ == "numpy":
            self._number(steps.current, float(value))
            return
        # Without its graph: a kept loss must not keep a whole step's activations.
        detach = getattr(value, "detach", None)
        self.latest = value = value if detach is None else detach()
        self.given = given = self.given + 1
        if given == self.due:
            self.due = given + self.wait_stride
            self._wait(steps.current, value)

    def _number(self, step: int, value: float) -> None:
        self.given += 1
        self.last = value
        if value - value != 0.0:
            self.finite = False
        else:
            if self.largest is None or value > self.largest:
                self.largest = value
            if not self.numbers:
                self.first = value
        if self.gauges is not None:
            count, last, bad = self.places
            self.gauges[count] = self.given
            self.floats[last] = value
            if not self.finite:
                self.gauges[bad] = 1
            elif self.name == "gradient_norm" and self.largest is not None:
                self.floats[journal.LARGEST_NORM] = self.largest
        self.numbers += 1
        if (self.numbers - 1) % self.stride == 0 and value - value == 0.0:
            self.kept.append((step, value))
            self.tell([self.name, step, value])
            if len(self.kept) >= KEPT:
                self.kept = self.kept[::2]
                self.stride *= 2

    def _wait(self, step: int, value: Any) -> None:
        self.waiting.append((step, value))
        if len(self.waiting) >= WAITING:
            self.waiting = self.waiting[::2]
            self.wait_stride *= 2

    def read(self, last: int, fault: Callable[[str], None]) -> None:
        """Read what has waited; the run has ended with step ``last``, and what it waits for is its own last step."""
        waiting, self.waiting = self.waiting, []
        if self.latest is not None and (not waiting or waiting[-1][1] is not self.latest):
            waiting.append((last, self.latest))
        if waiting:
            self.unread = self.given - self.numbers - len(waiting)
        self.latest = None
        given = self.given
        for step, value in waiting:
            try:
                number = float(value() if callable(value) else value)
            except Exception as error:
                self.unread += 1
                fault(f"{self.name} of step {step} could not be read: {type(error).__name__}: {error}"[:500])
                continue
            self._number(step, number)
        self.given = given

    def drop(self) -> None:
        """Let go of what has waited without reading it: its device may never answer."""
        self.unread = self.given - self.numbers
        self.waiting, self.latest = [], None

    def restore(self, step: int, value: float) -> None:
        """Take a value that a journal kept."""
        if not self.kept:
            self.first = value
        if self.largest is None or value > self.largest:
            self.largest = value
        self.kept.append((step, value))
        self.last = value
        self.given += 1
        if len(self.kept) >= KEPT:
            self.kept = self.kept[::2]

    def gauged(self, gauges: Any, floats: Any) -> None:
        """Take what a journal's gauges say of the last value and of the count."""
        count, last, bad = self.places
        if gauges[count]:
            self.given, self.last = gauges[count], floats[last]
            self.finite = not gauges[bad]
            if self.name == "gradient_norm" and floats[journal.LARGEST_NORM] > 0:
                self.largest = floats[journal.LARGEST_NORM]
