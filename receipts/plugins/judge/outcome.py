"""What a trial aims at or holds: how many times worse the candidate is, launch against launch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts import metrics
from receipts.base.errors import UsageError, near
from receipts.questions.gate import share

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.metrics import Launch

ALIASES: Final = {"throughput": "tokens_per_second", "memory": "peak_bytes", "time-to-loss": "training_seconds"}
LOSS, PARITY, REACHED = "loss", "parity", "time-to-loss="


class Quantity(NamedTuple):
    """``worse(base, candidate)`` is a log ratio, above 0 where the candidate is worse; None where a side has
    none, and infinite where the candidate never comes to it.

    ``metric`` is the metric by which both sides are compared; ``margin`` is the share that a held one may lose, None
    for the lane's δ.
    """

    name: str
    title: str
    metric: str
    worse: Callable[[Launch, Launch], float | None]
    higher: bool
    margin: float | None = None

    def allowed(self, lane: Lane) -> float:
        """The share by which it may get worse where it is held, or has to get better where it is the target."""
        usual = lane.loss_parity if self.name == PARITY else lane.smallest_effect(self.metric)
        from receipts.stats.equivalence import SMALLEST_EFFECT

        return next(item for item in (self.margin, usual, SMALLEST_EFFECT) if item is not None)


def quantity(text: str) -> Quantity:
    """Read ``throughput``, ``peak_bytes=2%``, ``loss``, ``time-to-loss=3.28``. Raises UsageError."""
    name, equals, stated = text.partition("=")
    if text.startswith(REACHED):
        try:
            target = float(stated)
        except ValueError:
            raise UsageError(f"{text}: write the loss to reach, such as time-to-loss=3.28") from None
        worse = _values(lambda one: reached(one, target), never=True)
        return Quantity(text, f"a loss of {target:g}", "tokens_per_second", worse, False)
    margin = share(stated) if equals else None
    if equals and margin is None:
        raise UsageError(f"{text}: write the share that it may lose, such as {name}=1%")
    if name in (LOSS, PARITY):
        title = "loss at equal steps" if name == LOSS else "largest loss against the base's at any step"
        return Quantity(name, title, "tokens_per_second", _last if name == LOSS else _worst, False, margin)
    known = (*ALIASES, LOSS, PARITY, *metrics.METRICS)
    if name not in known:
        what = "write throughput, memory, time-to-loss=3.28, loss, parity or a metric of receipts compare -m"
        raise UsageError(f"{text}: {what}{near(name, known)}")
    metric = metrics.get(ALIASES.get(name, name))
    if metric.better == "neither":
        raise UsageError(f"{name} has no better side; see: receipts judge --help")
    higher = metric.better == "higher"
    worse = _values(lambda one: one.read(metric).value, higher=higher)
    return Quantity(metric.name, metric.title, metric.name, worse, higher, margin)


def _values(
    read: Callable[[Launch], float | None], *, higher: bool = False, never: bool = False
) -> Callable[[Launch, Launch], float | None]:
    def worse(base: Launch, candidate: Launch) -> float | None:
        a, b = read(base), read(candidate)
        if a and b is None and never:
            return math.inf
        return None if not a or not b or a < 0.0 or b < 0.0 else math.log(a / b if higher else b / a)

    return worse


def losses(launch: Launch) -> dict[int, float]:
    """Losses by step: the series, and the last one at the number of steps."""
    steps, values = (launch.stated.get(f"measurement.loss.{name}") or () for name in ("steps", "values"))
    last, count = launch.stated.get("measurement.loss.last"), launch.steps_trained
    return dict(zip(steps, values, strict=False)) | ({count - 1: last} if count and last is not None else {})


def _common(base: Launch, candidate: Launch) -> list[float]:
    a, b = losses(base), losses(candidate)
    pairs = [(a[step], b[step]) for step in sorted(a.keys() & b.keys())]
    return [math.log(two / one) if one > 0.0 and math.isfinite(two) and two > 0.0 else math.inf for one, two in pairs]


def _last(base: Launch, candidate: Launch) -> float | None:
    return next(reversed(_common(base, candidate)), None)


def _worst(base: Launch, candidate: Launch) -> float | None:
    return max(_common(base, candidate), default=None)


def reached(launch: Launch, target: float) -> float | None:
    """The seconds of the steps until the loss is at most ``target``; None where it never is, or no step is timed."""
    step = next((step for step, loss in sorted(losses(launch).items()) if loss <= target), None)
    durations = launch.durations
    return math.fsum(durations[: step + 1]) if step is not None and step < len(durations) else None
