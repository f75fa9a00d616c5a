"""What a run was asked to be and what it found: variables, installed distributions, and the settings of a recipe.

Variables that a launch script exports, or a file of settings assigns, are flags. A shell is not run: a value that
depends on another variable is left out and named. Of values that name a place it is stated only that they were set, as
the recorder does; names and values that look like secrets are never read.

Installed distributions, as `pip freeze` and `pip list` print them, are the versions that a lineage is shown by: pip
`operations/freeze.py` (``name==version``, ``name @ url``, ``-e url#egg=name``) and `commands/list.py` (columns under
dashes). Other files hold such lines too (requirements, commands, logs): here nearly all lines are one.

A recipe has the settings of a launch in YAML or TOML, whatever the program. They say what was asked. They stand in
``inputs.resolved`` where no program printed its own settings, and become no leaf: the command line may override each of
them.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, ClassVar, Final

import yaml

from receipts.ingest import arguments, vocabulary
from receipts.ingest.literals import flattened
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

        def kept() -> Iterator[bytes]:
            for chunk in source.chunks():
                # A script is short, and a dump may be of any size.
                begun.extend([chunk] if sum(map(len, begun)) < _MAX_TEXT else [])
                yield chunk

        others = scan(kept())
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
            if name in _OWN or _SECRET.search(name) or _SECRET.search(value.upper()) or _ISSUED.search(value):
                continue
            reading.records += 1
            if name in NESTED:
                for word in value.split():
                    flag, sign, setting = word.lstrip("-").partition("=")
                    if re.fullmatch(r"\w{1,120}", flag) and "$" not in word:
                        setting = setting if sign else "true"
                        reading.state(f"flags.{name}.{flag}", _plain(setting), f"--{flag}={setting}", line)
            elif "$" in value or "`" in value:
                reading.remark("missing", f"{name} depends on another variable: state it by --set flags.{name}=…", line)
            elif value:
                reading.state(f"flags.{name}", _plain(value), f"{name}={_plain(value)}", line)
        return [reading, *others] if reading.records else others


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


def _plain(value: str) -> str | bool:
    return PLACED if "/" in value else _SWITCHES.get(value.lower(), value[:500])


MAX_DISTRIBUTIONS: Final = 5_000
_DISTRIBUTION: Final = r"[A-Za-z0-9](?:[\w.\-]{0,98}[A-Za-z0-9])?"
_FROZEN: Final = re.compile(rf"({_DISTRIBUTION})===?([\w.!+\-]{{1,100}})")
_FROM: Final = re.compile(rf"({_DISTRIBUTION}) @ (\S{{1,1000}})")
_EDITABLE: Final = re.compile(r"-e \S{1,1000}")
_WHEEL: Final = re.compile(r"/[\w.]{1,100}-([\w.!+]{1,100})-[\w.]{1,60}-[\w.]{1,60}-[\w.]{1,100}\.whl")
_COLUMNS: Final = re.compile(r"Package +Version(?: +Editable project location)?")
_LISTED: Final = re.compile(rf"({_DISTRIBUTION}) +([0-9][\w.!+\-]{{0,100}})(?: +/\S{{1,1000}})?")
# A handful of pins is what somebody asked for, and not what an environment holds.
_MIN_PACKAGES: Final = 5
_MOST: Final = 0.9


class PipFreezeReader(FileReader):
    """A file that holds the list of an environment's distributions, and nothing else."""

    source: ClassVar[str] = "pip-freeze"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        text = head.decode("utf-8", "replace").splitlines()
        lines = [line for _, line in _listed(enumerate(text if len(head) < 60_000 else text[:-1]))]
        if lines and _COLUMNS.fullmatch(lines[0]):
            return len(lines) > 2 and set(lines[1]) <= {"-", " "} and _LISTED.fullmatch(lines[2]) is not None
        known = sum(any(form.fullmatch(line) for form in (_FROZEN, _FROM, _EDITABLE)) for line in lines)
        return known >= _MIN_PACKAGES and known >= _MOST * len(lines) and any("==" in line for line in lines)

    def read(self, source: Source) -> list[Reading]:
        reading = Reading(self.source)
        strange = 0
        for number, line in _listed(source.lines()):
            match = _FROZEN.fullmatch(line) or _LISTED.fullmatch(line)
            name, version = (match[1], match[2]) if match else (None, None)
            if match is None and (built := _FROM.fullmatch(line)) is not None:
                wheel = _WHEEL.search(built[2])
                name, version = built[1], wheel[1] if wheel else None
            if name is None or version is None:
                strange += not _COLUMNS.fullmatch(line) and bool(set(line) - {"-", " "})
                continue
            if reading.records >= MAX_DISTRIBUTIONS:
                reading.remark(
                    "missing", f"more than {MAX_DISTRIBUTIONS:,} distributions; the rest was left out", number
                )
                break
            reading.records += 1
            reading.state(f"wheels.{name.lower()}", version, line, number)
        if strange:
            reading.remark("note", f"{strange} lines name no version (built from a checkout, or no distribution)")
        return [reading] if reading.records else []


def _listed(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines that may name a distribution, by their numbers."""
    for number, line in lines:
        if (text := line[:4096].strip()) and not line.startswith(("#", "WARNING: ")):
            yield number, text


_YAML_LINE: Final = re.compile(r"(\s*)(?:- )?([\w.\-/\"']+)\s*:(?:\s.*)?$|\s*- .+$|---$|\.\.\.$")
_TOML_LINE: Final = re.compile(r"(\s*)([\w.\-\"']+)\s*=\s*\S.*$|\s*\[{1,2}[\w.\-\"' ]+\]{1,2}$|\s*[\]\"'\w\[{].*,?$")
# A tracker's file holds what a run was told, with its own keys beside it; its reader knows them.
_TRACKER: Final = frozenset({"wandb_version", "_wandb"})
_MIN_NAMES: Final = 3  # names that some framework has: fewer may be chance
_OF_LINES: Final = 0.9
_MAX_HEAD: Final = 60_000
_MAX_RECIPE: Final = 256 * 1024


class RecipeFile(FileReader):
    """Reads a file of nested settings, of which several have a name that a training framework knows."""

    source: ClassVar[str] = "recipe"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether its lines are settings, none of the first level stands twice as a log's would, and some are known."""
        if len(head) > _MAX_HEAD:
            return False
        lines = [line for line in head.decode("utf-8", "replace").splitlines() if line.split("#")[0].strip()]
        for pattern in (_YAML_LINE, _TOML_LINE):
            matches = [match for line in lines if (match := pattern.fullmatch(line.split(" #")[0].rstrip()))]
            names = [match[2].strip("\"'") for match in matches if match[2] is not None]
            outer = [match[2] for match in matches if match[2] is not None and not match[1]]
            # Sections of TOML may hold one name each.
            apart = pattern is _TOML_LINE or len(outer) == len(set(outer))
            enough = len(matches) >= max(_MIN_NAMES, _OF_LINES * len(lines))
            known = {name.rpartition(".")[2] for name in names} & _known_names() if enough and apart else set()
            if _TRACKER.isdisjoint(names) and len(known) >= _MIN_NAMES:
                return True
        return False

    def read(self, source: Source) -> list[Reading]:
        """One reading of settings; a file that breaks off, or that is no such document, says so."""
        reading = Reading(self.source, records=1)
        text = source.document()
        if text is None or len(text) > _MAX_RECIPE:
            reading.remark("broken", f"larger than the {_MAX_RECIPE >> 10} KiB of a recipe; not read")
            return [reading]
        parse: tuple[Callable[[str], Any], ...] = (tomllib.loads, yaml.safe_load)
        for document in parse:
            try:
                settings = document(text.decode())
            except (ValueError, yaml.YAMLError, RecursionError) as error:
                problem = " ".join(str(error).split())
            else:
                if isinstance(settings, dict):
                    reading.resolve(flattened(settings))
                    return [reading]
        reading.remark("broken", f"no recipe that can be read: {problem:.200}")
        return [reading]


@cache
def _known_names() -> frozenset[str]:
    """The names that arguments have in some framework's table, without their sections."""
    names = {
        name
        for framework in vocabulary.tables()
        for entry in vocabulary.table(framework).get("arguments", {}).values()
        for name in entry["names"]
    }
    return frozenset(name.rpartition(".")[2] for name in names)


READERS = (PipFreezeReader, RecipeFile, ShellSettings)
