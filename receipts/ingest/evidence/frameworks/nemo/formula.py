"""Tokens a second as NVIDIA's recipes work them out below a NeMo line: sequence length × batch ÷ step time.

Source: the README files of NVIDIA/dgxc-benchmarking. The worked example states the sequence length, which the line
above it does not; it counts only where its batch and its time are those of a step in the same text.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.reading import Reading

_EXAMPLE: Final = re.compile(
    r"(\d{1,9}) \* (\d{1,9}) / ([0-9]{1,9}(?:\.[0-9]{1,9})?) = ([0-9][0-9,]{0,15}(?:\.[0-9]{1,9})?)"
)
_MAX_LINES: Final = 12
_MAX_EXAMPLES: Final = 16


class Formula:
    """Reads the worked examples that follow the formula's words."""

    __slots__ = ("_found", "_left", "open")

    def __init__(self) -> None:
        self._found: list[tuple[int, int, float, float, str, int]] = []
        self._left = 0
        self.open = False

    def begin(self) -> bool:
        """The words were read; an example stands within the next lines."""
        self.open, self._left = True, _MAX_LINES
        return True

    def take(self, text: str, line: int) -> bool:
        """Take a line after the words; False once an example was read or none came."""
        self._left -= 1
        match = _EXAMPLE.search(text)
        if match is not None and len(self._found) < _MAX_EXAMPLES:
            rate = float(match[4].replace(",", ""))
            self._found.append((int(match[1]), int(match[2]), float(match[3]), rate, match[0], line))
        self.open = match is None and self._left > 0
        return self.open

    def state(self, reading: Reading) -> None:
        """State the sequence length, and the rate of the step that an example is about."""
        for length, batch, seconds, rate, text, line in self._found:
            if length < 1 or seconds <= 0 or abs(length * batch / seconds - rate) > 1:
                continue
            for step in reading.steps.numbers():
                same = reading.steps.get(step, "step_seconds") == seconds
                if same and reading.steps.get(step, "global_batch") in {None, float(batch)}:
                    reading.state("batch.sequence_length", length, text, line)
                    reading.steps.add(step, {"tokens_per_second": rate})
                    break
