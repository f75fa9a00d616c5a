"""Calibration: how far a lane's measured peaks lie from their estimates, and how well that carries to a next launch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from receipts.stats.log_ratio import predicted

FEWEST = 3  # measured launches: with two, leaving one out leaves nothing to see spread in
SHARE = 0.90


@dataclass(frozen=True, slots=True)
class CalibrationPoint:
    """One measured launch: estimated live bytes, measured live peak in bytes, and what to call it.

    ``group`` holds launches that are repeats of one configuration: they are one point of evidence, not many.
    """

    estimated: float
    measured: float
    name: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Calibration:
    """``factor`` turns an estimate into the expected peak; the next launch lies between ``low`` and ``high`` of it.

    The interval holds a share `SHARE` of next launches (Student's t on ``groups`` − 1 degrees). ``left_out`` is the
    worst error of a configuration estimated from the others, and ``left_out_median`` the middle one; shares.
    """

    factor: float
    low: float
    high: float
    groups: int
    launches: int
    left_out: float
    left_out_median: float


def calibrate(points: Sequence[CalibrationPoint]) -> Calibration | None:
    """The calibration of these launches; None where fewer than `FEWEST` configurations were measured.

    The mean of log(measured / estimated) over configurations, each the mean of its repeats. The interval is that of a
    next configuration: mean ± t · s · sqrt(1 + 1/n).
    """
    ratios = _ratios(points)
    if len(ratios) < FEWEST:
        return None
    logs = list(ratios.values())
    one_more = predicted(logs)
    middle, reach = one_more.log_ratio, one_more.half_width(SHARE)
    errors = sorted(left_out(points).values())
    return Calibration(
        factor=math.exp(middle),
        low=math.exp(middle - reach),
        high=math.exp(middle + reach),
        groups=len(logs),
        launches=len(points),
        left_out=errors[-1],
        left_out_median=errors[len(errors) // 2],
    )


def left_out(points: Sequence[CalibrationPoint]) -> dict[str, float]:
    """The error of each configuration when the factor comes from all others: |estimate · factor / measured − 1|."""
    ratios = _ratios(points)
    errors = {}
    for group, own in ratios.items():
        others = [value for other, value in ratios.items() if other != group]
        if others:
            errors[group] = abs(math.exp(_mean(others) - own) - 1)
    return errors


def _ratios(points: Sequence[CalibrationPoint]) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for index, point in enumerate(points):
        if point.estimated > 0 and point.measured > 0:
            groups.setdefault(point.group or f"#{index}", []).append(math.log(point.measured / point.estimated))
    return {group: _mean(values) for group, values in groups.items()}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
