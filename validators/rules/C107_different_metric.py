"""# C107 different_metric

*Why.* A median against a last iteration, a rate against a time, a number against nothing: there is no difference to
speak of.

*Rejected.* Means over intervals of steps against every step: a mean holds the stalls, and a median does not. As open:
peak memory where only one side measured it, and tokens per second where nobody states the tokens of a step: the finding
names the leaf that would give it, and the step time answers meanwhile. So is a stated warm-up of 200 steps on B and of
ten on A, where the steps between them would make B 20 % slower. A launch whose steps never became steady leaves the
question open: it has to run longer, and is not wrong.

*Accepted.* The metric can be read from both sides, and their launches are summarized in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import signed_percent
from receipts.judging.rule import COMPARABLE, E, I, Offense, PairCase, rule
from receipts.metrics import Launch
from receipts.metrics.readings import lacking

APART = ("compile", "recompile", "checkpoint", "eval", "profile", "data")  # what a step may hold beside its own work
MOVED = 0.005  # of the level, as steadiness allows


@rule("C107", "different_metric", E, on="pair", question=COMPARABLE)
def different_metric(pair: PairCase) -> Iterator[Offense]:
    """The side, or sides, that do not carry the metric."""
    if pair.metric.summary == "outcome":
        return
    missing, unsteady, leaves = [], [], []
    if pair.metric.summary in ("step", "rate"):
        yield from _summaries(pair)
        yield from _starts(pair)
    for side, group in (("A", pair.group_a), ("B", pair.group_b)):
        without = [launch for launch in group if launch.read(pair.asked).value is None]
        # Steps without a steady segment (R203, R204) say "run longer", which is no verdict on the pair.
        timed = all(launch.shown(pair.asked).value is not None for launch in without)
        if without and not timed:
            missing.append(side)
            leaves += [lacking(launch, pair.asked) for launch in without]
        elif without:
            unsteady.append(f"{without[0].parsed.name} on {side}")
    if missing:
        instead = f": {pair.metric.title} answers" if pair.metric != pair.asked else ""
        yield Offense(
            at=leaves[0],
            found=f"no {pair.asked.title} on {' and '.join(missing)}{instead}",
            expected="the metric on both sides",
            do=f"state {leaves[0]}",
            level=I,
        )
    for launch in unsteady:
        yield Offense(
            at="measurement.step_durations_seconds",
            found=f"no steady segment in {launch}",
            expected="the metric from every launch of both sides",
            do="run longer, or compare without that launch",
            level=I,
        )


def _starts(pair: PairCase) -> Iterator[Offense]:
    """Steps that one launch leaves out as its warm-up and another counts, where they would change its number."""
    launches = (*pair.group_a, *pair.group_b)
    steady = [launch for launch in launches if launch.step_seconds and not launch.interval_steps]
    first = min(map(_start, steady), default=0)
    for launch in steady:
        apart = {at for flag in APART for at in launch.flagged.get(flag, ())}
        between = [at for at in range(first, _start(launch)) if at not in apart]
        more, change = launch.counting(between)
        if more and abs(change) > MOVED:
            yield Offense(
                at="measurement.window.start",
                found=f"{launch.parsed.name} is counted from step {_start(launch)} on, another launch from {first} on: "
                f"with the {more} steps between them its median is {signed_percent(change)}",
                expected="one rule for all launches of both sides",
                do="measure every launch from one step on, or flag the steps that held other work",
                level=I,
            )
            return


def _start(launch: Launch) -> int:
    """The first step that counts."""
    segment = launch.segment
    assert segment is not None
    return next(at for at in range(segment.start, segment.stop) if at not in segment.left_out)


def _summaries(pair: PairCase) -> Iterator[Offense]:
    """Launches that are summarized by the mean of their intervals beside launches that are by their median step."""
    by_intervals = [bool(launch.interval_steps) for launch in (*pair.group_a, *pair.group_b) if launch.durations]
    if len(set(by_intervals)) > 1:
        yield Offense(
            at="measurement.interval_steps",
            found=f"{sum(by_intervals)} of {len(by_intervals)} launches logged interval means, the others every step",
            expected="launches that are summarized in the same way",
            do="record every step on both sides, or log both in intervals",
        )
    reasons = {
        launch.stated.get("measurement.window.reason", "no reason") if launch.after_window else "none left out"
        for launch in (*pair.group_a, *pair.group_b)
        if launch.durations
    }
    if len(reasons) > 1:
        yield Offense(
            at="measurement.window.stop",
            found=f"steps left out at the end of the window: {' · '.join(sorted(reasons))}",
            expected="one rule for all launches of both sides",
            do="measure every launch to its last step, or stop each for the same stated reason",
            level=I,
        )
