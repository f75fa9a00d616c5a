"""Variables that a launch script exports, or a file of settings assigns, as flags: what the run was asked to be.

A shell is not run: a value that depends on another variable is left out and named. Of values that name a place it is
stated only that they were set, as the recorder does; names and values that look like secrets are never read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from receipts.ingest import arguments
from receipts.ingest.reader import FileReader
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.ingest.source import Source

# Variables that hold flags of their own.
NESTED: Final = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
PLACED: Final = "set"
_SHEBANG: Final = re.compile(rb"#!\s*\S*/(?:env\s+)?(?:ba|z|da)?sh\b")
_ASSIGNMENT: Final = re.compile(r"\s*(?:export\s+|declare\s+-x\s+)?[A-Z][A-Z0-9_]{1,79}=(?!=)\S*")
_NAME: Final = re.compile(r"([A-Z][A-Z0-9_]{1,79})=(.*)", re.DOTALL)
_SECRET: Final = re.compile(r"TOKEN(?!S|IZER)|SECRET|PASSW|APIKEY|_KEY|^KEY|CREDENTIAL|AUTH|COOKIE|WEBHOOK|DSN|BEARER")
_ISSUED: Final = re.compile(r"\b(?:hf_|gh[opsu]_|sk-|nvapi-|xox[a-z]-|AKIA|eyJ)[\w-]{12,}")
# What a shell has for itself, and what only names the machine's folders.
_OWN: Final = frozenset({"PATH", "HOME", "USER", "PWD", "SHELL", "TERM", "LANG", "TMPDIR", "PS1", "IFS"})
_SWITCHES: Final = {"true": True, "false": False}
_SHARE: Final = 0.6
_MAX_SETTINGS: Final = 500
_JOINED: Final = 60  # lines of one command
_MAX_TEXT: Final = 1 << 20


class ShellSettings(FileReader):
    """Reads a shell script or a file of ``NAME=value`` lines; other readers read the same lines."""

    source: ClassVar[str] = "launch"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether a shell would read it: its first line names one, or most lines assign a variable."""
        lines = [
            line for line in head.decode("utf-8", "replace").split("\n") if line.strip() and line.strip()[0] != "#"
        ]
        assigned = sum(bool(_ASSIGNMENT.match(line)) for line in lines)
        return assigned > 0 if _SHEBANG.match(head) else assigned >= max(2, _SHARE * len(lines))

    def read(self, source: Source) -> list[Reading]:
        """The variables, the last value of each, and what other readers know of the lines."""
        begun: list[bytes] = []
        others = scan(_kept(source, begun))
        reading = Reading(self.source)
        variables: dict[str, tuple[str, int]] = {}
        text = b"".join(begun).decode("utf-8", "replace")
        reading.launch = arguments.launch_of_script(text)
        reading.records = int(reading.launch is not None)
        for line, command in _commands(text.split("\n")):
            for name, value in _assigned(command):
                if len(variables) < _MAX_SETTINGS:
                    variables[name] = value, line
        for name, (value, line) in variables.items():
            self._state(reading, name, value, line)
        return [reading, *others] if reading.records else others

    def _state(self, reading: Reading, name: str, value: str, line: int) -> None:
        if name in _OWN or _SECRET.search(name) or _SECRET.search(value.upper()) or _ISSUED.search(value):
            return
        reading.records += 1
        if name in NESTED:
            for flag, word in _flags(value):
                reading.state(f"flags.{name}.{flag}", _plain(word), f"--{flag}={word}", line)
        elif "$" in value or "`" in value:
            reading.remark("missing", f"{name} depends on another variable: state it by --set flags.{name}=…", line)
        elif value:
            reading.state(f"flags.{name}", _plain(value), f"{name}={_plain(value)}", line)


def _kept(source: Source, begun: list[bytes]) -> Iterator[bytes]:
    """The chunks of a file, the first of which are kept: a script is short, and a dump may be of any size."""
    size = 0
    for chunk in source.chunks():
        if size < _MAX_TEXT:
            begun.append(chunk)
            size += len(chunk)
        yield chunk


def _commands(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Commands with the line on which each begins: a backslash or an open quote joins it with the next line."""
    held, start = "", 0
    for number, line in enumerate(lines, 1):
        held, start = (f"{held}\n{line}", start) if held else (line, number)
        if held.rstrip().endswith("\\"):
            held = held.rstrip().removesuffix("\\")
            continue
        if _open(held) and number - start < _JOINED:
            continue
        yield start, held
        held = ""
    if held:
        yield start, held


def _open(text: str) -> bool:
    """Whether a quote is not closed."""
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return True
    return False


def _assigned(command: str) -> Iterator[tuple[str, str]]:
    """Names and values that a command exports, or sets for what it starts."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return
    for word in words:
        match = _NAME.fullmatch(word)
        if match is not None:
            yield match[1], match[2].strip()
        elif word not in ("export", "declare", "-x", "env", "+"):
            return


def _flags(text: str) -> Iterator[tuple[str, str]]:
    for word in text.split():
        name, sign, value = word.lstrip("-").partition("=")
        if re.fullmatch(r"\w{1,120}", name) and "$" not in word:
            yield name, value if sign else "true"


def _plain(value: str) -> str | bool:
    return PLACED if "/" in value else _SWITCHES.get(value.lower(), value[:500])


READERS = (ShellSettings,)
