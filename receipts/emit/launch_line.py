"""How a launch line is read: variables, launchers, program and options, and one normal form for each value.

Standard library alone: the recorder reads its own process with it, `ingest` launch scripts, and the judge `run.command`
of receipts without inputs. What launchers mean by their options is data (`launchers.toml`), since ``-o``, ``-t`` and
``-n`` mean what their program says.

    line     = { NAME=value } , { launcher } , program , { arg }
    launcher = word of the table , [ subcommand ] , { its options } , { NAME=value } , [ "--" ]
    program  = file.py | "-m" module | a word that no table knows
    arg      = "--" key "=" value | "--" "no-" key | "--" key { value } | [ "+" | "++" | "~" ] key "=" value | word
"""

from __future__ import annotations

import os.path
import re
import shlex
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

from receipts.emit.launch_values import THEN, flat, is_number, key_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from typing import Any, Literal

    LauncherRole = Literal["topology", "setting", "rendezvous"]

DELETED = "deleted"  # what Hydra's ~key leaves
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*w?$")
_WORD = re.compile(
    r"(?P<word>(?:[^\s'\"\\|&;<>`$]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$\([^()]*\)|`[^`]*`|\$|['\"])+)"
    r"|(?P<operator>[|&;<>]+|\n)",
    re.DOTALL,
)
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_PAIR = re.compile(r"(?P<sign>\+\+|\+|~)?(?P<key>[A-Za-z_][\w./@\[\]:-]*)=(?P<value>.*)", re.DOTALL)
_MAX_WORDS = 20_000  # words of a line that are read
_IDLE = ("u", "B", "s", "S", "E", "I", "q", "P", "v", "i", "d", "b", "x")  # Python's own, which change no computation


@dataclass(frozen=True)
class LaunchLine:
    """What one launch line says. ``program`` is None where it names none: a notebook, ``-c``, an empty line.

    ``launcher`` are the launchers' options as ``torchrun.nproc_per_node``; ``multirun`` says that one line starts
    several runs (Hydra's ``-m`` with a comma sweep). ``words`` are the program's. Values are texts as they were typed,
    without quotes.
    """

    program: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    launcher: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    multirun: bool = False
    words: tuple[str, ...] = ()


def parse(line: str) -> LaunchLine:
    """The launch that a line of a shell starts: of several commands the first that runs a program."""
    return _command(_chosen(line))[0]


def parse_words(words: Sequence[str]) -> LaunchLine:
    """The same of words that a shell has split, as `sys.orig_argv` has them."""
    return _command(list(words[:_MAX_WORDS]))[0]


def options(words: Sequence[str], switches: Collection[str] = ()) -> dict[str, str]:
    """A program's arguments as a flat map: key to text. ``switches`` are keys that are known to take no value."""
    given: dict[str, list[str]] = {}
    place = bare = 0
    words = words[:_MAX_WORDS]
    while place < len(words):
        word = words[place]
        place += 1
        pair = _PAIR.fullmatch(word)
        if word == "--":
            continue
        if _is_option(word):
            name, sign, value = word.lstrip("-").partition("=")
            if not sign and name.startswith("no-"):
                _add(given, key_of(name[3:]), "false")
            elif sign:
                _add(given, key_of(name), value)
            else:
                taken = 0 if key_of(name) in (*switches, "multirun") else _taken(words, place)
                values = words[place : place + taken]
                if taken > 1 and not all(map(_PAIR.fullmatch, values)):
                    values = [text_of(values)]
                for value in values or ["true"]:
                    _add(given, key_of(name), value)
                place += taken
        elif pair is not None:
            _add(given, key_of(pair["key"]), pair["value"])
        elif word.startswith("~"):
            _add(given, key_of(word[1:]), DELETED)
        else:
            _add(given, f"#{bare}", word)
            bare += 1
    return {key: THEN.join(values) for key, values in given.items()}


def launcher_role(key: str) -> LauncherRole:
    """What an option of a launcher is: how many processes, a setting of the run, or how processes find each other."""
    name, _, option = key.partition(".")
    entry = _table().get(name)
    if entry is None:  # a program that starts another one, and decides what it pleases
        return "setting"
    if option in entry.get("topology", ()):
        return "topology"
    return "setting" if option in entry.get("settings", ()) else "rendezvous"


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, Any]]:
    import tomllib
    from pathlib import Path

    entries: dict[str, Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("launchers.toml").read_text("utf-8"))
    return entries


@lru_cache(maxsize=1)
def _names() -> Mapping[str, str]:
    """Launchers by every word that starts them."""
    return {word: name for name, entry in _table().items() for word in (name, *entry.get("also", ()))}


def _chosen(line: str) -> list[str]:
    """The words of the first command that surely runs a program, else of the first; what was exported goes before."""
    commands: list[list[str]] = [[]]
    redirected = False
    line = line.replace("\\\n", " ")
    for match in _WORD.finditer(line):
        operator = match["operator"]
        if operator is None:
            if redirected:
                redirected = False
            elif match["word"].startswith("#"):
                break
            elif not (match["word"].isdigit() and line[match.end() : match.end() + 1] in ("<", ">")):
                commands[-1].append(_unquoted(match["word"]))
        elif "<" in operator or ">" in operator:
            redirected = True
        else:
            commands.append([])
    commands = [words[:_MAX_WORDS] for words in commands if words]
    chosen = next((words for words in commands if _command(words)[1]), commands[0] if commands else [])
    exported = [words[1:] for words in commands if words[0] == "export" and words is not chosen]
    return [f"{name}={value}" for words in exported for name, value in _assigned(words).items()] + chosen


def _unquoted(word: str) -> str:
    try:
        return "".join(shlex.split(word, comments=False)) if word not in ("''", '""') else ""
    except ValueError:  # a quote without its other half, as in a line that was cut
        return word


def _command(words: list[str]) -> tuple[LaunchLine, bool]:
    """One command, and whether it surely runs a program: Python does, or a launcher."""
    environment: dict[str, str] = {}
    launcher: dict[str, str] = {}
    sure = False
    while words:
        assigned = _assigned(words)
        environment |= assigned
        words = words[len(assigned) :]
        if not words:
            break
        head = os.path.basename(words[0])
        if _PYTHON.match(head):
            words, module = _after_python(words[1:], launcher)
            if module not in _names():
                program = f"-m {module}" if module else words.pop(0) if words and not words[0].startswith("-") else None
                return _line(program, words, launcher, environment), True
            head, words = module or "", ["", *words]
        elif head in ("bash", "sh", "zsh"):
            inner = _in_shell(words[1:])
            if inner is None:
                own = next((at for at, word in enumerate(words) if at and not word.startswith("-")), len(words))
                return _line(next(iter(words[own:]), None), words[own + 1 :], launcher, environment), sure
            words, sure = inner, True
            continue
        subcommands = _table()[_names()[head]].get("subcommands", ()) if head in _names() else ()
        if head not in _names() or (subcommands and not any(word in subcommands for word in words[1:5])):
            break
        sure = True
        words, program = _after_launcher(_names()[head], words[1:], launcher, environment)
        if program is not None:
            return _line(program, words, launcher, environment), True
    program = words[0] if words else None
    return _line(program, words[1:], launcher, environment), sure or bool(program and program.endswith(".py"))


def _line(
    program: str | None, words: Sequence[str], launcher: dict[str, str], environment: dict[str, str]
) -> LaunchLine:
    if program is not None and not program.startswith("-m "):
        program = os.path.normpath(program) if program else None
    several = any(word in ("-m", "--multirun") for word in words) and any(
        (pair := _PAIR.fullmatch(word)) is not None and "," in pair["value"] for word in words
    )
    given = options(words, ("m",) if several else ())
    return LaunchLine(program, given, launcher, environment, several, tuple(words))


def _assigned(words: Iterable[str]) -> dict[str, str]:
    variables: dict[str, str] = {}
    for word in words:
        if not _ASSIGNED.match(word):
            break
        name, _, value = word.partition("=")
        variables[name] = value
    return variables


def _after_python(words: list[str], launcher: dict[str, str]) -> tuple[list[str], str | None]:
    """What follows Python's own options, and the module that ``-m`` names; ``-O`` is kept, as asserts go with it."""
    while words and words[0].startswith("-"):
        word = words[0]
        if word.startswith("-m"):
            return (words[1:], word[2:]) if len(word) > 2 else (words[2:], words[1] if len(words) > 1 else None)
        if word in ("-c", "-"):
            return [], None
        if word.startswith("-O"):
            launcher["python.O"] = str(len(word) - 1)
        elif word.strip("-")[:1] not in _IDLE and word[:2] not in ("-X", "-W"):
            launcher[f"python.{key_of(word)}"] = "true"
        words = words[2:] if word in ("-X", "-W") else words[1:]
    return words, None


def _in_shell(words: list[str]) -> list[str] | None:
    """What a shell is told to run: the text behind ``-c``, or the command that its script is handed."""
    for place, word in enumerate(words):
        if word.startswith("-") and not word.startswith("--") and word.endswith("c"):
            return _chosen(words[place + 1]) if place + 1 < len(words) else []
        head = os.path.basename(word)
        if place and (_PYTHON.match(head) or head in _names()):
            while _ASSIGNED.match(words[place - 1]):
                place -= 1
            return words[place:]
    return None


def _after_launcher(
    name: str, words: list[str], launcher: dict[str, str], environment: dict[str, str]
) -> tuple[list[str], str | None]:
    """What follows a launcher's own words, and the program where the launcher names it itself."""
    entry = _table()[name]
    launcher.setdefault(name, "true")
    left = [word for word in words if word in entry.get("subcommands", ())][:1]  # `conda run`, `xpk workload create`
    if left:
        words = words[words.index(left[0]) + 1 :]
    skipped = int(entry.get("words", 0))  # an image, a mask of processors
    while words:
        word = words[0]
        if word == "--":
            words = words[1:]
            continue
        if not _is_option(word):
            if _ASSIGNED.match(word) or not skipped:
                break
            launcher[f"{name}.#{skipped}"], words, skipped = word, words[1:], skipped - 1
            continue
        option, sign, value = word.lstrip("-").partition("=")
        option, words = entry.get("short", {}).get(option, key_of(option)), words[1:]
        if option == "module" and entry.get("python"):
            module = value if sign else words.pop(0) if words else ""
            return words, f"-m {module}"
        following = words[0] if words else "--"
        ends = _is_option(following) or following.endswith((".py", ".sh")) or _is_command(following)
        if not sign and option not in entry.get("switches", ()) and not ends:
            value, words = following, words[1:]
        if option in entry.get("line", ()):
            return _chosen(value), None
        if option in entry.get("variables", ()):
            environment |= _assigned([value])
        else:
            launcher[f"{name}.{option}"] = value or "true"
    if entry.get("python") and words and not _ASSIGNED.match(words[0]) and not _is_command(words[0]):
        return words[1:], words[0]
    return words, None


def _is_command(word: str) -> bool:
    head = os.path.basename(word)
    return bool(_PYTHON.match(head)) or head in _names()


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-") and not is_number(word)


def _taken(words: Sequence[str], place: int) -> int:
    """How many of the next words are an option's values."""
    taken = 0
    pairs = place < len(words) and _PAIR.fullmatch(words[place]) is not None
    while place + taken < len(words):
        word = words[place + taken]
        if _is_option(word) or word == "--" or (taken and (_PAIR.fullmatch(word) is not None) != pairs):
            break
        taken += 1
    return taken


def _add(given: dict[str, list[str]], key: str, value: str) -> None:
    """One value of an option; what it holds by names of its own, an object or ``a=1,b=2``, is one input each."""
    tree: Any = None
    if value.startswith("{"):
        import json

        with suppress(ValueError, RecursionError):
            tree = json.loads(value)
    parts = [_PAIR.fullmatch(part) for part in value.split(",")] if tree is None and not key.startswith("#") else [None]
    if tree:
        inner = flat(tree, key)
    elif value and all(parts) and not value.startswith(("+", "~")):
        inner = {f"{key}.{key_of(part['key'])}": part["value"] for part in parts if part is not None}
    else:
        inner = {key: value}
    for name, text in inner.items():
        given.setdefault(name, []).append(text)
