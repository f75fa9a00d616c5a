"""How the recorder reports: a fault becomes a note and never an exception in the job; lines on standard error.

Standard error has faults on the first day, and at the end what was written and is missing.
"""

from __future__ import annotations

import os
import sys
from functools import wraps

from receipts.emit import files, identity
from receipts.emit.contract import unstated_summary

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec

    from receipts.emit.contract import UnstatedFact
    from receipts.emit.run_record import RunRecord

    Given = ParamSpec("Given")


def fault(note: Callable[[str], None], where: str, error: BaseException) -> None:
    """Note an error. It may be unable to say its own text, and the note may fail as what it is about did."""
    kind = type(error).__name__
    try:
        note(f"{where}: {kind}: {error}")
    except Exception:
        try:
            note(f"{where}: {kind}")
        except Exception:
            return


def guarded(method: Callable[Given, None]) -> Callable[Given, None]:
    """A method whose faults become notes: training goes on. Its object takes them by `_fault(where, error)`."""

    @wraps(method)
    def call(*given: Given.args, **named: Given.kwargs) -> None:
        try:
            method(*given, **named)
        except Exception as error:
            owner: Any = given[0]
            owner._fault(method.__name__, error)

    return call


MAX_WARNINGS = 20


class Console:
    """Lines on standard error, of the process that made it alone; a stream that is gone silences it."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._warned = 0
        self._process = os.getpid()

    def warn(self, text: str) -> None:
        """A word on a fault, so that a misspelt leaf is seen on the first day; a flood is cut."""
        self._warned += 1
        if self._warned <= MAX_WARNINGS:
            self.say(text)

    def say(self, text: str) -> None:
        """A line on standard error."""
        if self._quiet or os.getpid() != self._process:
            return
        try:
            sys.stderr.write(f"receipts: {text}\n")
        except (OSError, ValueError, AttributeError):
            self._quiet = True

    def without_steps(self) -> None:
        """That there is no receipt, and why; a worker of the job is silent."""
        if not identity.helper():
            self.say(
                "no step ended, so there is no receipt: put `with rec.step(tokens=…):` around each step; "
                "a run without steps is of another kind than training"
            )

    def written(self, record: RunRecord, path: str, open_facts: tuple[UnstatedFact, ...]) -> None:
        """What was written, what to do next, and what the lane asks for that nobody stated."""
        if os.environ.get("RECEIPTS_SIGHT_REPORT"):
            return  # `receipts record` says what became of it
        steps = f"{record.steps} steps, {record.outcome}"
        if record.place.world > 1:
            if record.place.rank == 0:
                pattern = path.replace("rank00000", "rank*")
                self.say(f"{record.place.world} ranks write their parts ({path}, {steps}); next:")
                self.say(f"  receipts merge {pattern} -o {files.RECEIPT}")
            return
        self.say(f"wrote {path} ({steps}); next: receipts check {path}")
        if open_facts and record.outcome == "ok":
            self.say(f"lane {record.head['lane']} asks for {len(open_facts)} facts that nobody stated:")
            for line in unstated_summary(open_facts):
                self.say(f"  {line}")
