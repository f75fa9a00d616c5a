"""Compile time of two launches: what a cold cache costs, and after how many steps a longer compile pays."""

from __future__ import annotations

import math
from dataclasses import dataclass

from receipts.metrics import Launch
from receipts.metrics.readings import amortization

_CACHE = "compile.cache_state"


@dataclass(frozen=True, slots=True)
class Payback:
    """Two launches by their compile time. ``extra`` seconds that the ``longer`` of A and B compiled beyond the other.

    ``caches`` are their cache states, None where not stated. ``worth`` are steady steps of the other side that take as
    long as ``extra``; ``steps`` those after which the faster steps of the longer one have repaid it, None where its
    steps are not faster.
    """

    longer: str
    extra: float
    caches: tuple[str | None, str | None]
    worth: int | None
    steps: int | None
    shares: tuple[str, str]

    @property
    def of_caches(self) -> bool:
        """Whether one side started from a cold cache and the other from a warm one."""
        return set(self.caches) == {"cold", "warm"}

    def __str__(self) -> str:
        cache = dict(zip("AB", self.caches, strict=True))
        why = f" ({cache[self.longer]} cache)" if self.of_caches else ""
        text = f"{self.longer} compiled {self.extra:,.3g} s longer{why}"
        if self.worth is not None:
            text += f", as long as {self.worth:,} steps"
        if self.of_caches:
            text += f"; a warm cache is paid back after {self.worth:,} steps" if self.worth is not None else ""
        elif self.steps is not None:
            text += f"; paid back after {self.steps:,} steps"
        else:
            text += "; never paid back: its steps are not faster"
        return f"{text}. A: {self.shares[0]}. B: {self.shares[1]}."


def payback(a: Launch, b: Launch) -> Payback | None:
    """The launches by compile time; None where one states none, or both compiled equally long."""
    costs = amortization(a), amortization(b)
    if costs[0] is None or costs[1] is None or costs[0].seconds == costs[1].seconds:
        return None
    longer_is_a = costs[0].seconds > costs[1].seconds
    longer, shorter = (a, b) if longer_is_a else (b, a)
    extra = abs(costs[0].seconds - costs[1].seconds)
    gain = (shorter.step_seconds or 0.0) - (longer.step_seconds or 0.0)
    known = bool(shorter.step_seconds and longer.step_seconds)
    return Payback(
        longer="A" if longer_is_a else "B",
        extra=extra,
        caches=(a.stated.get(_CACHE), b.stated.get(_CACHE)),
        worth=math.ceil(extra / shorter.step_seconds) if shorter.step_seconds else None,
        steps=math.ceil(extra / gain) if known and gain > 0.0 else None,
        shares=(str(costs[0]), str(costs[1])),
    )
