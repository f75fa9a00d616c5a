"""# C124 other_days

*Why.* The level of a machine moves by a percent or two from day to day, and drifts within one. Between equal launches
of different days that looks like an effect: pooled, a quarter to a half of equal pairs were "faster" or "slower".
Launches of one session in turns share the level, and tell.

*Rejected.* A ran on one day and B on another, and the lane has not shown how far its days lie apart, or they lie too
far apart. All launches of A ran before all of B, and a drift of the size that they show would make the effect. Shown
where stored launches of other sessions do not fit those of this one: they decide nothing.

*Accepted.* Launches of A and B in turns; one of each a night, for ten nights. An effect between days, or after one
another, that is larger than what the lane's days or the launches' own drift would make.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from receipts.judging.effect import OF_DAYS, apart_from, effect_of_pair
from receipts.judging.rule import EFFECT, MFU, RATE, I, Offense, PairCase, Topic, W, rule
from receipts.judging.verdict import OF_THIS_SESSION
from receipts.metrics import Launch

IN_TURNS: Final = {"days": "other days: run both in turns", "order": "run both in turns: A, B, B, A"}


@rule("C124", "other_days", I, on="pair", question=EFFECT, taints=(RATE, MFU), about=Topic.EFFECT)
def other_days(pair: PairCase) -> Iterator[Offense]:
    """An effect that another day, or a drift, would make as well."""
    if pair.metric.summary not in OF_DAYS:
        return
    effect = effect_of_pair(pair)
    if effect.confused:
        yield Offense(
            at="run.started",
            found=effect.why,
            expected="launches of both sides in turns, in one session",
            do=IN_TURNS[effect.confused],
        )
    yield from _history(pair)


def _history(pair: PairCase) -> Iterator[Offense]:
    if pair.facts is None or pair.pooled or pair.metric is not pair.asked:
        return
    sides = (("A", pair.group_a, pair.facts.history_a), ("B", pair.group_b, pair.facts.history_b))
    chosen = {item.side.upper() for item in pair.left_out if item.which == OF_THIS_SESSION}  # C127 judges those
    unlike = [
        text
        for letter, group, history in sides
        if letter not in chosen and (text := _apart(pair, letter, group, history))
    ]
    if unlike:
        yield Offense(
            at="run.started",
            found="; ".join(unlike),
            expected="stored launches that agree with those of this session; they decide nothing",
            do="see: receipts history; what changed between the sessions?",
            level=W,
        )


def _apart(pair: PairCase, letter: str, group: Sequence[Launch], history: Sequence[float]) -> str:
    """How far the stored launches of a side lie from those of this session, where that is beyond their spread."""
    apart = apart_from(history, [launch.read(pair.metric).value for launch in group])
    return apart and f"{len(history)} launches of {letter} of other sessions lie {apart} from those of this one"
