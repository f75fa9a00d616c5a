"""The launch that a file of commands starts: one typed line, or the line of a script with what it assigned before.

A shell is not run. A variable that the script assigns outright is put in its place; one that it takes from elsewhere
stays as it is written, so that nobody takes it for a value.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from receipts.emit.launch_line import LaunchLine, options, parse
from receipts.emit.secrets import redact
from receipts.ingest.evidence.reading import Place

MAX_TEXT: Final = 1 << 16
_MAX_LINE: Final = 20_000
_FEW: Final = 5  # commands of a file that is no script
_PASSES: Final = 5  # variables that stand in variables
_ARRAY: Final = re.compile(
    r"^[ \t]*(?:declare -a |local |export )?(\w+)\+?=\(([^()]*(?:\$\([^()]*\)[^()]*)*)\)", re.MULTILINE
)
_TEXT: Final = re.compile(
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


def of_command(text: str) -> Launch | None:
    """The launch of a short file of commands; None for a log, for prose, and where several programs are started."""
    rows = [row for row in text.replace("\\\n", " ").splitlines() if row.strip() and not row.lstrip().startswith("#")]
    if not 0 < len(rows) <= _FEW or not any(_starts(_BLANK.sub("_", row)) for row in rows):
        return None
    return _only(text)


def of_script(text: str) -> Launch | None:
    """The launch of a shell script; None where it starts no program, or several."""
    return _only(text) if len(text) <= MAX_TEXT else None


def of_words(program: str, words: list[str]) -> Launch:
    """The launch of a program by its name and the words that it was given, as trackers keep them."""
    return Launch(LaunchLine(program, options(words)), redact(" ".join([program, *words]))[:_MAX_LINE])


def _only(text: str) -> Launch | None:
    assigned = {match[1]: " ".join(_COMMENT.sub("", match[2]).split()) for match in _ARRAY.finditer(text)}
    for match in _TEXT.finditer(text):
        assigned[match[1]] = " ".join(match[2].strip("\"'").replace("\\\n", " ").split())
    for name, value in assigned.items():  # TP=${TP:-4}
        assigned[name] = re.sub(rf"\$\{{{name}:?-([^}}]*)\}}", r"\1", value)
    launches: dict[str | None, Launch] = {}
    for number, row in _rows(text):
        whole = _BLANK.sub(r"'\g<0>'", _replaced(row, assigned) if "$" in row else row)
        if _starts(whole):
            line = parse(whole)
            kept = launches.get(line.program)
            if kept is None or len(line.options) > len(kept.line.options):
                launches[line.program] = Launch(line, redact(whole.strip())[:_MAX_LINE], Place(number))
    several = list(launches.values())
    # A script prepares with others what one launcher starts, or one Python program.
    for better in (lambda launch: launch.line.launcher, lambda launch: not str(launch.line.program).endswith(".sh")):
        several = [launch for launch in several if better(launch)] or several
    return several[0] if len(several) == 1 else None


def _rows(text: str) -> list[tuple[int, str]]:
    """Lines joined where a backslash joins them, each with the number of its first."""
    rows: list[tuple[int, str]] = []
    held, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        held, start = (f"{held} {line}", start) if held else (line, number)
        if held.rstrip().endswith("\\"):
            held = held.rstrip()[:-1]
        else:
            rows.append((start, held))
            held = ""
    return [*rows, (start, held)] if held else rows


def _replaced(text: str, assigned: dict[str, str]) -> str:
    for _ in range(_PASSES):
        before, text = text, _VARIABLE.sub(lambda match: _value(match, assigned), text)[:_MAX_LINE]
        if text == before:
            break
    return text


def _value(match: re.Match[str], assigned: dict[str, str]) -> str:
    name = match[1] or match[3]
    if name in assigned:
        return assigned[name]
    return match[2] if match[2] is not None else match[0]


def _starts(row: str) -> bool:
    """Whether a row surely starts a program: a script, a module, or what a launcher is given."""
    if len(row) > _MAX_LINE or not _HINT.search(row) or row.lstrip().startswith(("#", "echo ", "pip ", "cd ")):
        return False
    line = parse(row)
    program = line.program or ""
    script = program.endswith((".py", ".sh")) or (program.startswith("-m ") and program != "-m pip")
    return script or bool(line.launcher and program)
