"""The arguments dump: one line an argument, dots up to a column, between two rules.

Source: `_print_args` in megatron/training/arguments.py. A name that reaches the column has no dots, a value may be
empty or hold blanks, and with a wrapper several ranks dump at once, each line behind its own prefix.
"""

from __future__ import annotations

import re
from typing import Final

MAX_ARGUMENTS: Final = 5_000
MAX_VALUE: Final = 4_000
BEGIN: Final = re.compile(r"-{4,} arguments -{4,}")
END: Final = "end of arguments"
_ENTRY: Final = re.compile(r"(?:^|[\s:\]>])([A-Za-z_][A-Za-z0-9_]{0,120}) (?:(\.{1,60})(?: (.*))?|( )(\S.*))$")
# GPT-NeoX says behind each value whether it is its own.
_SETTER: Final = re.compile(r"\.{3,60}(?:default|updated)$")
_OPENING: Final = {"[": "]", "(": ")", "{": "}"}


class Dump:
    """Collects one dump. ``values`` holds each argument's first value with its line; ranks repeat the same ones."""

    __slots__ = ("_last", "_lines", "open", "values")

    def __init__(self) -> None:
        self.values: dict[str, tuple[str, int]] = {}
        self.open = False
        self._last = ""
        self._lines = 0

    def begin(self) -> None:
        """A dump's head was read; a second one, of another rank or after a restart, adds nothing but new names."""
        self.open = True
        self._lines = 0

    def take(self, text: str, line: int) -> bool:
        """Take a line of the dump; False once it has ended."""
        self._lines += 1
        if END in text or self._lines > MAX_ARGUMENTS:
            self.open = False
            return False
        match = _ENTRY.search(text) if len(text) <= MAX_VALUE + 400 else None
        if match is not None:
            value = (match[3] if match[2] else match[5]) or ""
            self._keep(match[1], _SETTER.sub("", value.strip())[:MAX_VALUE], line)
        elif self._last and _unclosed(self.values[self._last][0]):
            value, at = self.values[self._last]
            self.values[self._last] = (f"{value} {text.strip()}"[:MAX_VALUE], at)
        return True

    def _keep(self, name: str, value: str, line: int) -> None:
        self._last = ""
        if name not in self.values and len(self.values) < MAX_ARGUMENTS:
            self.values[name] = (value, line)
            self._last = name


def _unclosed(value: str) -> bool:
    return value[:1] in _OPENING and value.count(value[0]) > value.count(_OPENING[value[0]])
