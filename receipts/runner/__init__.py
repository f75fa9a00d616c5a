"""The runner's loop: launch a plan, tell how it ended, keep a receipt of it, and step down the lane's ladder."""

from __future__ import annotations

from receipts.runner.attempt import Attempt, Folder
from receipts.runner.child import Ended, Limits, run
from receipts.runner.complete import complete
from receipts.runner.loop import Outcome, Step, Tools, walk
from receipts.runner.retry import may_retry
from receipts.runner.words import Words

__all__ = [
    "Attempt",
    "Ended",
    "Folder",
    "Limits",
    "Outcome",
    "Step",
    "Tools",
    "Words",
    "complete",
    "may_retry",
    "run",
    "walk",
]
