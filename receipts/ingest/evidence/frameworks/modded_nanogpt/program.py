"""The program that a log begins with: scripts that read their own file and print it are known by its digest."""

from __future__ import annotations

import hashlib
from typing import ClassVar, Final

from receipts.ingest.reader import LineReader

_RULE: Final = "=" * 40  # what the scripts print behind the program
MAX_LINES: Final = 50_000


class PrintedProgram(LineReader):
    """States the digest of the lines from the one that reads the program's own file up to the rule behind it."""

    source: ClassVar[str] = "printed-program"
    anchors: ClassVar[tuple[bytes, ...]] = (b"code = f.read()",)

    def __init__(self) -> None:
        super().__init__()
        self._digest = hashlib.sha256()
        self._begun = self._lines = 0

    def line(self, text: str, number: int) -> bool:
        """Take a line of the program; False behind its end."""
        if self.reading.records or self._lines >= MAX_LINES:
            return False
        self._begun = self._begun or number
        if text.startswith(_RULE):
            self.reading.records = self._lines
            digest = self._digest.hexdigest()
            self.reading.state(
                "code.imported_digest", digest, f"the program as printed, {self._lines:,} lines", self._begun
            )
            return False
        self._digest.update(text.encode("utf-8", "replace") + b"\n")
        self._lines += 1
        return True
