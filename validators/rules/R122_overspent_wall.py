"""# R122 overspent_wall

*Why.* Goodput divides the wall time. Spans that overlap, or that several attempts add up, divide more time than there
was, and no share of it can be trusted.

*Rejected.* As open: 651 s in steps and 2,000 s of evaluation in a run of 770 s.

*Accepted.* Spans that add up to the run, or to less of it. A run that does not say when it finished.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from receipts.judging.rule import COMPARABLE, GOODPUT, Case, I, Offense, rule

SPANS = ("step", "compile", "checkpoint", "eval", "data", "idle")
CLOCK_SECONDS = 2.0  # times of a run are written to the second, at both ends
LOOSE = 0.02  # of the run: what spans that are rounded, or timed by other clocks, may add


@rule("R122", "overspent_wall", I, question=COMPARABLE, taints=(GOODPUT,))
def overspent_wall(case: Case) -> Iterator[Offense]:
    """The sum of the spans against the time from start to finish."""
    run = case.receipt.run
    if run.finished is None or case.get("run.started_stated") is not None:
        return
    wall = (run.finished - run.started).total_seconds()
    spent = math.fsum(case.get(f"measurement.goodput.{name}_seconds") or 0.0 for name in SPANS)
    if spent > wall * (1 + LOOSE) + CLOCK_SECONDS:
        yield Offense(
            at="measurement.goodput",
            found=f"spans of {spent:,.0f} s in a run of {wall:,.0f} s",
            expected=f"at most {wall:,.0f} s",
            do="count each second once, and the time of one launch",
        )
