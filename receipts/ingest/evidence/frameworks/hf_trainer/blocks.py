"""What goes on over several lines: a dictionary, or the table of metrics at the end of a training."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.literals import Brackets

_OPEN: Final = re.compile(r"\{\s*(?=['\"]|$)")
# The number of a task, which some launchers print before each line, looks like a key.
_TASK: Final = re.compile(r"^\s{0,20}\d{1,6}:\s(?=\s{0,80}['\"}])")
_METRIC = re.compile(r"(?:^|\s)([A-Za-z]\w{2,60})\s+=\s+(\S(?:.{0,60}\S)?)\s*$")
_MAX_METRICS: Final = 80
_WITHIN: Final = re.compile(r"[\w.-][\w.]|\d-")


class DictBlock(Brackets):
    """The lines of one dictionary, which a terminal may have broken at its width."""

    def open(self, text: str, line: int) -> str:
        """Open a block, whose brace may be on a line that nobody saw; the whole where it ends on the same line."""
        match = _OPEN.search(text)
        body = text[match.start() :] if match else "{" + _TASK.sub("", text)
        goes_on = self.begin(body, line)
        if goes_on and ":" in body:
            return ""
        whole = self.take()
        return "" if goes_on else whole

    def add(self, text: str) -> bool:
        """Take one more line; False where it is the last one."""
        text = _TASK.sub("", text)
        # A terminal's width broke a number or a name.
        glued = _WITHIN.fullmatch(self._lines[-1][-1:] + text[:1]) is not None
        goes_on = glued or not text.strip() or ":" in text
        return self.more(text, glued=glued) and goes_on


class MetricTable:
    """The lines below ``***** train metrics *****``; ``line`` is where they began."""

    def __init__(self) -> None:
        self.open = False
        self.line = 0
        self._values: dict[str, str] = {}

    def begin(self, line: int) -> None:
        """Open a table."""
        self.open, self.line, self._values = True, line, {}

    def take(self, text: str) -> bool:
        """Take one more line; whether it is one of the table."""
        match = _METRIC.search(text)
        if match is None or len(self._values) >= _MAX_METRICS:
            return False
        self._values[match[1].lower()] = match[2]
        return True

    def end(self) -> dict[str, str]:
        """The values by their names; empty where no table was open."""
        values, self._values, self.open = self._values, {}, False
        return values
