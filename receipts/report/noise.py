"""The noise floor of a lane, from the launches that a report read and that differ in nothing."""

from __future__ import annotations

from collections.abc import Iterable

from receipts import metrics
from receipts.lane import Lane
from receipts.report.data import Noise
from receipts.report.neighbours import Configuration
from receipts.report.sections.checks import checked


def noise(made: Iterable[Configuration], lane: Lane) -> Noise:
    """σ of log step time, pooled over configurations of two and more launches that keep their steps."""
    from receipts.stats.noise import largest_spread, pool, self_check

    step = metrics.get("step_seconds")
    groups = []
    for configuration in made:
        readings = [item.launch.read(step) for item in configuration.launches]
        values = [reading.value for reading in readings if reading.source == "steps" and reading.value is not None]
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
