"""The folder of a run: its attempts, and the nodes that run one plan together through it.

``state.json`` is written beside and renamed before each attempt begins and after it has ended, so that a runner that
was killed can be taken up again: what it says happened.

Of several nodes one walks the ladder and the others follow. A smaller plan holds for every rank or for none (rule
R415). A node whose command has ended writes so; where it failed the others are ended too, since they would wait for
it in a collective.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from pydantic import ConfigDict, TypeAdapter

from receipts.base import files
from receipts.base.errors import StoreError, UsageError
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_json
from receipts.plugins.run.command import Ended

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


POLL: Final = 0.2
PEER: Final = "peer"


class Mesh(NamedTuple):
    """This node's place among ``nodes``, and how many seconds a silent one is waited for."""

    rank: int = 0
    nodes: int = 1
    patience: float = 300.0

    def log(self, folder: AttemptFolder, attempt: Attempt) -> Path:
        """Where this node's command prints to."""
        return folder.log(attempt) if self.rank == 0 else folder.of(attempt) / f"log.node-{self.rank}.txt"

    def report(self, folder: AttemptFolder, attempt: Attempt, ended: Ended) -> None:
        """Write down how this node's command ended."""
        files.write(_report(folder, attempt, self.rank), json.dumps(ended._asdict()), over=True)

    def failed(self, folder: AttemptFolder, attempt: Attempt) -> Callable[[], str | None]:
        """What a running node asks: whether another one has failed."""

        def ask() -> str | None:
            others = (rank for rank in range(self.nodes) if rank != self.rank)
            reports = (_read(folder, attempt, rank) for rank in others)
            return PEER if any(item is not None and item.exit_code != 0 for item in reports) else None

        return ask if self.nodes > 1 else (lambda: None)

    def together(self, folder: AttemptFolder, attempt: Attempt, own: Ended) -> tuple[Ended, list[int]]:
        """How the attempt ended on all nodes, and the nodes that never said so."""
        until = time.monotonic() + self.patience
        reports: dict[int, Ended] = {self.rank: own}
        while len(reports) < self.nodes and time.monotonic() < until:
            for rank in set(range(self.nodes)) - reports.keys():
                item = _read(folder, attempt, rank)
                if item is not None:
                    reports[rank] = item
            if len(reports) < self.nodes:
                time.sleep(POLL)
        # A node that was ended for another's sake says nothing of why.
        telling = [item for _, item in sorted(reports.items()) if item.by != PEER]
        worst = next((item for item in telling if item.exit_code != 0), telling[0] if telling else own)
        return worst, sorted(set(range(self.nodes)) - reports.keys())


def follow(folder: AttemptFolder, launch: Callable[[Attempt], Ended], mesh: Mesh) -> int:
    """Run what node 0 writes down, until it says that it is over; gives the exit code of the last attempt here.

    Raises StoreError where node 0 is not heard of.
    """
    done = 0
    code = 0
    heard = time.monotonic()
    while True:
        state = _state(folder.path)
        if state is not None and len(state["attempts"]) > done:
            folder.open()
            attempt = folder.attempts[done]
            ended = launch(attempt)
            mesh.report(folder, attempt, ended)
            done, code, heard = done + 1, ended.exit_code, time.monotonic()
        elif state is not None and state["over"]:
            return code
        elif time.monotonic() - heard > mesh.patience:
            raise StoreError(f"{folder.path}: node 0 wrote nothing for {mesh.patience:g} s; is it running there?")
        else:
            time.sleep(POLL)


def placed(rank: int, nodes: int) -> None:
    """Refuse a node that is none of the mesh. Raises UsageError."""
    if nodes < 1 or not 0 <= rank < nodes:
        raise UsageError(f"--node-rank {rank} of --nodes {nodes}: ranks count from 0 to {max(nodes, 1) - 1}")


def _report(folder: AttemptFolder, attempt: Attempt, rank: int) -> Path:
    return folder.of(attempt) / f"node-{rank}.json"


def _read(folder: AttemptFolder, attempt: Attempt, rank: int) -> Ended | None:
    report = _json(_report(folder, attempt, rank))
    return Ended(report["exit_code"], report["by"]) if report is not None else None


def _state(path: Path) -> Mapping[str, Any] | None:
    return _json(path / STATE)


def _json(path: Path) -> dict[str, Any] | None:
    try:
        report: dict[str, Any] = parse_json(read_small(path))
    except (OSError, ValueError):
        return None
    return report
