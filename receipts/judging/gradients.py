"""The first gradient norms of two sides: what all the work of a step is for, and one size where the work is one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from receipts.receipt import Parsed

FIRST: Final = "measurement.gradient_norm.first"
_OF_ONE_SEED, _OF_TWO = math.log(1.1), math.log(1.5)


def first_norms(group: Iterable[Parsed]) -> list[float]:
    """Logarithms of the first norms that launches state."""
    stated = [item.stated.get(FIRST) for item in group]
    return [math.log(norm) for norm in stated if norm and math.isfinite(norm) and norm > 0]


def parted(a: Sequence[float], b: Sequence[float], *, one_seed: bool) -> tuple[float, float] | None:
    """The mean norms of both sides, where they are not those of one model, its data and one loss."""
    if not a or not b or abs(fmean(a) - fmean(b)) <= (_OF_ONE_SEED if one_seed else _OF_TWO):
        return None
    return math.exp(fmean(a)), math.exp(fmean(b))
