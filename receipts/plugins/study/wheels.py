"""Which wheels made an image worse: groups of wheels that move together, delta-debugged over overlays of the good side.

A step is the good side with some groups as the bad side has them. Its outcome is the exit code of a command: 0 good, 1
bad, 3 or 125 not enough to say, anything else a configuration that does not run. The walk is that of `bisection`; what
it knows is kept in a folder, so that a step may run elsewhere, and its outcome be told later.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.base import files
from receipts.base.errors import InputError, Problem, UsageError, near
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_json

if TYPE_CHECKING:
    from receipts.plugins.study.bisection import Explanation, Outcome

STATE: Final = "wheels.json"
LOCAL: Final = "venv"
_PIN: Final = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:==|===|=)\s*(?P<version>[^\s;#=]+)")
_OPEN: Final = (3, 125)  # of `receipts compare --require`, and of `git bisect run`


# Makes an environment whose packages go before those of the Python that runs this, be that an environment itself.
_OVERLAY: Final = """
import pathlib, site, sys, venv
import pip
venv.EnvBuilder(clear=True, symlinks=True).create(sys.argv[1])
own = next(pathlib.Path(sys.argv[1]).glob("lib*/python*/site-packages"))
below = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
own.joinpath("below.pth").write_text("".join(path + "\\n" for path in below))
"""


class WheelGroup(NamedTuple):
    """Wheels that move together: by name the version of the good side and of the bad; None if one has none."""

    name: str
    wheels: Mapping[str, tuple[str | None, str | None]]

    def __str__(self) -> str:
        changes = ", ".join(f"{name} {good or 'none'} → {bad or 'none'}" for name, (good, bad) in self.wheels.items())
        return changes if len(self.wheels) == 1 else f"{self.name} ({changes})"


@cache
def table() -> Mapping[str, Mapping[str, Any]]:
    """Groups, idle wheels and executors."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


def executors() -> tuple[str, ...]:
    """Names of the executors."""
    return (LOCAL, *table()["executors"])


def normal(name: str) -> str:
    """A distribution's name as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str, source: str) -> dict[str, str]:
    """Versions by name, of what `pip freeze` and `conda list --export` print. Raises InputError without one."""
    lines = (line.strip() for line in text.splitlines() if not line.lstrip().startswith("#"))
    pinned = {normal(match["name"]): match["version"] for line in lines if (match := _PIN.match(line))}
    if not pinned:
        raise InputError(source, [Problem("", "it pins no wheel", "write it with: pip freeze")])
    return pinned


def grouped(good: Mapping[str, str], bad: Mapping[str, str]) -> tuple[list[WheelGroup], list[str]]:
    """Groups that differ, the larger first, and the wheels that differ and that no step runs."""
    changed = {
        name: (good.get(name), bad.get(name)) for name in sorted({*good, *bad}) if good.get(name) != bad.get(name)
    }
    idle = [name for name in changed if _fits(name, table()["idle"]["names"])]
    members: dict[str, dict[str, tuple[str | None, str | None]]] = {}
    for name in changed:
        if name not in idle:
            group = next((key for key, patterns in table()["groups"].items() if _fits(name, patterns)), name)
            members.setdefault(group, {})[name] = changed[name]
    groups = [WheelGroup(name, wheels) for name, wheels in members.items()]
    return sorted(groups, key=lambda group: (-len(group.wheels), group.name)), idle


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def script(groups: Sequence[WheelGroup], number: int, command: Sequence[str], *, every: bool = False) -> str:
    """The lines of a shell that make a configuration of the good side and run the command in it.

    With ``every`` the wheels that do not move are installed too: an environment of its own has none of them.
    """
    wanted: list[str] = []
    gone: list[str] = []
    for at, group in enumerate(groups):
        for name, versions in group.wheels.items():
            moved = bool(number >> at & 1)
            if (version := versions[moved]) is None:
                gone += [name] if moved else []
            elif moved or every:
                wanted.append(f"{name}=={version}")
    lines = [f"python -m pip install -q --no-deps {shlex.join(wanted)} || exit 97"] if wanted else []
    lines += [f"python -m pip uninstall -q -y {shlex.join(gone)}"] if gone else []
    return "\n".join([*lines, f"exec {shlex.join(command)}"])


def launch_line(executor: str, image: str, name: str, text: str) -> str:
    """The command that an executor launches a script with."""
    line: str = table()["executors"][executor]
    values = {"image": image, "name": name, "script": text, "dir": os.getcwd()}
    return re.sub(r"\{(\w+)\}", lambda match: shlex.quote(values[match[1]]), line)


class WheelWalk:
    """The walk in its folder: both sides, the command's way to run, and the outcomes that are known."""

    def __init__(self, folder: Path, groups: Sequence[WheelGroup]) -> None:
        self.folder, self.groups = folder, list(groups)
        self.full = (1 << len(self.groups)) - 1
        self._sides = [[name, {wheel: list(pair) for wheel, pair in wheels.items()}] for name, wheels in groups]
        state: dict[str, Any] = {}
        try:
            state = parse_json(read_small(folder / STATE))
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise UsageError(f"{folder / STATE}: {error}; remove it to begin again") from None
        if state and state["groups"] != self._sides:
            raise UsageError(f"{folder}: it holds the walk between other wheels; name another --dir")
        self.outcomes: dict[int, Outcome] = {int(key): value for key, value in state.get("outcomes", {}).items()}

    def __repr__(self) -> str:
        return f"WheelWalk({str(self.folder)!r}, {len(self.groups)} groups, {len(self.outcomes)} outcomes)"

    def record(self, number: int, outcome: Outcome) -> None:
        """Keep an outcome; one that is unknown is asked again."""
        if outcome != "unknown":
            self.outcomes[number] = outcome
        state = {"groups": self._sides, "outcomes": {str(key): value for key, value in self.outcomes.items()}}
        files.write_folder(self.folder, {STATE: json.dumps(state, indent=1).encode()}, over=True)

    def explain(self, ask: Callable[[int], Outcome]) -> Explanation:
        """Walk as far as ``ask`` tells; it is asked once of each configuration, the two ends first."""
        # What `--help` of the command never needs: it loads what judges.
        from receipts.plugins.study.bisection import Explanation, walk

        def once(number: int) -> Outcome:
            if number not in self.outcomes:
                self.record(number, ask(number))
            return self.outcomes.get(number, "unknown")

        for end, expected in ((0, "good"), (self.full, "bad")):
            outcome = once(end)
            if outcome == "unknown":
                return Explanation((), (), end, ())
            if outcome != expected:
                side = "good" if end == 0 else "bad"
                raise UsageError(
                    f"the {side} wheels are {outcome}, by the command: there is nothing between to explain"
                )
        return walk(len(self.groups), once, self.outcomes.__contains__)

    def named(self, number: int) -> tuple[str, ...]:
        """The groups that moved."""
        return tuple(str(group) for at, group in enumerate(self.groups) if number >> at & 1)

    def run(self, number: int, command: Sequence[str], executor: str, image: str, python: str) -> Outcome:
        """Launch a configuration, and read its outcome from the exit code."""
        if executor == LOCAL:
            return outcome_of(self._in_venv(number, command, python))
        line = launch_line(executor, image, self.name(number), script(self.groups, number, command))
        return outcome_of(subprocess.run(["sh", "-c", line], check=False).returncode)

    def name(self, number: int) -> str:
        """What to call a configuration's job."""
        return f"wheels-{number:x}"

    def _in_venv(self, number: int, command: Sequence[str], python: str) -> int:
        """In an environment of its own over that of ``python``, which is removed again: wheels are large."""
        place = (self.folder / self.name(number)).absolute()
        try:
            built = subprocess.run([python, "-c", _OVERLAY, str(place)], check=False, capture_output=True, text=True)
            if built.returncode:
                why = built.stderr.strip().splitlines()[-1:] or [f"it ended with {built.returncode}"]
                raise UsageError(f"{python}: no environment can be made over it ({why[0]}); name another with --python")
            path = os.pathsep.join((str(place / "bin"), os.environ.get("PATH", "")))
            environment = {**os.environ, "PATH": path, "VIRTUAL_ENV": str(place)}
            text = script(self.groups, number, command, every=True)
            return subprocess.run(["sh", "-c", text], env=environment, check=False).returncode
        finally:
            shutil.rmtree(place, ignore_errors=True)


def outcome_of(code: int) -> Outcome:
    """The outcome that an exit code is."""
    return "good" if code == 0 else "bad" if code == 1 else "unknown" if code in _OPEN else "fails"


def checked_executor(name: str, image: str | None) -> str:
    """The executor of that name. Raises UsageError for none, and for one that needs an image."""
    if name not in executors():
        raise UsageError(f"--executor {name}: known: {', '.join(executors())}{near(name, executors())}")
    if name != LOCAL and not image:
        raise UsageError(f"--executor {name} needs --image, the image of the good side")
    return name


PYTHON: Final = sys.executable
OUTCOMES: Final = ("good", "bad", "fails")
