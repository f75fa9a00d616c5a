"""The table of metrics that the Trainer prints at the end of a training."""

from __future__ import annotations

import re
from typing import Final

_METRIC = re.compile(r"(?:^|\s)([A-Za-z]\w{2,60})\s+=\s+(\S(?:.{0,60}\S)?)\s*$")
_MAX_METRICS: Final = 80


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
