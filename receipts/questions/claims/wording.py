"""Wordings of an effect that an interval supports, rounded outward so that the interval lies inside each."""

from __future__ import annotations

import math
from collections.abc import Iterator

from receipts.judging.claims.bound import Bound
from receipts.judging.claims.claim import Claim
from receipts.metrics import METRICS, Metric

_DIGITS = 3  # of a change in percent and of a factor
_VALUE_DIGITS = 4
_WIDEST = 0.10  # a band beyond which nobody calls two numbers equivalent


def wordings(claim: Claim, low: float, high: float) -> Iterator[str]:
    """Effects for ``claim`` that hold where the number lies in ``low`` to ``high``, the strongest one-sided first.

    The numbers are of what the claim's own effect bounds: an improvement, the metric's ratio, or its value.
    """
    bound = claim.bound
    metric = METRICS.get(claim.metric_name)
    if bound is None or metric is None or not 0.0 < low <= high < math.inf:
        return
    if claim.kind == "equivalence":
        band = max(high, 1.0 / low) - 1.0
        if band <= _WIDEST:
            yield f"within ±{_up(band * 100.0):g} %"
        return
    least, most = _value(metric, low, high) if bound.of == "value" else _ratio(bound, metric, low, high)
    upward, downward = _directions(bound, low, high)
    if upward:
        yield f"at least {least}"
    if downward:
        yield f"at most {most}"
    if least != most:
        yield f"between {least} and {most}"


def _directions(bound: Bound, low: float, high: float) -> tuple[bool, bool]:
    """Whether *at least* and *at most* say something: the claim's own direction, else the side of 1 that was shown."""
    if math.isinf(bound.high):
        return bound.of == "value" or low > 1.0, False
    if bound.low == 0.0:
        return False, bound.of == "value" or high < 1.0
    return bound.of != "value" and low > 1.0, bound.of != "value" and high < 1.0


def _ratio(bound: Bound, metric: Metric, low: float, high: float) -> tuple[str, str]:
    if bound.of == "improvement" and metric.better == "lower":
        return f"{_down(low):g}", f"{_up(high):g}"
    least, most = _down((low - 1.0) * 100.0), _up((high - 1.0) * 100.0)
    return _signed(least), _signed(most)


def _signed(percent: float) -> str:
    return f"{'−' if percent < 0 else '+'}{abs(percent):g} %"


def _value(metric: Metric, low: float, high: float) -> tuple[str, str]:
    unit = {"tokens/s": "tok/s", "seconds": "s"}.get(metric.unit, metric.shown_unit or metric.unit)
    scale = 1.0 if metric.unit == "seconds" else metric.scale
    least, most = _down(low * scale, _VALUE_DIGITS), _up(high * scale, _VALUE_DIGITS)
    return f"{least:.10g} {unit}".rstrip(), f"{most:.10g} {unit}".rstrip()


def _down(number: float, digits: int = _DIGITS) -> float:
    place = _place(number, digits)
    return round(math.floor(number / place) * place, 12)


def _up(number: float, digits: int = _DIGITS) -> float:
    return -_down(-number, digits)


def _place(number: float, digits: int) -> float:
    """The place of the last of so many digits."""
    if number == 0.0:
        return 0.1
    return float(10.0 ** (math.floor(math.log10(abs(number))) - digits + 1))
