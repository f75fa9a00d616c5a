"""# C127 launches_chosen

*Why.* The best three of nine launches are 6 % faster than the worst three of nine of the same program. Whoever names
launches may leave out what he likes; the store knows the others of their session.

*Rejected.* As open: with `--only`, three launches of a side that lie beyond the six of their session that were left
out. How many were left out stands in the last line in any case.

*Accepted.* Launches that agree with those that were left out. Sides whose session counts whole, as it does without
`--only`. Launches of other sessions and labels, which belong to other questions.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.effect import OF_DAYS, apart_from
from receipts.judging.rule import EFFECT, MFU, RATE, I, Offense, PairCase, rule
from receipts.judging.verdict import OF_THIS_SESSION


@rule("C127", "launches_chosen", I, on="pair", question=EFFECT, taints=(RATE, MFU))
def launches_chosen(pair: PairCase) -> Iterator[Offense]:
    """Launches that were named, against those of their session that were not."""
    if pair.facts is None or pair.pooled or pair.metric.summary not in OF_DAYS or pair.metric is not pair.asked:
        return
    left = {item.side: item.count for item in pair.left_out if item.which == OF_THIS_SESSION}
    sides = (("a", pair.group_a, pair.facts.history_a), ("b", pair.group_b, pair.facts.history_b))
    unlike = [
        f"{left[letter]} launches of {letter.upper()} that were left out lie {apart} from those that were named"
        for letter, group, history in sides
        if letter in left and (apart := apart_from(history, [launch.read(pair.metric).value for launch in group]))
    ]
    if unlike:
        yield Offense(
            at="run.started",
            found="; ".join(unlike),
            expected="launches that agree with the others of their session",
            do="compare without --only; retract the launches that did not run as the others",
        )
