"""The command line of a launch, its arguments by name, and the leaves that arguments and single lines state.

What each name states is a framework's table: `Leaves` reads all arguments together, `Settings` one after the other, and
`Statements` reads single lines of a program by the patterns in its table. `Launch` is the launch that a file of
commands starts: one typed line, or the line of a script with what it assigned before. A shell is not run. A variable
that the script assigns outright is put in its place; one that it takes from elsewhere stays as it is written, so that
nobody takes it for a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from receipts.emit.launch_line import LaunchLine, options, parse
from receipts.emit.secrets import redact
from receipts.ingest import vocabulary
from receipts.ingest.literals import integer, literal, number
from receipts.ingest.reading import Place, Reading
from receipts.receipt.names import dtype

_OFF: Final = frozenset({"None", "none", "null", "~", ""})
_TRUE: Final = frozenset({"True", "true", "yes"})
_FALSE: Final = frozenset({"False", "false", "no"})
# Degrees by the letters that summaries and names of configurations have for them.
DEGREES: Final = {
    "tp": "parallelism.tensor",
    "pp": "parallelism.pipeline",
    "cp": "parallelism.context",
    "dp": "parallelism.data",
    "ep": "parallelism.expert",
    "etp": "parallelism.expert_tensor",
    **dict.fromkeys(("vp", "vpp"), "parallelism.virtual_pipeline"),
}
_BETWEEN: Final = re.compile(r"['\",]")
_INTEGER: Final = re.compile(r"[-+]?\d{1,18}")


class Arguments:
    """A program's arguments as text, each with its line; ``values`` maps a name to both."""

    __slots__ = ("values",)

    def __init__(self, values: dict[str, tuple[str, int]]) -> None:
        self.values = values

    def has(self, name: str) -> bool:
        """Whether there is such an argument."""
        return name in self.values

    def name(self, *names: str) -> str | None:
        """The first of some names that is an argument with a value; None where none is."""
        return next((name for name in names if name in self.values and not self.off(name)), None)

    def text(self, name: str) -> str | None:
        """The text of an argument, quotes gone; None where it is absent."""
        value = self.values.get(name)
        return None if value is None else value[0].strip().strip("'\"")

    def words(self, name: str) -> list[str]:
        """The items of a printed list: ``['core_attn', 'mlp']`` has two."""
        return _BETWEEN.sub(" ", (self.text(name) or "").strip("[]()")).split()

    def off(self, name: str) -> bool:
        """Whether an argument is there and says *nothing*: None, null, or an empty text."""
        return self.text(name) in _OFF if name in self.values else False

    def integer(self, name: str) -> int | None:
        """A whole number, or None where the argument is absent or something else."""
        return integer(self.text(name))

    def count(self, *names: str) -> int | None:
        """The first of some arguments that is a whole number above zero; MaxText's -1 is *derive it*."""
        return next((value for name in names if (value := self.integer(name)) is not None and value >= 1), None)

    def amount(self, name: str) -> float | None:
        """A finite number that is not negative, or None."""
        value = self.real(name)
        return value if value is not None and value >= 0 else None

    def real(self, name: str) -> float | None:
        """A finite number, or None."""
        text = self.text(name)
        value = None if text is None else number(text)
        return value if value is not None and abs(value) < 1e300 else None

    def flag(self, name: str) -> bool | None:
        """A switch: True, False, 0 and 1 in YAML; None where it is absent or no switch."""
        text = self.text(name)
        if text in _TRUE or text == "1":
            return True
        return False if text in _FALSE or text == "0" else None

    def word(self, name: str) -> str | None:
        """A word; of a dictionary, which GPT-NeoX's optimizer is, its type."""
        text = self.text(name)
        settings = literal(text) if text is not None and text.startswith("{") else None
        return str(settings["type"]) if isinstance(settings, dict) and "type" in settings else text

    def dtype(self, name: str) -> str | None:
        """A torch type in short: ``torch.bfloat16`` is ``bf16``; None where it is absent or unknown."""
        text = self.text(name)
        # Transformer Engine keeps FP8 in bytes.
        return None if text is None else "fp8" if text.endswith("uint8") else dtype(text)

    def read(self, name: str, entry: Mapping[str, Any]) -> Any:
        """The value of an argument as an entry of the vocabulary has it; None where it has no such value."""
        kind = entry["kind"]
        if kind == "ordinal":
            whole = self.integer(name)
            return whole if whole is not None and whole >= 0 else None
        if name not in self.values or self.off(name):
            return None
        if kind == "choice":
            return entry["values"].get(self.text(name))
        return getattr(self, {"switch": "flag"}.get(kind, kind))(name)

    def scalar(self, name: str) -> bool | int | float | str | None:
        """A value for an open map of the receipt: switch, number or text; None where it is absent or off."""
        text = self.text(name)
        if text is None or text in _OFF:
            return None
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        if _INTEGER.fullmatch(text):
            return int(text)
        value = self.real(name)
        return text[:400] if value is None else value


class Leaves:
    """States leaves in a reading, each in the words ``argument = value`` and with the argument's line."""

    __slots__ = ("arguments", "reading", "record")

    def __init__(self, reading: Reading, arguments: Arguments, record: str = "") -> None:
        self.reading = reading
        self.record = record
        self.arguments = arguments

    def put(self, path: str, value: Any, name: str) -> None:
        """State a leaf that an argument gives; a value of None states nothing."""
        if value is None:
            return
        text, line = self.arguments.values.get(name, ("", 0))
        self.reading.state(path, value, f"{name} = {text}", line, self.record)

    def read(self, path: str, entry: Mapping[str, Any]) -> None:
        """State a leaf as the vocabulary has it: by the first of its names that has a value."""
        for name in entry["names"]:
            if (value := self.arguments.read(name, entry)) is not None:
                self.put(path, value, name)
                return

    def whole(self, path: str, *names: str, least: int = 1) -> int | None:
        """State a leaf from the first of some arguments that is a whole number of at least ``least``."""
        for name in names:
            value = self.arguments.integer(name)
            if value is not None and value >= least:
                self.put(path, value, name)
                return value
        return None


class Settings:
    """A framework's settings as a program prints them one by one, by their names in its table."""

    def __init__(self, framework: str) -> None:
        table = vocabulary.table(framework)
        counts = {
            name: (path, {"kind": "count"})
            for name, path in table.get("configuration", {}).items()
            if type(path) is str
        }
        entries = table.get("arguments", {}).items()
        self._leaves = counts | {name: (path, entry) for path, entry in entries for name in entry["names"]}

    def read(self, name: str, value: Any) -> tuple[str, Any] | None:
        """The leaf that a setting states, with its value; None where it states none."""
        path, entry = self._leaves.get(name, ("", {}))
        known = Arguments({name: (str(value), 0)}).read(name, entry) if entry else None
        return None if known is None else (path, known)


class Statements:
    """The statements of one framework's table: leaves, the patterns of lines that state them, and how to read these.

    The value is the entry's own, else the last group of the pattern that is on the line.
    """

    def __init__(self, framework: str) -> None:
        self._all = [
            (path, re.compile(entry["line"]), {"kind": "count"} | entry)
            for path, entries in vocabulary.table(framework)["statements"].items()
            for item in (entries if isinstance(entries, list) else [entries])
            for entry in ({"line": item} if isinstance(item, str) else item,)
        ]

    def take(self, reading: Reading, text: str, line: int) -> bool:
        """State what a line says; whether it says anything."""
        matches = [(path, match, entry) for path, pattern, entry in self._all if (match := pattern.search(text))]
        for path, match, entry in matches:
            value = entry.get("value")
            if value is None:
                value = Arguments({"": (match[match.lastindex or 0], 0)}).read("", entry)
            if value is not None:
                reading.state(path, value, match[0].strip(), line)
        return bool(matches)


MAX_COMMANDS: Final = 1 << 16
_MAX_LINE: Final = 20_000
_MAX_COMMANDS: Final = 5  # commands of a file that is no script
_PASSES: Final = 5  # variables that stand in variables
_ASSIGNED_ARRAY: Final = re.compile(
    r"^[ \t]*(?:declare -a |local |export )?(\w+)\+?=\(([^()]*(?:\$\([^()]*\)[^()]*)*)\)", re.MULTILINE
)
_ASSIGNED_TEXT: Final = re.compile(
    r"^[ \t]*(?:export |local |readonly )?([A-Za-z_]\w*)="
    r"(\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s'\"()|&;]*)[ \t]*(?:#[^\n]*|;)?$",
    re.MULTILINE | re.DOTALL,
)
# What a person writes for what others have to fill in; it is no redirection.
_BLANK: Final = re.compile(r"<(?=\S)[^<>\n']{1,80}(?<=\S)>")
_HINT: Final = re.compile(r"\.py\b|\.sh\b|\bpython|run\b|\blaunch\b|[ =]-m ")
_VARIABLE: Final = re.compile(r"\"?\$\{(\w+)(?:\[[@*]\])?(?::?-([^}]*))?\}\"?|\$(\w+)")
_COMMENT: Final = re.compile(r"(?:^|(?<=\s))#.*$", re.MULTILINE)


class Launch(NamedTuple):
    """A launch line as it is read, its own text, and where it stands."""

    line: LaunchLine
    text: str
    place: Place = Place()


def launch_of_command(text: str) -> Launch | None:
    """The launch of a short file of commands; None for a log, for prose, and where several programs are started."""
    rows = [row for row in text.replace("\\\n", " ").splitlines() if row.strip() and not row.lstrip().startswith("#")]
    if not 0 < len(rows) <= _MAX_COMMANDS or not any(_starts(_BLANK.sub("_", row)) for row in rows):
        return None
    return _only(text)


def launch_of_script(text: str) -> Launch | None:
    """The launch of a shell script; None where it starts no program, or several."""
    return _only(text) if len(text) <= MAX_COMMANDS else None


def launch_of_words(program: str, words: list[str]) -> Launch:
    """The launch of a program by its name and the words that it was given, as trackers keep them."""
    return Launch(LaunchLine(program, options(words)), redact(" ".join([program, *words]))[:_MAX_LINE])


def _only(text: str) -> Launch | None:
    assigned = {match[1]: " ".join(_COMMENT.sub("", match[2]).split()) for match in _ASSIGNED_ARRAY.finditer(text)}
    for match in _ASSIGNED_TEXT.finditer(text):
        assigned[match[1]] = " ".join(match[2].strip("\"'").replace("\\\n", " ").split())
    for name, value in assigned.items():  # TP=${TP:-4}
        assigned[name] = re.sub(rf"\$\{{{name}:?-([^}}]*)\}}", r"\1", value)

    def replaced(match: re.Match[str]) -> str:
        return assigned.get(match[1] or match[3], match[0] if match[2] is None else match[2])

    launches: dict[str | None, Launch] = {}
    for start, row in _rows(text):
        for _ in range(_PASSES if "$" in row else 0):
            before, row = row, _VARIABLE.sub(replaced, row)[:_MAX_LINE]
            if row == before:
                break
        whole = _BLANK.sub(r"'\g<0>'", row)
        if _starts(whole):
            line = parse(whole)
            kept = launches.get(line.program)
            if kept is None or len(line.options) > len(kept.line.options):
                launches[line.program] = Launch(line, redact(whole.strip())[:_MAX_LINE], Place(start))
    several = list(launches.values())
    # A script prepares with others what one launcher starts, or one Python program.
    for better in (lambda launch: launch.line.launcher, lambda launch: not str(launch.line.program).endswith(".sh")):
        several = [launch for launch in several if better(launch)] or several
    return several[0] if len(several) == 1 else None


def _rows(text: str) -> list[tuple[int, str]]:
    """Lines joined where a backslash joins them, each with the number of its first."""
    rows: list[tuple[int, str]] = []
    held, start = "", 0
    for place, line in enumerate(text.splitlines(), 1):
        held, start = (f"{held} {line}", start) if held else (line, place)
        if held.rstrip().endswith("\\"):
            held = held.rstrip()[:-1]
        else:
            rows.append((start, held))
            held = ""
    return [*rows, (start, held)] if held else rows


def _starts(row: str) -> bool:
    """Whether a row surely starts a program: a script, a module, or what a launcher is given."""
    if len(row) > _MAX_LINE or not _HINT.search(row) or row.lstrip().startswith(("#", "echo ", "pip ", "cd ")):
        return False
    line = parse(row)
    program = line.program or ""
    script = program.endswith((".py", ".sh")) or (program.startswith("-m ") and program != "-m pip")
    return script or bool(line.launcher and program)
