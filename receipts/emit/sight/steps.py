"""Where a step ends: at the optimizer that steps least often, and of several such at the last one.

A loop has no mark of its own. Whichever way it is written, optimizers step: torch calls a global hook after each. With
one optimizer each call ends a step. A GAN has two of which one may step several times; Muon goes with an AdamW; an
optimizer for each parameter steps in the backward pass. The one that steps least often, and last, is the anchor.
"""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Calls of the busiest optimizer after which the others are taken for idle: a critic trains five times as often, or so.
PATIENCE = 8


class Moment:
    """What there was when an optimizer had stepped, counted from the start."""

    __slots__ = ("backwards", "norms", "totals")

    def __init__(self, backwards: int = 0, norms: int = 0, totals: tuple[tuple[int, int, int], ...] = ()) -> None:
        self.backwards = backwards
        self.norms = norms
        self.totals = totals

    def same(self, other: Moment) -> bool:
        """Whether nothing was computed between the two, as far as that is seen at all."""
        seen = self.backwards or any(map(any, self.totals))
        return bool(seen) and self.backwards == other.backwards and self.totals == other.totals

    def __repr__(self) -> str:
        return f"Moment({self.backwards} backward passes, {self.totals})"


class Anchor:
    """Calls of optimizers, and which of them end steps; ``ended`` is called with the time of each and what it was told.

    ``known`` are the optimizers that the job holds: with one of them, the first call decides. Until it is decided calls
    are kept, and then told in their order.
    """

    def __init__(self, ended: Callable[[int, Any], None]) -> None:
        self._ended = ended
        self._waiting: list[tuple[int, int, Any]] = []
        self._living: dict[int, Callable[[], Any]] = {}
        self.counts: dict[int, int] = {}
        self.anchor = 0
        self.late = 0  # steps that had ended when it was decided

    def known(self, optimizers: list[Any]) -> None:
        """Take note of optimizers that may step."""
        for optimizer in optimizers:
            self.counts.setdefault(id(optimizer), 0)
            self._living.setdefault(id(optimizer), weakref.ref(optimizer))

    def stepped(self, optimizer: Any, now: int, given: Any) -> None:
        """An optimizer has made its step."""
        key = id(optimizer)
        if key == self.anchor:
            self.counts[key] += 1
            self._ended(now, given)
            return
        if key not in self.counts:
            self.known([optimizer])
        self.counts[key] += 1
        if not self.anchor:
            self._waiting.append((now, key, given))
            self._decide(key)

    def _decide(self, latest: int) -> None:
        counts = {key: count for key, count in self.counts.items() if count or self._living[key]() is not None}
        if len(counts) > 1 and max(counts.values()) < PATIENCE and min(counts.values()) < 2:
            return
        stepping = {key: count for key, count in counts.items() if count}
        fewest = [key for key, count in stepping.items() if count == min(stepping.values())]
        order = [key for _, key, _ in self._waiting]
        self.anchor = latest if latest in fewest else max(fewest, key=lambda key: len(order) - order[::-1].index(key))
        waiting, self._waiting = self._waiting, []
        self.late = order.count(self.anchor)
        for now, key, given in waiting:
            if key == self.anchor:
                self._ended(now, given)

    def give_up(self) -> None:
        """Decide with what there is: the run has ended."""
        if not self.anchor and self._waiting:
            self.counts = {key: count for key, count in self.counts.items() if count}
            self._decide(self._waiting[-1][1])

    def optimizers(self) -> list[Any]:
        """The optimizers that stepped and are still there, the anchor first."""
        keys = sorted((key for key, count in self.counts.items() if count), key=lambda key: key != self.anchor)
        return [living for key in keys if (living := self._living[key]()) is not None]
