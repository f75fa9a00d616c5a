"""Where the step of a record is that does not hold it: on a progress bar, or on a line of the script's own."""

from __future__ import annotations

import re
from typing import Final

# A narrow terminal has no room for the bar itself: `8% 15/200 [07:27<…`.
BAR = re.compile(r"(?<!\d)\d{1,3}%(?:\|[^|]{0,400}\|)?\s*(\d{1,12})/(\d{1,12})\s*\[")
# A bar whose steps take so long that it was drawn anew after each of them: tqdm draws ten times a second.
_SLOW_BAR = re.compile(
    r"(?<!\d)\d{1,3}%(?:\|[^|]{0,400}\|)?\s*(\d{1,12})/(\d{1,12})\s*"
    r"\[[^\]]{0,60},\s*(?:[\d.]{1,12}s/it|[0-4]\.\d{1,4}it/s)\]\s*$"
)
_TITLE = re.compile(r"([A-Za-z][\w ]{2,40}):\s*$")
HINT = re.compile(r"\b(?:global_)?step[=: ]+(\d{1,12})(?:\s*/\s*(\d{1,12}))?")
# Lines that would give the record below them a step, in a file of which none is a record.
_MAX_HINTS: Final = 1000


class Places:
    """What is around the records of a log. ``total`` is how many steps the run is to have, where that is known."""

    def __init__(self) -> None:
        self.total: int | None = None
        self._placed: int | None = None
        self._hint: tuple[int, int] | None = None
        self._hints = 0
        self._bar: tuple[int, str] = (0, "")

    def record(self, step: int | None) -> None:
        """Note that a record was taken, and its step where it has one."""
        self._placed, self._hints = step, 0

    def hint(self, text: str, line: int) -> bool:
        """Take a line of the script's own; whether lines like it are of use."""
        if match := HINT.search(text):
            self._hint = (line, int(match[1]))
            self._hints += 1
        return self._hints < _MAX_HINTS

    def bar(self, text: str, line: int) -> None:
        """Take a progress bar."""
        self._bar = (line, text)

    def alone(self, line: int) -> bool:
        """Whether nothing right above a line gives it a step."""
        return (self._hint is None or line - self._hint[0] > 1) and line - self._bar[0] != 1

    def above(self, line: int) -> int | None:
        """The step that the line above gives, or the same line above it."""
        if self._hint is not None and 0 <= line - self._hint[0] <= 1:
            return self._hint[1]
        return self._slow_bar() if line - self._bar[0] == 1 else None

    def below(self, text: str) -> int | None:
        """The step that a progress bar below a record tells, where it is the bar of the training."""
        match = BAR.search(text)
        return self._of_training(text, match) if match is not None else None

    def _slow_bar(self) -> int | None:
        """The step of the bar above a record, where its steps are slow enough for it to be the record's own."""
        text = self._bar[1].rpartition("\r")[2]
        match = _SLOW_BAR.search(text)
        step = self._of_training(text, match) if match is not None else None
        # One that was drawn again below a record is none of the next record's.
        return step if step != self._placed else None

    def _of_training(self, text: str, bar: re.Match[str]) -> int | None:
        """The step of a bar; None where it counts what another title says, or another number of steps."""
        title = _TITLE.search(text, max(0, bar.start() - 60), bar.start())
        other = title is not None and not title[1].startswith("Train")
        step, most = int(bar[1]), int(bar[2])
        return step if not other and 0 < step <= most == (self.total or most) else None
