"""One configuration on a bridge: the receipt that speaks for it, and the launches that every hop on it shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from receipts.axes.configuration import Configuration, configuration
from receipts.judging.effect import noise_of
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import Comparison
from receipts.metrics import Launch, Metric
from receipts.questions.bridge.gain import HopGain, Values, exact, gain, together, values
from receipts.questions.comparisons import Comparisons
from receipts.questions.noise import FEWEST_LAUNCHES
from receipts.receipt import Parsed
from receipts.stats.log_ratio import Sigma

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.store import Store


@dataclass(frozen=True)
class BridgePoint:
    """A configuration with the receipt that speaks for it, and its launches that count, that one first.

    ``pool`` are all of its launches, of which those of the ids ``named`` count whatever they are.
    """

    configuration: Configuration
    parsed: Parsed
    launches: tuple[Parsed, ...]
    values: Values
    pool: tuple[Parsed, ...]
    named: tuple[str, ...]

    @property
    def name(self) -> str:
        """What to call it in a sentence."""
        return self.parsed.name


class JudgedHop(NamedTuple):
    """One point compared with another: the verdict as `receipts compare` gives it, and the gain by their launches."""

    verdict: Comparison
    gain: HopGain | None


class Judge:
    """Compares points as `receipts compare` does with a store. What is read for a point is read once."""

    def __init__(self, store: Store, rulebook: Rulebook, a: Parsed, b: Parsed, metric: Metric) -> None:
        self.store = store
        self._metric = metric
        self._comparisons = Comparisons(store, rulebook)
        self.lane: Lane = rulebook.lanes.of(a.receipt.run.lane)
        self.a = self.point(a, [b])
        self.b = self.point(b, [a])

    def __repr__(self) -> str:
        return f"Judge({self.a.name!r}, {self.b.name!r})"

    @property
    def smallest_effect(self) -> float | None:
        """δ of the metric, as the lane sets it."""
        return self.lane.smallest_effect(self._metric.name)

    def point(self, parsed: Parsed, others: Sequence[Parsed], *, named: bool = True) -> BridgePoint:
        """The point of a receipt. Launches of the others are none of it; ``named``: it represents the point itself."""
        own = (parsed.id,) if named else ()
        pool = self._comparisons.pool([parsed], others)
        return self._of(pool, self._comparisons.samples(pool, self._metric.name, own), own)

    def _of(self, pool: Sequence[Parsed], group: Sequence[Parsed], named: tuple[str, ...]) -> BridgePoint:
        point_values = values([Launch(item, self.lane) for item in group], self._metric)
        return BridgePoint(configuration(group[0], self.lane), group[0], tuple(group), point_values, tuple(pool), named)

    def stored(self, receipt_id: str) -> BridgePoint:
        """The point of a stored receipt between the two ends."""
        return self.point(self.store.parsed(receipt_id), [self.a.parsed, self.b.parsed], named=False)

    def compared(self, a: BridgePoint, b: BridgePoint) -> JudgedHop:
        """B judged against A."""
        verdict = self._comparisons.compare([a.parsed], [b.parsed], self._metric.name, (*a.named, *b.named))
        return JudgedHop(verdict, self.gain(a, b))

    def gain(self, a: BridgePoint, b: BridgePoint) -> HopGain | None:
        """What B has over A by their launches."""
        if self._exact(a):
            return exact(a.values, b.values)
        return gain(a.values, b.values, self._sigma(a, (a.values, b.values)))

    def _exact(self, a: BridgePoint) -> bool:
        """Whether equal launches of the store always agree on the metric."""
        return self._metric.summary == "memory" and self._metric.name in self._comparisons.floor(a.parsed).exact_memory

    def together(self, neither: BridgePoint, one: BridgePoint, other: BridgePoint, both: BridgePoint) -> HopGain | None:
        """What two axes have together over the product of both apart."""
        corners = (neither.values, one.values, other.values, both.values)
        return together(corners, self._sigma(neither, corners))

    def _sigma(self, a: BridgePoint, sides: Sequence[Values]) -> Sigma | None:
        """The noise floor where these launches do not show a spread of their own: reading it costs."""
        own = all(len(item.logs) >= FEWEST_LAUNCHES for item in sides) and any(
            len(set(item.logs)) > 1 for item in sides
        )
        return None if own else self.sigma(a)

    def sigma(self, a: BridgePoint) -> Sigma | None:
        """The noise floor; it is read for metrics that have one alone."""
        has_floor = self._metric.summary in ("step", "rate")
        return noise_of(self._metric, self.lane, self._comparisons.floor(a.parsed).measured if has_floor else None)
