"""# C118 clock_explains

*Why.* A chip that is cooler, or has more power to spend, runs at another clock and does the same work in another time.
Such a difference belongs to the machine and the day, not to the axis that was changed, so it must hold in clock cycles
as well.

*Rejected.* 6 % faster, at 1,980 MHz against 1,860: the same number of cycles. 4 % slower at a clock 12 % lower: fewer
cycles, so that time and cycles disagree on which side is better.

*Accepted.* A difference that is larger than the smallest effect in time and in cycles, both ways alike; launches of
which one did not sample its clock; accelerators that differ, whose clocks do so by nature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from receipts.base.units import signed_percent
from receipts.judging.effect import effect_of_pair
from receipts.judging.rule import EFFECT, MFU, RATE, I, Offense, PairCase, rule
from receipts.metrics import Launch

CLOCK = "measurement.health.clock_mhz"


@rule("C118", "clock_explains", I, on="pair", question=EFFECT, taints=(RATE, MFU))
def clock_explains(pair: PairCase) -> Iterator[Offense]:
    """A difference in time that is none in cycles, or the opposite one."""
    a, b = _clock(pair.group_a), _clock(pair.group_b)
    if a is None or b is None or pair.metric.summary not in ("step", "rate"):
        return
    if "hardware.accelerator" in pair.difference.axes:
        return
    effect = effect_of_pair(pair)
    if effect.kind not in ("faster", "slower", "indicated") or effect.ratio is None:
        return
    # Steps take seconds, whose cycles are seconds × clock; a rate is work a second, and a cycle's is rate ÷ clock.
    scale = b / a if pair.metric.better == "lower" else a / b
    nearest = min((effect.low or effect.ratio, effect.high or effect.ratio), key=lambda end: abs(math.log(end)))
    direction = math.copysign(1.0, math.log(effect.ratio))
    if direction * math.log(nearest * scale) > math.log1p(effect.delta):
        return
    yield Offense(
        at=CLOCK,
        found=f"{a:,.0f} MHz on A, {b:,.0f} MHz on B: {signed_percent(effect.ratio - 1)} {pair.metric.title} is "
        f"{signed_percent(effect.ratio * scale - 1)} by clock cycles",
        expected=f"a difference clear of ±{effect.delta:.1%} by clock cycles too",
        do="hold the clocks alike (on NVIDIA: nvidia-smi --lock-gpu-clocks), and launch both sides again",
    )


def _clock(group: Sequence[Launch]) -> float | None:
    """The middle clock of a side's launches, MHz, on the log scale as effects are; None where one did not sample it."""
    clocks = [clock for launch in group if (clock := launch.stated.get(CLOCK))]
    if len(clocks) < len(group):
        return None
    return math.exp(math.fsum(math.log(clock) for clock in clocks) / len(clocks))
