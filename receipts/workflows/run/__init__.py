"""The runner's loop: launch a plan, tell how it ended, keep a receipt of it, and step down the lane's ladder."""

from __future__ import annotations

from receipts.workflows.run.attempt import Attempt, AttemptFolder
from receipts.workflows.run.child import ChildLimits, Ended, run
from receipts.workflows.run.complete import complete
from receipts.workflows.run.loop import RunOutcome, RunStep, RunTools, walk
from receipts.workflows.run.retry import may_retry
from receipts.workflows.run.words import CommandWords

__all__ = [
    "Attempt",
    "AttemptFolder",
    "ChildLimits",
    "CommandWords",
    "Ended",
    "RunOutcome",
    "RunStep",
    "RunTools",
    "complete",
    "may_retry",
    "run",
    "walk",
]
