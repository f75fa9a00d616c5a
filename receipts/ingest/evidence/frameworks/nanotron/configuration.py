"""What nanotron prints before it trains: the start line, its configuration as dataclasses, versions.

The configuration is a `pprint` of nested dataclasses, one argument a line, each line behind the logger's prefix. The
ranks in that prefix (``DP=0|PP=0|TP=0``) are ranks and say nothing of degrees.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.arguments import Settings, Statements
from receipts.ingest.reading import Reading

_SETTINGS: Final = Settings("nanotron")
_STATEMENTS: Final = Statements("nanotron")
_BLOCKS: Final = ("ParallelismArgs(", "TokensArgs(", "OptimizerArgs(", "GeneralArgs(", "LlamaConfig(", "Qwen2Config(")
_ARGUMENT = re.compile(r"(?<![\w.])(\w{1,60})=([\w.+'\"-]{1,80})")
_PREFIX = re.compile(r"^.{0,120}?\[(?:INFO|WARNING|DEBUG)[^\]]{0,120}\]:\s?")
_SECTION = re.compile(r"^( {0,40})(?:parallelism|tokens|model):\s*$")
_SETTING = re.compile(r"^( {1,60})(\w{1,60}):\s*([\w.+-]{1,80})\s*$")
_CELL = re.compile(r"(\w{1,40}): (\d{1,18})(?= \||\s*$)")
_MAX_BLOCK: Final = 200


class NanotronConfig:
    """Takes the lines before the first iteration; ``inside`` while a dataclass is being printed."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.records = 0
        self.started = False
        self.first_step: int | None = None
        self.inside = 0
        self._depth = 0
        self._yaml = False
        self._margin = 0

    def line(self, text: str, line: int) -> bool:
        """Take one line; True while a dataclass goes on below."""
        text = _PREFIX.sub("", text)
        if self._yaml or _SECTION.match(text):
            return self._section(text, line)
        if self.inside or any(name in text for name in _BLOCKS):
            return self._block(text, line)
        if "[Start training]" in text:
            self._start(text, line)
        else:
            _STATEMENTS.take(self.reading, text, line)
        return False

    def leave(self) -> None:
        """End the dataclass that is being printed."""
        self.inside = self._depth = 0
        self._yaml = False

    def _section(self, text: str, line: int) -> bool:
        """A line of the configuration file: a section, or one of the settings that stand deeper below it."""
        match = _SETTING.match(text)
        if match is not None and len(match[1]) > self._margin:
            self._setting(match[2], match[3], match[0].strip(), line)
        if (section := _SECTION.match(text)) is not None:
            self._margin = len(section[1])
        self.inside += 1
        deeper = len(text) - len(text.lstrip(" ")) > self._margin
        self._yaml = self.inside < _MAX_BLOCK and (deeper or section is not None)
        if not self._yaml:
            self.leave()
        return self._yaml

    def _block(self, text: str, line: int) -> bool:
        """Arguments of one line; the block ends with its bracket, or after `_MAX_BLOCK` lines."""
        if "ParallelismArgs(" in text:
            self.records += 1
            self.started = True
        for name, word in _ARGUMENT.findall(text):
            self._setting(name, word, f"{name}={word}", line)
        self._depth += text.count("(") - text.count(")")
        self.inside += 1
        if self._depth <= 0 or self.inside > _MAX_BLOCK:
            self.leave()
        return bool(self.inside)

    def _start(self, text: str, line: int) -> None:
        self.records += 1
        self.started = True
        cells = {name: int(value) for name, value in _CELL.findall(text)}
        for name, value in cells.items():
            self._setting(name, value, f"{name}: {value}", line)
        if "start_iteration_step" in cells:
            self.first_step = cells["start_iteration_step"] + 1

    def _setting(self, name: str, value: str | int, text: str, line: int) -> None:
        if stated := _SETTINGS.read(name, value):
            self.reading.state(*stated, text, line)
