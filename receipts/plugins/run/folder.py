"""The folder of a run: its attempts.

``state.json`` is written beside and renamed before each attempt begins and after it has ended, so that a runner that
was killed can be taken up again: what it says happened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import ConfigDict, TypeAdapter

from receipts.base import files
from receipts.base.errors import UsageError
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_json

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
