"""Executed programs of a converted XLA profile, as scripts around the Trainer print them."""

from __future__ import annotations

import re
from typing import Final

from receipts.base.units import SECONDS
from receipts.ingest.reading import Reading

_EVENT: Final = re.compile(
    r"Event Metadata Name: ([^,(\s]{1,120})(?:\(\d+\))?,.{0,60}Duration: ([\d.]{1,24}) (s|ms|us|ns)\b"
)


class ProfileEvents:
    """Counts programs by name and adds up their seconds; ``records`` are those that were taken."""

    def __init__(self, reading: Reading) -> None:
        self.records = 0
        self._reading = reading
        self._modules: bool | None = None

    def take(self, text: str) -> bool:
        """Take the head of a line of the profile, or an event below it; whether it is one of both."""
        if "Event Metadata Name:" in text:
            self._event(text)
            return True
        if "Line ID:" in text:
            self._modules = "XLA Modules" in text
            return True
        return False

    def _event(self, text: str) -> None:
        match = _EVENT.search(text)
        if match is None or self._modules is False or match[2].count(".") > 1:
            return
        self.records += 1
        self._reading.time(match[1], float(match[2]) * SECONDS[match[3]] if match[2] != "." else 0.0)
