"""What this process was started with: its program, its words, what stands before them, and the files that they name.

`sys.argv` counts: in a wrapper, a fork or under `runpy` it is the program's own, and `sys.orig_argv` the line of
whoever came first. Where both are of one program, words that the program took out of `sys.argv` are put back from
`sys.orig_argv`. A process whose words are also another launch's does not say what it was started with.

A value that names a file is compared by what the file holds and not by where it lies: settings by key, data by digest,
folders by what they list.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time

from receipts.emit import configuration
from receipts.emit.launch_line import LaunchLine, options, parse_words
from receipts.emit.launch_values import THEN
from receipts.emit.probes import imported
from receipts.emit.python_source import as_declared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

# Programs that run what another process hands them, so that their words say nothing of it.
_WORKERS = ("ray", "submitit", "joblib", "loky", "pyspark", "distributed", "celery", "ipykernel", "ipykernel_launcher")
# Words of launches that this process, or the one that it was forked from, has recorded, with the ranks that did.
_RECORDED: dict[tuple[str, ...], set[int]] = {}


def notebook() -> str | None:
    """What to call a program that is no file: the notebook's name where its server says it; None for a file."""
    if imported.main_file():
        return None
    name = getattr(sys.modules.get("__main__"), "__vsc_ipynb_file__", None) or os.environ.get("JPY_SESSION_NAME")
    return os.path.basename(str(name)) if name else "notebook"


def checkout(path: str) -> str:
    """The folder that a file's name is relative to: its checkout, or where it is installed, or its package's."""
    folder = os.path.dirname(path)
    if path.startswith(os.path.realpath(os.path.join(sys.prefix, "Scripts" if os.name == "nt" else "bin")) + os.sep):
        return folder
    around = [folder]
    while os.path.dirname(around[-1]) != around[-1]:
        around.append(os.path.dirname(around[-1]))
    if imported.is_installed(path):
        return next((place for place in around if os.path.basename(place).endswith("-packages")), folder)
    top = next((place for place in around if os.path.exists(os.path.join(place, ".git"))), None)
    return top or next(place for place in around if not os.path.exists(os.path.join(place, "__init__.py")))


def within(root: str, path: str) -> str:
    """A path below a folder, as it lies there; elsewhere the path without detours."""
    whole = os.path.realpath(path)
    name = os.path.relpath(whole, root) if root and whole.startswith(root.rstrip(os.sep) + os.sep) else path
    return os.path.normpath(name).replace(os.sep, "/")


def words(main: str, known: Mapping[str, tuple[str, int | None]]) -> tuple[dict[str, str], dict[str, str], bool]:
    """The program's options, those of what stands before it, and whether the line starts several runs.

    ``known`` are the options that the program declares.
    """
    given = [str(word) for word in sys.argv[1:]]
    first = [str(word) for word in getattr(sys, "orig_argv", ())]
    if "--multiprocessing-fork" in first:
        return options(as_declared(given, known)), {}, False
    around = first[: len(first) - len(given)] if not given or first[-len(given) :] == given else first
    several = "-m" in given or "--multirun" in given
    if not several and len(around) == 2 and not around[1].startswith("-") and _runs(around[1], main):
        # As nearly all are started, without the table of launchers.
        return options(as_declared(given, known)), {}, False
    line = parse_words(first) if first else LaunchLine()
    own = parse_words(["python", "program.py", *given])
    if _runs(line.program, main):
        options_of = (options(as_declared(item.words, known), ("m",) if item.multirun else ()) for item in (line, own))
        return _together(*options_of), dict(line.launcher), line.multirun or own.multirun
    before = dict(line.launcher)
    wrapper = parse_words(["python", *around[1:]])
    # A wrapper that hands its own words on has said all of them in the program's.
    if wrapper.program:
        name = os.path.basename(wrapper.program.removeprefix("-m "))
        own_words = {os.path.basename(sys.argv[0]), os.path.basename(main)}
        taken = {key: value for key, value in wrapper.options.items() if os.path.basename(value) not in own_words}
        before |= {f"{name}.{key}": value for key, value in taken.items()}
    return options(as_declared(own.words, known), ("m",) if own.multirun else ()), before, own.multirun


def doubts(main: str, rank: int, world: int, several: bool) -> list[str]:
    """Why the words do not say all that this launch was started with; empty where they do."""
    reasons: list[str] = []
    if not main:
        reasons.append("no main program: a notebook, -c, or standard input")
    name = getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", "") or os.path.basename(sys.argv[0])
    # A project's own `distributed.py` is none of them.
    theirs = imported.is_installed(main) and name.partition(".")[0] in _WORKERS
    if theirs or f"{os.sep}ray{os.sep}_private{os.sep}" in main:
        reasons.append(f"{name} runs what another process hands it")
    if several:
        reasons.append("one line starts several runs (--multirun)")
    if os.environ.get("WANDB_SWEEP_ID") and len(sys.argv) == 1:
        reasons.append("a sweep's agent chose the options")
    ranks = _RECORDED.setdefault(tuple(map(str, sys.argv)), set())
    again = bool(ranks) and (world == 1 or rank in ranks)
    ranks.add(rank)
    return reasons + (["a second launch was recorded with these words"] if again else _handed(world))


def piped() -> bool:
    """Whether standard input is a file or a pipe: what it holds is not among the words."""
    import stat

    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode)


def _handed(world: int) -> list[str]:
    """Whether a parent may have handed this process options beside its words."""
    process = getattr(sys.modules.get("multiprocessing.process"), "_current_process", None)
    identity = getattr(process, "_identity", ())
    number = int(identity[-1]) if identity else 0  # which child of its parent, as multiprocessing counts them
    if number > world:
        return [f"child {number} of a process with these words"]
    own = [str(word) for word in sys.argv[1:]]
    unchanged = not own or own == [str(word) for word in getattr(sys, "orig_argv", ())][-len(own) :]
    if number or world != 1 or not unchanged:
        return []
    try:
        # What the kernel told a program at its start is random, and a fork inherits it.
        with open("/proc/self/auxv", "rb") as this, open(f"/proc/{os.getppid()}/auxv", "rb") as parent:
            forked = this.read(4096) == parent.read(4096)
    except OSError:
        return []
    return ["a fork of a process with these words"] if forked else []


def _runs(named: str | None, main: str) -> bool:
    """Whether a line's program is the main file: by its name, as the process may have changed its folder."""
    if not named or not main:
        return False
    if named.startswith("-m "):
        spec = getattr(sys.modules.get("__main__"), "__spec__", None)
        return getattr(spec, "name", None) in (named[3:], f"{named[3:]}.__main__")
    if os.path.realpath(named) == main or os.path.realpath(sys.argv[0]) == main == os.path.realpath(named):
        return True
    tail = os.path.normpath(named).lstrip("./").split("/")
    return main.split(os.sep)[-len(tail) :] == tail or os.path.isdir(named)


def _together(line: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    first, given = dict(line), dict(own)
    bare = [[value for key, value in source.items() if key.startswith("#")] for source in (first, given)]
    rest = iter(bare[0])
    if all(word in rest for word in bare[1]):  # some of the others, in their order
        given = {key: value for key, value in given.items() if not key.startswith("#")}
    else:
        first = {key: value for key, value in first.items() if not key.startswith("#")}
    return {**first, **given}


MAX_ROWS = 16
MAX_BYTES = 64 << 20  # bytes of a file that are digested whole
_AT_ONCE = 4 << 20  # bytes that the start of a run has time for
_SAMPLES = 16
_LISTED = 2000
_SECONDS = 0.5  # of listing one folder; a network disk may take long
_MAX_FILES = 50  # files of a folder of settings
_GLOB = re.compile(r"[*?\[]")


class NamedFiles:
    """What was found of each name. ``rows`` are rows of `inputs.files`, ``over`` says that there were too many.

    ``variables`` are those that a configuration names, ``composes`` says that one is composed of others. What the run
    itself writes to has a name and no digest.
    """

    def __init__(self, root: str) -> None:
        self.rows: list[dict[str, Any]] = []
        self.over = False
        self.variables: set[str] = set()
        self.composes = False
        self._absent: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._before: list[tuple[dict[str, Any], str, Any]] = []
        self._root = root
        self._seen: set[tuple[str, str]] = set()

    def take(
        self, option: str, text: str, *, only_config: bool = False, folders: bool = True, beside: str = ""
    ) -> None:
        """Look at one value, or each of several; ``beside`` is the folder of the file that names it."""
        for value in _values(text):
            if option:
                self._places[option] = os.path.abspath(value)
            path = next((item for item in _places(value, beside) if os.path.exists(item)), "")
            if not path and _GLOB.search(value) and "/" in value:
                self._listing(option, value)
            elif not path and option and "/" in value and "://" not in value:
                self._absent[option] = value
            elif path and os.path.isdir(path):
                if folders and not only_config and os.path.realpath(path) not in (self._root, os.getcwd()):
                    self._listing(option, path)
            elif path and os.path.isfile(path) and (not only_config or configuration.is_config(path)):
                self._file(option, path)

    def relative(self, text: str) -> str:
        """A value as it is to be kept: of paths that exist, or may come to, as they lie in the checkout."""
        values = text.split(THEN)
        for at, value in enumerate(values):
            known = "/" in value and "://" not in value and len(value) < 1000 and "\0" not in value
            if known and (value.startswith(self._root + "/") or os.path.exists(value)):
                values[at] = within(self._root, value)
        return THEN.join(values)

    def at_end(self, out: str) -> Iterator[dict[str, Any]]:
        """Rows that the end knows better: places that the run made, data left for now, and what the run wrote to.

        ``out`` is the receipt, which is made later. A bare word is never a place by itself, whatever folder has its
        name: `flash` in a folder `flash` chooses what runs.
        """
        absent = self._absent.items()
        outputs = {
            option: value
            for option, value in absent
            if os.path.exists(value) or out.startswith(os.path.abspath(value) + os.sep)
        }
        outputs |= {option: place for option, place in self._places.items() if place == out}
        for option, value in outputs.items():
            yield {"option": option, "name": within(self._root, value), "kind": "output"}
        for row, path, before in self._before:
            filled = before == "" and _state(row, path) != before
            if row["kind"] == "folder" and "/" in path and (filled or os.path.dirname(out) == os.path.abspath(path)):
                yield {"option": row["option"], "name": row["name"], "kind": "output"}
            elif _state(row, path) != before:
                yield {name: value for name, value in row.items() if name != "sha256"}
            elif "sha256" not in row and before is not None:
                yield row | {"sha256": _sampled(path, row["bytes"])}

    def _file(self, option: str, path: str) -> None:
        name = within(self._root, path)
        if (option, name) in self._seen:
            return
        self._seen.add((option, name))
        if len(self.rows) >= MAX_ROWS:
            self.over = True
            return
        try:
            status = os.stat(path)
            row: dict[str, Any] = {"option": option or None, "name": name, "kind": "data", "bytes": status.st_size}
            self.rows.append(row)
            if not configuration.is_config(path):
                self._before.append((row, path, (status.st_size, status.st_mtime_ns)))
            if status.st_size > _AT_ONCE:
                return
            with open(path, "rb") as stream:
                raw = stream.read()
        except OSError:
            return
        row["sha256"] = hashlib.sha256(raw).hexdigest()
        if configuration.is_config(path):
            row["kind"] = "config"
            self._settings(row, option, path, raw)

    def _settings(self, row: dict[str, Any], option: str, path: str, raw: bytes) -> None:
        flat = configuration.file_settings(path, raw)
        if flat is None:
            return
        row["flat"] = flat
        self.composes |= any(key == "defaults" or key.startswith("defaults.") for key in flat)
        for key, text in flat.items():
            self.variables.update(re.findall(r"\$\{(?:oc\.env:|env:)?([A-Z_][A-Z0-9_]*)\b", text))
            # A file that this one includes, or that it names a tokenizer or a preset by.
            self.take(f"{option}.{key}" if option else key, text, only_config=True, beside=os.path.dirname(path))
        for key in flat:
            self._absent.pop(f"{option}.{key}" if option else key, None)

    def _listing(self, option: str, name: str) -> None:
        row: dict[str, Any] = {"option": option or None, "name": within(self._root, name), "kind": "folder"}
        listed = _state(row, name)
        if listed is not None:
            row |= {"sha256": hashlib.sha256(listed.encode("utf-8", "surrogatepass")).hexdigest()}
        self._before.append((row, name, listed))
        if len(self.rows) < MAX_ROWS:
            self.rows.append(row)
        else:
            self.over = True


def _state(row: Mapping[str, Any], path: str) -> Any:
    """What shows that a file or a folder was written to: size and time, or names and sizes."""
    if row["kind"] == "folder":
        files = _inside(path) if os.path.isdir(path) else _matches(path)
        if files is None:
            return None
        return "".join(f"{name}\0{size}\0{_settings(path, name, len(files))}\n" for name, size in sorted(files))
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _values(text: str) -> Iterator[str]:
    """The values of an option that may be a path: one, several that were repeated, or the items of a list."""
    for value in text.split(THEN):
        items = value[1:-1].split(", ") if value.startswith("[") and value.endswith("]") else [value]
        yield from (item.strip("'\"") for item in items[:100] if 0 < len(item) < 1000 and "\0" not in item)


def _places(value: str, beside: str) -> Iterator[str]:
    """Where a path may lie: as given, beside the file that names it, without `:argument`, after `@`."""
    whole = os.path.expanduser(value)
    yield whole
    if beside:
        yield os.path.join(beside, whole)
    if ".py:" in whole:
        yield whole.partition(":")[0]
    if whole.startswith("@"):
        yield whole[1:]


def _settings(folder: str, name: str, listed: int) -> str:
    """Of a configuration in a small folder its digest: an edit need not change its size."""
    path = os.path.join(folder, name)
    if listed > _MAX_FILES or not configuration.is_config(name):
        return ""
    try:
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read(configuration.MAX_FILE_BYTES)).hexdigest()
    except OSError:
        return ""


def _inside(folder: str) -> list[tuple[str, int]] | None:
    """Names below a folder with their sizes; None where there are too many, or it cannot be read."""
    files: list[tuple[str, int]] = []
    waiting = [""]
    until = time.perf_counter() + _SECONDS
    while waiting:
        if time.perf_counter() > until:
            return None
        below = waiting.pop()
        try:
            with os.scandir(os.path.join(folder, below)) as entries:
                for entry in entries:
                    name = os.path.join(below, entry.name)
                    if entry.name.startswith(".") or entry.name == "__pycache__":
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(name)
                    else:
                        files.append((name, entry.stat().st_size))
                    if len(files) + len(waiting) > _LISTED:
                        return None
        except OSError:
            return None
    return files


def _matches(pattern: str) -> list[tuple[str, int]] | None:
    import glob
    from itertools import islice

    paths = list(islice(glob.iglob(pattern), _LISTED + 1))
    try:
        files = [(os.path.basename(path), os.path.getsize(path)) for path in paths]
    except OSError:
        return None
    return files if 0 < len(files) <= _LISTED else None


def _sampled(path: str, size: int) -> str:
    """The digest of a file; of a large one that of its size and of samples over its whole length."""
    whole = hashlib.sha256()
    with open(path, "rb") as stream:
        if size <= MAX_BYTES:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        whole.update(str(size).encode())
        for number in range(_SAMPLES):
            stream.seek((size - (1 << 20)) * number // (_SAMPLES - 1))
            whole.update(stream.read(1 << 20))
    return whole.hexdigest()
