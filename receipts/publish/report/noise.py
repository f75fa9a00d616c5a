"""The noise floor of a lane, from launches of the interval, and of what they were compared with, that are alike."""

from __future__ import annotations

from collections.abc import Iterable

from receipts.axes.lane import Lane
from receipts.publish.report.data import Noise
from receipts.publish.report.neighbours import LaunchGroup
from receipts.publish.report.sections.checks import checked


def noise(configurations: Iterable[LaunchGroup], lane: Lane) -> Noise:
    """σ of log step time, pooled over configurations of two and more launches that keep their steps."""
    from receipts.stats.noise import largest_spread, pool, self_check

    groups = []
    for configuration in configurations:
        steps = [item.entry.step_seconds for item in configuration.launches if item.kept_steps]
        values = [value for value in steps if value is not None]
        if len(values) > 1:
            groups.append(values)
    sigma, check = pool(groups), self_check(groups)
    return Noise(
        sigma=sigma.value if sigma else None,
        degrees=sigma.df if sigma else None,
        groups=len(groups),
        launches=sum(map(len, groups)),
        largest_spread=largest_spread(groups),
        told_apart=check.why,
        check=checked(check),
        declared=lane.sigma,
    )
