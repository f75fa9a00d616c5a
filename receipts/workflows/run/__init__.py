"""The runner's loop: launch a plan, tell how it ended, keep a receipt of it, and step down the lane's ladder."""

from __future__ import annotations

from receipts.workflows.run.attempt import Attempt, Folder
from receipts.workflows.run.child import Ended, Limits, run
from receipts.workflows.run.complete import complete
from receipts.workflows.run.loop import RunOutcome, RunStep, RunTools, walk
from receipts.workflows.run.retry import may_retry
from receipts.workflows.run.words import Words

__all__ = [
    "Attempt",
    "Ended",
    "Folder",
    "Limits",
    "RunOutcome",
    "RunStep",
    "RunTools",
    "Words",
    "complete",
    "may_retry",
    "run",
    "walk",
]
