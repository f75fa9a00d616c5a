"""Compiles between the steps that a log prints: in which step each one fell, and why it was needed.

A step is printed when it has ended, so a compile belongs to the step that is printed next. One that no step follows
came after the last step, and cost none.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.evidence.reading import LINE, Compiled, Reading, alike

# A first call compiles, and so does the second where an array came back with another sharding.
WARM_STEPS: Final = 2
MAX_EVENTS: Final = 10_000
LATE: Final = "compile.compiles_after_warmup"
BREAKS: Final = "compile.graph_breaks"
# Lines that look as if they named a step, and name none.
MAX_STRANGE: Final = 200
STEPS: Final = (b"completed step: ", b"step: ", b"step=", b"step = ", b"step ", b"Step ")
_STEP: Final = re.compile(r"(?:^|[^\w/])[Ss]tep[ :=]{1,3}(\d{1,12})\b")


class CompileOrder:
    """Compiles and steps of one log in their order. Steps are asked for only while `follows` is true."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._open: list[Compiled] = []
        self._last: int | None = None
        self._strange = 0
        self.steps = 0

    @property
    def follows(self) -> bool:
        """Whether the next step matters: the first ones do, and the one that follows a compile."""
        return bool(self._open) or self.steps <= WARM_STEPS

    def look(self, text: str) -> bool:
        """Take a line of another source, which may name a step. Whether to look at further ones."""
        found = _STEP.search(text)
        if found is None:
            self._strange += 1
            return self.follows and self._strange < MAX_STRANGE
        self._strange = 0
        self._step(int(found[1]))
        return self.follows

    def _step(self, number: int) -> None:
        counts = self._reading.compile
        if counts.first_step is None:
            counts.first_step = number
        self.steps += number != self._last
        self._last = number
        for event in self._open:
            event.step = number
        self._open.clear()

    def compiled(self, why: str = "") -> Compiled:
        """A program was compiled; ``why`` is empty for the first of its function, and may be filled in later."""
        event, events = Compiled(why=why), self._reading.compile.events
        if len(events) < MAX_EVENTS:
            events.append(event)
            self._open.append(event)
        return event

    def late(self) -> int | None:
        """Compiles after the default warm-up, of which each is blamed on its cause; None with too few steps."""
        counts = self._reading.compile
        first, placed = counts.first_step, self.steps > WARM_STEPS
        late = [
            event
            for event in counts.events
            if first is None or (event.step is not None and event.step - first >= WARM_STEPS)
        ]
        causes = [event.why for event in late]
        if first is None:
            # Which of them came late is not shown: each cause once, and only those that name their line if some do.
            once = {alike(why): why for why in causes}.values()
            causes = [why for why in once if LINE.search(why)] or list(once)
        for why in causes:
            self._reading.blame(LATE, why)
        return len(late) if placed else None


def place(file: str, line: str | int) -> str:
    """``train.py:41``: the file's name alone, as folders differ between machines."""
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{line}"
