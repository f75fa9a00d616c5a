"""# C120 copied_launches

*Why.* Five copies of one launch agree better than any five launches do. With some noise in their steps, or a factor on
them, no two copies are equal, and the interval between them shows nothing but that noise.

*Rejected.* Shown where the steps of two launches, one by one, are longer and shorter together (correlation of the
differences of their logarithms above 0.9), and no program vouches for both. As open where a program is said to have
written both, and their steps vary by less than 2 %: data of varying length makes steps rise and fall together, but
by more; the noise of a machine does not come twice.

*Accepted.* Launches with noise of their own. Launches that a program wrote, whose steps vary by what they work on.
Launches with the same steps, in order or shuffled, are refused before any rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Final

from receipts.axes.replicates import rise_together
from receipts.judging.rule import EFFECT, MFU, RATE, I, Offense, PairCase, W, rule
from receipts.metrics import Launch
from receipts.receipt.parse import intact
from receipts.stats.distributions import median

_MAX_COMPARED: Final = 6  # launches of a side that are compared with each other and with the other side's
QUIET: Final = 0.02  # from step to step: what a machine adds; what varies by more varies by its work


@rule("C120", "copied_launches", I, on="pair", question=EFFECT, taints=(RATE, MFU))
def copied_launches(pair: PairCase) -> Iterator[Offense]:
    """Launches of either side that are one launch with some noise, as far as anybody can see."""
    launches = [
        (launch, intact(launch.parsed)) for group in (pair.group_a, pair.group_b) for launch in group[:_MAX_COMPARED]
    ]
    alike: dict[bool, set[str]] = {}
    for (one, vouched), (other, vouched_too) in combinations(launches, 2):
        both = bool(vouched and vouched_too)
        if rise_together(one.rhythm, other.rhythm) and (not both or max(map(_noise, (one, other))) < QUIET):
            alike.setdefault(both, set()).update(launch.parsed.id[:12] for launch in (one, other))
    for both, ids in alike.items():
        copies = sorted(ids)
        why = "as the noise of one machine does not twice" if both else "and no program vouches for them"
        yield Offense(
            at="measurement.step_durations_seconds",
            found=f"steps of {len(copies)} launches rise and fall together ({', '.join(copies[:4])}"
            f"{', …' if len(copies) > 4 else ''}), {why}",
            expected="launches with noise of their own",
            do="submit the receipts as the recorder wrote them, or run the launches again",
            level=I if both else W,
        )


def _noise(launch: Launch) -> float:
    """How far a step lies from the one before, usually, as a share."""
    steps = launch.durations
    return median([abs(b / a - 1) for a, b in pairwise(steps) if a > 0]) if len(steps) > 1 else 0.0
