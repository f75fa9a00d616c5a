"""# K105 lone_peak

*Why.* A record that was reached once was never reached again, and its log turned out to be another job's. A ceiling is
what a lane sustains; one good launch is a peak.

*Rejected.* One launch at 65,536 tokens is called the lane's ceiling.

*Accepted.* Two launches sustained it (*repeated*); three did, on two days or two hosts (*validated*).
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, ClaimCase, E, Offense, rule


@rule("K105", "lone_peak", E, on="claim", question=NONE)
def lone_peak(case: ClaimCase) -> Iterator[Offense]:
    """A ceiling that one launch reached once."""
    if case.claim.kind == "ceiling" and case.assessment.grade == "single":
        yield Offense(
            at="candidate",
            found=f"a peak, which one launch reached: {case.candidate[0].parsed.name}",
            expected="two launches for a repeated ceiling, or three on two days or hosts for a validated one",
            do="launch it again, or call it a peak",
        )
