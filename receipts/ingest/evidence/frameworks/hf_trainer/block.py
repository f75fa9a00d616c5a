"""A dictionary that is printed over several lines, or that a terminal broke at its width."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.literal import Brackets

_OPEN: Final = re.compile(r"\{\s*(?=['\"]|$)")
# The number of a task, which some launchers print before each line, looks like a key.
_TASK: Final = re.compile(r"^\s{0,20}\d{1,6}:\s(?=\s{0,80}['\"}])")
_WITHIN: Final = re.compile(r"[\w.-][\w.]|\d-")


class DictBlock(Brackets):
    """The lines of one dictionary."""

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
