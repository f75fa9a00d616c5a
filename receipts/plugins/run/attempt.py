"""An attempt: the folder of a run that holds its attempts, and the document of each made whole.

``state.json`` is written beside and renamed before each attempt begins and after it has ended, so that a runner that
was killed can be taken up again: what it says happened.

A document has what the run states, then what its plan says, then what the runner saw. The runner adds the wheels of the
interpreter that the command names: a job that failed early could not say them.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePath
from typing import Any, ClassVar, Final

from pydantic import ConfigDict, TypeAdapter

from receipts.axes.effective import OPEN_MAPS
from receipts.base import files
from receipts.base.errors import UsageError
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_json
from receipts.emit.secrets import command_line
from receipts.questions.plan import before_run
from receipts.receipt import Parsed

STATE: Final = "state.json"
VERSION: Final = 1
_ALONE: Final = "runner.lock"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One launch of a plan. ``rung`` and ``reason`` say how it came after the one before; None for the first.

    ``process`` is the child's number with its start by the kernel's clock, so that another one of that number is not
    taken for it. ``receipt`` is the id of what was recorded; None until then. Times are ISO 8601 in UTC.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    number: int
    launch: str
    rung: str | None = None
    reason: str | None = None
    started: str | None = None
    finished: str | None = None
    process: tuple[int, str] | None = None
    exit_code: int | None = None
    ended_by: str | None = None
    receipt: str | None = None
    outcome: str | None = None
    stored: bool = False


class AttemptFolder:
    """Where one walk down a ladder keeps its plans, logs, receipts and state."""

    def __init__(self, path: Path) -> None:
        try:
            self.path = path.resolve()
        except (ValueError, OSError):
            raise UsageError(f"--dir {str(path)!r}: no folder can have such a name") from None
        self.attempts: list[Attempt] = []
        self.command: tuple[str, ...] = ()
        self.over = False

    def __repr__(self) -> str:
        return f"AttemptFolder({str(self.path)!r}, {len(self.attempts)} attempts)"

    def of(self, attempt: Attempt) -> Path:
        """The folder of one attempt."""
        return self.path / f"attempt-{attempt.number}"

    def plan(self, attempt: Attempt) -> Path:
        """The plan that it was launched with."""
        return self.of(attempt) / "plan.json"

    def log(self, attempt: Attempt) -> Path:
        """Everything that its process printed."""
        return self.of(attempt) / "log.txt"

    def receipt(self, attempt: Attempt) -> Path:
        """The receipt that was made of it."""
        return self.of(attempt) / "receipt.json"

    def begin(self, command: tuple[str, ...]) -> None:
        """Make it. Raises UsageError where something is there already."""
        try:
            self.path.mkdir(parents=True)
        except FileExistsError:
            raise UsageError(
                f"{self.path} exists and is kept; name another with --dir, or go on with --resume"
            ) from None
        except OSError as error:
            raise UsageError(f"{self.path} cannot be made: {error.strerror}; name another with --dir") from None
        self.command = command
        self.save()

    def open(self) -> None:
        """Read what is there. Raises UsageError where it is no runner's folder."""
        try:
            state: dict[str, Any] = parse_json(read_small(self.path / STATE))
            self.command = tuple(state["command"])
            self.attempts = TypeAdapter(list[Attempt]).validate_python(state["attempts"])
            self.over = bool(state["over"])
        except OSError as error:
            raise UsageError(
                f"{self.path}: no run can be gone on with here: {STATE}: {error.strerror}; name the folder that "
                "receipts run made"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{self.path}: no run can be gone on with here: {STATE} is damaged ({error}); launch the plan again"
            ) from None

    def change(self, attempt: Attempt, **changes: Any) -> Attempt:
        """Write down what became of an attempt."""
        return self.close(replace(attempt, **changes), None, None)

    def close(self, attempt: Attempt | None, following: Attempt | None, plan: bytes | None) -> Attempt:
        """Write an attempt's present state, the attempt that follows it, and its plan, in one atomic write."""
        if attempt is not None:
            self.attempts[attempt.number - 1] = attempt
        if following is not None and plan is not None:
            self.of(following).mkdir(exist_ok=True)
            files.write(self.plan(following), plan, over=True)
            self.attempts.append(following)
        self.save()
        return attempt or self.attempts[-1]

    def save(self) -> None:
        """Write the state whole or not at all."""
        content = {
            "version": VERSION,
            "command": self.command,
            "over": self.over,
            "attempts": [asdict(item) for item in self.attempts],
        }
        files.write(self.path / STATE, json.dumps(content, indent=2, ensure_ascii=False) + "\n", over=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep a second runner out. Raises UsageError where one is at work here."""
        import fcntl  # a module of POSIX, as process groups are

        with (self.path / _ALONE).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise UsageError(f"{self.path}: another runner is at work here; wait for it, or end it") from None
            yield


SECONDS: Final = 10.0  # that the interpreter may take to answer
_PYTHON: Final = re.compile(r"python(?:\d+(?:\.\d+)?)?(?:\.exe)?")
_ASK: Final = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions() if d.metadata['Name']}))"
)


def wheels_of(words: tuple[str, ...]) -> dict[str, Any]:
    """Distributions by name and version, as the interpreter in the first word lists them.

    Empty where the first word is no Python, or it does not answer in time: what is not known is not stated.
    """
    if not words or _PYTHON.fullmatch(PurePath(words[0]).name) is None or shutil.which(words[0]) is None:
        return {}
    try:
        done = subprocess.run([words[0], "-c", _ASK], capture_output=True, text=True, timeout=SECONDS, check=True)
        answer = parse_json(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return {"complete": True, **{name: {"version": str(version)} for name, version in sorted(answer.items())}}


Tree = dict[str, Any]
_OF_THE_RUN: Final = ("lane", "kind", "context", "label", "tags")


def complete(document: Tree, plan: Parsed, attempt: Attempt, words: tuple[str, ...], host: str) -> Tree:
    """The document of one attempt. The run's own statements win; what contradicts the plan is noted.

    ``document`` is a recorder's receipt or what its log gave. The plan adds what neither says, and a note names it.
    """
    tree = copy.deepcopy(document)
    intended = before_run(plan)
    added: list[str] = []
    contradicted: list[str] = []
    for section, content in intended.items():
        if section in ("run", "schema_version"):
            continue
        whole = section in OPEN_MAPS and tree.get(section, {}).get("complete") is True
        _fill(tree.setdefault(section, {}), content, f"{section}.", whole, added, contradicted)
    run = tree.setdefault("run", {})
    for name in _OF_THE_RUN:
        value = getattr(plan.receipt.run, name)
        if value is not None and name not in run:
            run[name] = list(value) if isinstance(value, tuple) else value
    run["lane"] = plan.receipt.run.lane
    run["launch"] = attempt.launch
    run.setdefault("kind", "training")
    run.setdefault("host", host)
    run.setdefault("command", command_line(words))
    run["provenance"] = "measured"
    run.setdefault("started", attempt.started)
    if attempt.finished is not None:
        run.setdefault("finished", attempt.finished)
    if attempt.exit_code is not None:
        run["exit_code"] = attempt.exit_code
    _state_end(tree, attempt)
    if run.get("outcome") == "oom" and not tree.get("wheels"):
        tree["wheels"] = wheels_of(words)
    notes = tree.setdefault("notes", {})
    notes["runner.attempt"] = attempt.number
    if attempt.rung is not None:
        notes["runner.rung"] = attempt.rung if attempt.reason is None else f"{attempt.rung}: {attempt.reason}"
    if added:
        notes["runner.stated_by_plan"] = sorted(added)
    if contradicted:
        notes["runner.contradicts_plan"] = contradicted
    return {key: value for key, value in tree.items() if value != {}}


def _fill(into: Tree, plan: Tree, prefix: str, whole: bool, added: list[str], contradicted: list[str]) -> None:
    for key, value in plan.items():
        path = f"{prefix}{key}"
        if key not in into:
            if whole or key == "complete":
                # A set that was captured whole says that this key was not there; a plan captures nothing.
                contradicted += (
                    [f"{path}: the plan says {_as_text(value)}, the run had none"] if key != "complete" else []
                )
                continue
            into[key] = copy.deepcopy(value)
            added += _leaves(value, path)
        elif isinstance(value, dict) and isinstance(into[key], dict):
            _fill(into[key], value, f"{path}.", False, added, contradicted)
        elif _as_text(_plain(into[key])) != _as_text(_plain(value)):
            contradicted.append(f"{path}: the plan says {_as_text(value)}, the run {_as_text(_plain(into[key]))}")


def _leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    else:
        yield path


def _plain(value: Any) -> Any:
    return value.get("value", value.get("version", value)) if isinstance(value, dict) else value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _state_end(tree: Tree, attempt: Attempt) -> None:
    """How it ended, where the run's own words do not tell it already."""
    run, code, by = tree["run"], attempt.exit_code, attempt.ended_by
    outcome = run.get("outcome")
    if outcome in ("oom", "nan", "hang", "preempted") or (outcome == "crash" and by is None):
        return
    if by == "silence":
        _fail(tree, "hang", "no line was printed for as long as the runner waits, and it was ended")
    elif by is not None:
        run["outcome"] = "preempted"
        tree.pop("failure", None)
    elif code:
        ending = f"killed by signal {-code}" if code and code < 0 else f"exit code {code}"
        _fail(tree, "crash", f"{ending}; nothing that it printed says why")
    elif outcome in (None, "unknown"):
        run["outcome"] = "ok"


def _fail(tree: Tree, outcome: str, message: str) -> None:
    tree["run"]["outcome"] = outcome
    failure = tree.setdefault("failure", {})
    failure.setdefault("class", "not_oom")
    failure.setdefault("message", message)


def step_down(tree: Tree, next_launch: str, rung: str, reason: str | None) -> None:
    """State in a failed attempt's document which attempt follows it."""
    row = {"launch": next_launch, "rung": rung} | ({"reason": reason} if reason else {})
    tree.setdefault("failure", {})["ladder"] = [row]
