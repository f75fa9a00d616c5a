"""What this process was started with: its program, its words, what stands before them, and whether they say it all.

`sys.argv` counts: in a wrapper, a fork or under `runpy` it is the program's own, and `sys.orig_argv` the line of
whoever came first. Where both are of one program, words that the program took out of `sys.argv` are put back from
`sys.orig_argv`. A process whose words are also another launch's does not say what it was started with.
"""

from __future__ import annotations

import os
import sys

from receipts.emit.launch_line import LaunchLine, options, parse_words
from receipts.emit.probes import imported
from receipts.emit.python_source import as_declared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        return (
            options(as_declared(given, known)),
            {},
            False,
        )  # as nearly all are started, without the table of launchers
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
    number = _spawned()
    if number > world:
        return [f"child {number} of a process with these words"]
    own = [str(word) for word in sys.argv[1:]]
    unchanged = not own or own == [str(word) for word in getattr(sys, "orig_argv", ())][-len(own) :]
    if not number and world == 1 and unchanged and _forked():
        return ["a fork of a process with these words"]
    return []


def _spawned() -> int:
    """Which child of its parent this process is, counted by `multiprocessing`; 0 where it is none of its."""
    process = getattr(sys.modules.get("multiprocessing.process"), "_current_process", None)
    identity = getattr(process, "_identity", ())
    return int(identity[-1]) if identity else 0


def _forked() -> bool:
    """Whether the parent runs the same image: what the kernel told a program at its start is random, and inherited."""
    try:
        with open("/proc/self/auxv", "rb") as own, open(f"/proc/{os.getppid()}/auxv", "rb") as parent:
            return own.read(4096) == parent.read(4096)
    except OSError:
        return False


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
    if _within(bare[1], bare[0]):
        given = {key: value for key, value in given.items() if not key.startswith("#")}
    else:
        first = {key: value for key, value in first.items() if not key.startswith("#")}
    return {**first, **given}


def _within(few: Sequence[str], many: Sequence[str]) -> bool:
    """Whether words are some of others, in their order."""
    rest = iter(many)
    return all(word in rest for word in few)
