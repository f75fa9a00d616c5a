"""Whether a failed attempt may be tried smaller: narrowly, where no work of the run is thrown away by it.

A fallback belongs to start-up and to the first window that compiles; later it would hide a run that outgrew its chips
(rule R413).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from receipts.receipt import Parsed

WINDOWS: Final = ("startup", "compile", "first_window")
HOST: Final = "cpu"  # the accelerator whose memory is the host's own


class Retry(NamedTuple):
    """``may`` with the reason."""

    may: bool
    why: str


def may_retry(receipt: Parsed) -> Retry:
    """Whether a smaller plan may follow this attempt, by its own receipt."""
    run, failure = receipt.receipt.run, receipt.receipt.failure
    if run.outcome == "ok":
        return Retry(False, "it worked")
    if run.outcome != "oom" or failure is None:
        return Retry(False, f"it ended as {run.outcome}, and a smaller plan is the answer to memory alone")
    if failure.class_ == "foreign_process":
        return Retry(False, "another process held the memory: free the chip and launch the same plan again")
    if failure.class_ == "host" and receipt.stated.get("hardware.accelerator") != HOST:
        return Retry(False, "the host's memory ran out, and the ladder is the chips'")
    phase = failure.phase or "unknown"
    if phase in WINDOWS:
        return Retry(True, f"it ran out of memory in {phase.replace('_', ' ')}")
    if phase == "unknown":
        return Retry(
            False, "nothing tells in which phase it ran out, so that it may have been at work; record its steps"
        )
    return Retry(False, "it ran out at work, behind the first window that compiles: a smaller plan would hide that")
