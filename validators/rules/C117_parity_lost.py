"""# C117 parity_lost

*Why.* A faster number type that trains to another loss is another experiment. One fused optimizer was reported "ok" at
a loss of 148.

*Rejected.* bf16 → fp8, and at step 1,000 the losses stand at 3.10 and 3.40.

*Accepted.* Losses at equal steps within the lane's parity.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, Offense, PairCase, W, rule

_NUMERICS = ("precision", "optimizer", "recompute")


@rule("C117", "parity_lost", W, on="pair", question=NONE)
def parity_lost(pair: PairCase) -> Iterator[Offense]:
    """The last common step at which the losses have parted."""
    if not any(axis in _NUMERICS or axis.startswith("numerics.") for axis in pair.difference.axes):
        return
    a, b = _losses(pair.a.receipt), _losses(pair.b.receipt)
    common = sorted(set(a) & set(b))
    if not common:
        return
    step = common[-1]
    if abs(a[step] - b[step]) > pair.lane.loss_parity * max(abs(a[step]), abs(b[step])):
        yield Offense(
            at="measurement.loss",
            found=f"at step {step} the loss is {a[step]:g} on A and {b[step]:g} on B",
            expected=f"within {pair.lane.loss_parity:.0%} of each other",
            do="check the numerics before the speed",
        )


def _losses(receipt: object) -> dict[int, float]:
    """Losses by step: the series, or the last loss where both launches ran equally long."""
    measurement = getattr(receipt, "measurement", None)
    if measurement is None or measurement.loss is None:
        return {}
    loss = measurement.loss
    if loss.steps is not None and loss.values is not None:
        return dict(zip(loss.steps, loss.values, strict=False))
    steps = len(measurement.step_durations_seconds or ()) or measurement.steps
    return {steps: loss.last} if steps and loss.last is not None else {}
