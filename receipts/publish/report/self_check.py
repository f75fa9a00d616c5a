"""Noise floors and the self-check: how often launches that differ in nothing were told apart, lane by lane."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from receipts.axes.lane import Lane
from receipts.publish.report.data import Noise

if TYPE_CHECKING:
    from receipts.publish.report.data import LaneWeek
    from receipts.questions.week.links import LaunchGroup


def noise(configurations: Iterable[LaunchGroup], lane: Lane) -> Noise:
    """σ of log step time, pooled over configurations of two and more launches that keep their steps."""
    from receipts.stats.noise import largest_spread, pooled_sigma, self_check

    groups = []
    for configuration in configurations:
        steps = [item.entry.step_seconds for item in configuration.launches if item.kept_steps]
        values = [value for value in steps if value is not None]
        if len(values) > 1:
            groups.append(values)
    sigma, check = pooled_sigma(groups), self_check(groups)
    return Noise(
        sigma=sigma.value if sigma else None,
        degrees=sigma.df if sigma else None,
        groups=len(groups),
        launches=sum(map(len, groups)),
        largest_spread=largest_spread(groups),
        check=check,
        declared=lane.sigma,
    )


def overall(lanes: Sequence[LaneWeek]) -> str:
    """The self-check over all lanes."""
    from receipts.stats.noise import combined_checks

    total = combined_checks(lane.noise.check for lane in lanes)
    if not total.pairs:
        return "No two groups of equal launches were read: there is nothing to check against."
    return f"Over all lanes: {total.why}."
