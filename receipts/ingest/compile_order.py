"""Compiles between the steps that a log prints: where each one fell, and why it was needed.

A step is printed when it has ended, so a compile belongs to the step that is printed next. One that no step follows
came after the last step, and cost none.
"""

from __future__ import annotations

from typing import Final

from receipts.ingest.reading import CompileEvent, CompileSpan, Reading
from receipts.ingest.steps import step_of

MAX_EVENTS: Final = 10_000
# Steps that are looked at one by one; of the others, those behind a compilation.
MAX_STEPS: Final = 64
MAX_KEPT: Final = 10_000
# Lines that look as if they named a step, and name none.
MAX_STRANGE: Final = 200


class CompileOrder:
    """Compiles and printed steps of one log in their order."""

    def __init__(self) -> None:
        # Numbers of printed steps, ascending, and compiles, each with how many of those had been printed.
        self._steps: list[int] = []
        self._built: list[tuple[int, CompileEvent]] = []
        self._strange = 0
        self.follows = True

    def look(self, text: str) -> None:
        """Take a line of another source, which may name a step."""
        step = step_of(text)
        if step is None:
            self._strange += 1
            self.follows = self.follows and self._strange < MAX_STRANGE
            return
        if (not self._steps or step > self._steps[-1]) and len(self._steps) < MAX_KEPT:
            self._steps.append(step)
        self.follows = len(self._steps) < MAX_STEPS

    def compiled(self, why: str = "") -> CompileEvent:
        """A program was compiled; ``why`` is empty for the first of its function, and may be filled in later."""
        event = CompileEvent(why)
        if len(self._built) < MAX_EVENTS:
            self._built.append((len(self._steps), event))
        self.follows = self._strange < MAX_STRANGE
        return event

    def undo(self) -> str:
        """Forget the last compile, which did not take place, and return its cause."""
        return self._built.pop()[1].why if self._built else ""

    def place(self, reading: Reading) -> bool:
        """Put each compile between the steps printed before and after it; False where the log shows too few steps.

        Behind the last printed step none follows where every step is printed; else some may, and it has no place.
        """
        compile_ = reading.compile
        if len(self._steps) < 2:
            compile_.unplaced = [event for _, event in self._built]
            return False
        every = self._steps[1] - self._steps[0]
        begun = self._steps[0] - min(self._steps[0] or 1, every)
        ended = [0, *(step - begun for step in self._steps)]
        compile_.steps, compile_.spans = ended[-1], []
        for printed, event in self._built:
            if printed < len(self._steps):
                compile_.spans.append(CompileSpan(1, ended[printed], ended[printed + 1], event.why))
            elif every > 1:
                compile_.spans.append(CompileSpan(1, why=event.why))
        return True


def place(file: str, line: str | int) -> str:
    """``train.py:41``: the file's name alone, as folders differ between machines."""
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{line}"
