"""# C121 unexplained_gain

*Why.* Repeats of one configuration agree within their noise. Where they do not, something changed that neither side
states: frozen parameters, another file, a busy machine. The number is real, and no setting earned it.

*Rejected.* No axis changed, and B is 150 % faster over three launches a side, or holds a fifth less memory.

*Accepted.* Repeats that agree within the smallest effect that matters, or whose interval is too wide to tell. A
difference beside an axis that changed, a waived one too, or between hosts or in regimes that differ on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import signed_percent
from receipts.judging.effect import effect_of_pair
from receipts.judging.rule import ALL, EFFECT, I, Offense, PairCase, rule

# Where a metric is read, if not from the steps.
PLACES = {
    "memory": "memory.chips",
    "compile": "compile.compile_seconds",
    "goodput": "measurement.goodput",
    "loss": "measurement.loss",
}


@rule("C121", "unexplained_gain", I, on="pair", question=EFFECT, taints=(ALL,))
def unexplained_gain(pair: PairCase) -> Iterator[Offense]:
    """An effect between launches of which no stated setting, host or regime differs."""
    if pair.difference.changed or pair.difference.blocks or pair.regimes:
        return
    effect = effect_of_pair(pair)
    if effect.kind not in ("faster", "slower", "indicated") or effect.ratio is None:
        return
    yield Offense(
        at=PLACES.get(pair.metric.summary, "measurement.step_durations_seconds"),
        found=f"{signed_percent(effect.ratio - 1)} {pair.metric.title}, and no setting changed",
        expected="repeats of one configuration that agree",
        do="state what was changed; if nothing was, launch both in turns on a machine that does nothing else",
    )
