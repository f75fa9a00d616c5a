"""A dictionary that is printed over several lines, or that a terminal broke at its width."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.literal import balanced

_OPEN: Final = re.compile(r"\{\s*(?=['\"]|$)")
# The number of a task, which some launchers print before each line, looks like a key.
_TASK: Final = re.compile(r"^\s{0,20}\d{1,6}:\s(?=\s{0,80}['\"}])")
_WITHIN: Final = re.compile(r"[\w.-][\w.]|\d-")
_MAX_LINES: Final = 80


class DictBlock:
    """The lines of one dictionary; true while one is open. ``line`` is where it began."""

    def __init__(self) -> None:
        self.line = self._depth = 0
        self._lines: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._lines)

    def begin(self, text: str, line: int) -> str:
        """Open a block, whose brace may be on a line that nobody saw; the whole where it ends on the same line."""
        match = _OPEN.search(text)
        body = text[match.start() :] if match else "{" + _TASK.sub("", text)
        self._depth = balanced(body)
        if self._depth <= 0:
            return body
        if ":" in body:
            self._lines, self.line = [body], line
        return ""

    def more(self, text: str) -> bool:
        """Take one more line; False where it is the last one."""
        text = _TASK.sub("", text)
        within = _WITHIN.fullmatch(self._lines[-1][-1:] + text[:1])
        if within:
            # A terminal's width broke a number or a name.
            self._lines[-1] += text
        else:
            self._lines.append(text)
        self._depth += balanced(text)
        goes_on = within is not None or not text.strip() or ":" in text
        return self._depth > 0 and len(self._lines) < _MAX_LINES and goes_on

    def take(self) -> str:
        """The dictionary, closed where it was cut off; nothing where none is open, as none is afterwards."""
        lines, self._lines = self._lines, []
        return "\n".join(lines) + "}" * max(0, self._depth) if lines else ""
