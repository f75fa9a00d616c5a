"""# C110 too_few_launches

*Why.* Steps of one launch share its luck: placement, clocks, the state of caches. Judging by them called a
difference where there was none in up to nine of ten cases. Only repeating the launch tells.

*Rejected.* One launch per side, on a lane whose spread is not known: nothing can be said. Two per side, with an
interval that crosses the smallest effect that matters: the finding says how many launches would settle it.

*Accepted.* Enough launches that the whole interval lies outside the band of no effect, or inside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.effect import effect_of
from receipts.judging.rule import EFFECT, RATE, I, Offense, PairCase, Topic, rule


@rule("C110", "too_few_launches", I, on="pair", question=EFFECT, taints=(RATE,), about=Topic.EFFECT)
def too_few_launches(pair: PairCase) -> Iterator[Offense]:
    """An effect that launches cannot tell from the spread."""
    readings_a = [launch.read(pair.metric) for launch in pair.group_a]
    readings_b = [launch.read(pair.metric) for launch in pair.group_b]
    if not readings_a or any(item.source not in ("steps", "memory") for item in (*readings_a, *readings_b)):
        return
    effect = effect_of(pair, pair.metric)
    if effect.confused or effect.kind in ("faster", "slower", "equivalent"):  # C124: other days, or no turns
        return
    need = f"{effect.needed} launches per side" if effect.needed else "three launches per side"
    yield Offense(
        at="run.launch",
        found=effect.why,
        expected=f"an interval clear of ±{effect.delta:.1%}, or inside it",
        do=f"run {need}, interleaved",
    )
