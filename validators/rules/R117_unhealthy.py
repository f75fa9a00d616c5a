"""# R117 unhealthy

*Why.* A chip that throttles sets the pace of all. A difference that clocks, power or one slow rank explain is a
difference between machines, whatever axis was changed.

*Rejected.* A thermal throttle reason; clocks 12 % apart over the chips where the lane allows 5 %; a rank skew of 9 %.

*Accepted.* No throttle reason, and spreads within the lane's bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, Case, Offense, W, rule

HEALTH = "measurement.health"
# Raised by every chip that waits for work: no sign of ill health.
IDLE = ("none", "gpu_idle", "idle", "not_active")


@rule("R117", "unhealthy", W, question=NONE)
def unhealthy(case: Case) -> Iterator[Offense]:
    """Throttle reasons, spread of clocks, skew of ranks."""
    reasons = [item for item in case.get(f"{HEALTH}.throttle_reasons") or () if item.lower() not in IDLE]
    if reasons:
        yield Offense(
            at=f"{HEALTH}.throttle_reasons",
            found=", ".join(reasons),
            expected="no throttling over the window",
            do="cool or repower the machine, and launch again",
        )
    for name, bound, what in (
        ("clock_spread", case.lane.clock_spread, "clocks apart over the chips"),
        ("rank_skew", case.lane.rank_skew, "between slowest and fastest rank"),
    ):
        share = case.get(f"{HEALTH}.{name}")
        if share is not None and share > bound:
            yield Offense(
                at=f"{HEALTH}.{name}",
                found=f"{share:.1%} {what}",
                expected=f"at most {bound:.0%} in lane {case.lane.name}",
                do="find the slow chip or rank; compare on a healthy machine",
            )
