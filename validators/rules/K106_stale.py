"""# K106 stale

*Why.* 269.4 TFLOP/s was superseded because its gradients were silently corrupted, and stayed in the README, the plan
and the changelog.

*Rejected.* A receipt that the claim rests on was superseded or retracted; a newer verdict no longer supports it; a
larger shape than the claimed ceiling has been sustained since.

*Accepted.* All its receipts stand, and it is as well supported as when it was last judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import counted
from receipts.judging.facts import REPEATED, SHAPE
from receipts.judging.rule import NONE, ClaimCase, I, Offense, Topic, rule


@rule("K106", "stale", I, on="claim", question=NONE, facts=True, about=Topic.STALENESS)
def stale(case: ClaimCase) -> Iterator[Offense]:
    """Receipts that no longer stand, a status that was lost, and a ceiling that was passed."""
    known = dict(case.facts.superseded) if case.facts else {}
    named = {launch.parsed.id: launch.parsed.name for launch in case.launches}
    gone = {receipt: known[receipt] for receipt in named if receipt in known}
    # A label may name the successor by now: what it stood on when it was last judged counts as well.
    gone.update({receipt: (successor, reason) for receipt, successor, reason in case.lost})
    sides = {launch.parsed.id: "baseline" for launch in case.baseline}
    for receipt, (successor, reason) in gone.items():
        what = f"superseded by {successor[:12]}" if successor else "retracted"
        do = f"see whether it holds on {successor[:12]}" if successor else "withdraw it, or measure again"
        yield Offense(
            at=sides.get(receipt, "candidate"),
            found=f"{named.get(receipt, receipt[:12])} was {what}: {reason}",
            expected="receipts that stand",
            do=f"{do}, and correct what quotes it",
        )
    if case.earlier == "supported" and case.now not in (None, "supported"):
        yield Offense(
            at="text",
            found=f"it was supported when it was last judged and is {case.now} now",
            expected="the status that it was published with",
            do="correct what quotes it, and supersede it",
        )
    yield from _passed(case)


def _passed(case: ClaimCase) -> Iterator[Offense]:
    if case.claim.kind != "ceiling" or not case.candidate or case.facts is None:
        return
    launch = case.candidate[0]
    mine = [launch.stated.get(path) for _, path in SHAPE]
    chips = launch.stated.get("hardware.chips")
    if chips is None or None in mine:
        return
    for shape in (item for item in case.facts.shapes if item.is_of(launch.settings.shape)):
        theirs = [getattr(shape, name) for name, _ in SHAPE]
        if shape.launches < REPEATED or None in theirs or shape.chips is None or shape.chips > chips:
            continue
        if theirs != mine and all(size >= own for size, own in zip(theirs, mine, strict=True)):
            sizes = ", ".join(
                f"{name.replace('_', ' ')} {size:,}" for (name, _), size in zip(SHAPE, theirs, strict=True)
            )
            yield Offense(
                at="candidate",
                found=f"{shape.launches} launches have sustained {sizes} on {counted(shape.chips, 'chip')}",
                expected="the largest shape of its lane",
                do="claim that shape instead, and supersede this claim",
            )
            return
