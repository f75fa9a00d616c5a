"""# R207 other_clock

*Why.* A job that replaces `time.perf_counter_ns`, or loads a library that slows its clock, times itself: every step is
shorter, and nothing in the receipt says so. The process that launched it has its own clock (`receipts record`), and
the kernel counts ticks whoever asks.

*Rejected.* Steps whose clock ran at 0.97 or at half the rate of the launcher's; a run of a minute by the recorder's
clock, in which the kernel counted two. A job that multiplies the functions of `time` by 0.97, although the recorder
reads the interpreter's own: what else the job prints and decides by time is not to be believed. As open: a receipt
whose evidence or recorder lists such a rate, and that states none any more.

*Accepted.* Rates that agree within 0.5 %: honest launches differ by less than 0.2 %. A wrapper around a function of
`time` that gives its time. A receipt without rates, since no launcher looked, or too few steps ended. A clock that NTP
slews or that suspension stops convicts nobody: of several clocks the one that agrees best counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import COMPARABLE, GOODPUT, MFU, RATE, Case, E, I, Offense, rule

STEPS = "the clock of the steps ran at"
CLOCKS = {
    "measurement.outer_clock_ratio": (STEPS, "the clock of the process that launched it"),
    "measurement.kernel_clock_ratio": (STEPS, "the kernel's ticks"),
    "measurement.job_clock_ratio": ("the job replaced a clock of Python by one at", "the interpreter's own"),
}
LOOSE = 0.005


@rule("R207", "other_clock", E, question=COMPARABLE, taints=(RATE, MFU, GOODPUT))
def other_clock(case: Case) -> Iterator[Offense]:
    """The rate of the clock that timed the steps."""
    listed = {path for entry in case.receipt.evidence or () for path in entry.read or ()}
    recorded = case.receipt.run.recorded
    listed |= set((recorded.sources if recorded is not None else None) or ())
    for path, (what, whose) in CLOCKS.items():
        ratio = case.get(path)
        if ratio is None and path in listed:
            yield Offense(path, "not stated", "the rate that was read", "submit the receipt as it was written", level=I)
        elif ratio is not None and abs(ratio - 1) > LOOSE:
            yield Offense(
                at=path,
                found=f"{what} {ratio:.4g} times the rate of {whose}",
                expected=f"1, to {LOOSE:.1%}",
                do="time steps with the interpreter's own clock, and preload no library that changes it",
            )
