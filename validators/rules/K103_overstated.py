"""# K103 overstated

*Why.* A projected 1.7× became a measured 1.07× that nobody carried back into the text; 45.0 % was printed as 50.1 %
after the denominator had changed. A figure outlives the runs that it came from.

*Rejected.* At least 1.10 is claimed, and the interval ends at 1.06; about 1.3 ± 5 % is claimed, and the interval is
1.38 to 1.41; +18 % is claimed, and the two stated numbers give +13.3 %; a shape that is said not to fit has fitted.

The advice tells a change that is more than what is claimed: that is understated.

*Accepted.* The interval lies inside what is claimed, or reaches into it: then it is unproven, and not overstated.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import EFFECT, ClaimCase, E, Offense, rule


@rule("K103", "overstated", E, on="claim", question=EFFECT)
def overstated(case: ClaimCase) -> Iterator[Offense]:
    """What the receipts say of the claim's number lies outside of it."""
    if case.assessment.state != "fails":
        return
    wanted = case.claim.effect or f"a claim of kind {case.claim.kind} that its receipts carry"
    at = "effect" if case.claim.effect else "kind"
    bound, low = case.claim.bound, case.assessment.low
    gain = bound if bound is not None and bound.of == "improvement" and case.claim.kind != "equivalence" else None
    understated = gain is not None and low is not None and low > gain.high
    do = "claim what was measured, or withdraw the claim"
    yield Offense(at, case.assessment.why, wanted, f"it is understated: {do}" if understated else do)
