"""DeepSpeed's throughput line where a page folded it behind its commas, or a terminal broke it at its width."""

from __future__ import annotations

import re
from typing import Final

# The rest of a throughput line: at its commas, or anywhere.
_FOLDED = re.compile(r"[\s>#]{0,20}(?:epoch=|\d{1,9}/\d|(?:Running|Curr|Samples|Mem|MaxMem)\w{1,30}=)[^\[\]]{1,300}")
_PIECE = re.compile(r"[\w:=\],/ ][\w=.,/ +\]-]{0,299}|\.\d{1,20}[\w=.,/ ]{0,299}")
# Every version ends with the largest memory but the first ones, which print the average alone.
_WHOLE = re.compile(r"MaxMemAllocated=\s?[\d.]{1,20}\s?GB|\d/\d{1,12}, SamplesPerSec=[\d.]{1,30}\s*$")
_MAX_PIECES: Final = 8
_MAX_FIRST: Final = 400


class Wrapped:
    """A throughput line that is put together again; ``text`` is empty where none is open."""

    def __init__(self) -> None:
        self.text = ""
        self.line = self._pieces = 0

    def opens(self, text: str, line: int) -> bool:
        """Whether a line begins a record that goes on below; it is kept then."""
        if text.count("[timer.py:") != 1 or len(text) >= _MAX_FIRST or _complete(text):
            return False
        self.text, self.line, self._pieces = text, line, 0
        return True

    def takes(self, text: str) -> bool:
        """Whether a line is a piece of the open record; it is added then."""
        folded = _FOLDED.fullmatch(text)
        piece = folded or (_PIECE.fullmatch(text) and ("=" in text or "GB" in text or any(map(str.isdigit, text))))
        if not piece or self._pieces >= _MAX_PIECES:
            return False
        self._pieces += 1
        end = self.text.rstrip()
        apart = end.endswith((",", ":stop]"))
        self.text = f"{end} {text.strip(' >#')}" if apart else self.text + text
        return True

    @property
    def more(self) -> bool:
        """Whether the open record still lacks its end."""
        return not _complete(self.text)

    def take(self) -> tuple[str, int]:
        """The record as far as it came, and its line; none is open afterwards."""
        text, self.text = self.text, ""
        return text, self.line


def _complete(text: str) -> bool:
    # A page that was copied may have put blanks into the labels.
    return _WHOLE.search(text) is not None or _WHOLE.search(text.replace(" ", "")) is not None
