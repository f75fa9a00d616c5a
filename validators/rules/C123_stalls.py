"""# C123 stalls

*Why.* Tokens are paid for by the wall. A median holds no stall: 40 ms in every third step cost 26.5 % of the throughput
and moved the typical step by nothing, so that two launches read as equal.

*Rejected.* As open: tokens per second where one side spends a third of its time outside its steps, the other nothing,
and no side says how long its measured steps took by the wall. As W: a typical step that is 0.1 % longer, and 26.5 %
fewer tokens per second. The metric that was asked for is answered, and the other is open.

*Accepted.* Both ratios agree within the smallest effect that matters. Time outside the steps that start-up explains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from receipts.judging.effect import delta_of_parting, parting, time_outside_steps
from receipts.judging.rule import EFFECT, I, Offense, PairCase, Topic, W, rule
from receipts.metrics import Launch


@rule("C123", "stalls", I, on="pair", question=EFFECT, about=Topic.STALLS)
def stalls(pair: PairCase) -> Iterator[Offense]:
    """Ratios that part, and time outside the steps that nobody placed."""
    if pair.metric.summary not in ("step", "rate"):
        return
    parted = parting(pair)
    if parted is not None:
        other = "the typical step" if pair.metric.summary == "rate" else "throughput"
        yield Offense(
            at="measurement.step_durations_seconds",
            found=str(parted),
            expected=f"typical step and throughput that agree within {delta_of_parting(pair):.1%}",
            do=f"find what stalls; this answers {pair.metric.title} alone, and {other} is open",
            level=W,
        )
    launches = (*pair.group_a, *pair.group_b)
    if pair.metric.summary == "rate" and not all(launch.walls for launch in launches):
        yield from _outside(pair)


def _outside(pair: PairCase) -> Iterator[Offense]:
    a, b = _shares(pair.group_a), _shares(pair.group_b)
    if a is None or b is None:
        return
    (least_a, most_a), (least_b, most_b) = a, b
    if max(least_a, least_b) - min(most_a, most_b) > delta_of_parting(pair):
        yield Offense(
            at="measurement.step_wall_seconds",
            found=f"{least_a:.0%} to {most_a:.0%} of the wall time of A is outside its steps and spans, "
            f"and {least_b:.0%} to {most_b:.0%} of B's",
            expected="the wall time of the measured steps, or as much time outside them on both sides",
            do="record both with a recorder of schema 1.1, or compare step_seconds",
        )


def _shares(group: Sequence[Launch]) -> tuple[float, float] | None:
    """The mean of a side's shares outside its steps, at least and at most; None where a launch does not say."""
    shares = [share for launch in group if (share := time_outside_steps(launch)) is not None]
    if not shares or len(shares) < len(group):
        return None
    least, most = (sum(ends) / len(shares) for ends in zip(*shares, strict=True))
    return least, most
