"""What is one axis away: stored launches that differ from a receipt in one axis, each compared as `compare` does it.

The axis index finds candidates, and the comparison decides. Each is compared with its replicates, witnesses and the
store's noise floor, so that an answer here is the one that `receipts compare` gives for the two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.axes.configuration import configuration
from receipts.axes.inputs import PREFIX
from receipts.judging.findings import refusing
from receipts.judging.rule import Topic
from receipts.judging.rulebook import Rulebook, RuleSet
from receipts.judging.verdict import Comparison, Level, Question
from receipts.questions.comparisons import Comparisons
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.store import Entry, Store


MAX_COMPARED: Final = 10  # configurations of one axis that are compared, the newest
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class JudgedNeighbour:
    """One neighbour: the axis, its newest launch, and the comparison of its launches with the receipt's."""

    axis: str
    entry: Entry
    verdict: Comparison
    reason: str  # what refuses it, or what would settle it: the first finding on the pair, else on a side

    @property
    def ratio(self) -> float | None:
        """The neighbour's number over the receipt's."""
        headline = self.verdict.headline
        return headline.ratio if headline is not None else None

    @property
    def refused(self) -> bool:
        """Whether the two are not one experiment, or a path was left."""
        return self.verdict.status == "rejected"


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A receipt's neighbours, the best first by the metric; ``refused`` are those that cannot be compared with it.

    ``unstated`` are axes that hide neighbours, since nothing fills them: the receipt names no context. ``more``
    are axes of which only the newest configurations were looked at. ``indexed``: the index holds the whole lane.
    """

    of: Parsed
    metric: str
    compared: tuple[JudgedNeighbour, ...]
    refused: tuple[JudgedNeighbour, ...]
    unstated: tuple[str, ...]
    more: tuple[str, ...]
    indexed: bool

    @property
    def by_axis(self) -> dict[str, list[JudgedNeighbour]]:
        """Neighbors by axis; the axis with the best neighbor comes first."""
        groups: dict[str, list[JudgedNeighbour]] = {}
        for item in self.compared:
            groups.setdefault(item.axis, []).append(item)
        return groups

    @property
    def exit_code(self) -> int:
        """0 where there is a neighbour, 3 where there is none that it can be compared with."""
        return 0 if self.compared else 3


def neighbours(
    store: Store,
    parsed: Parsed,
    rulebook: Rulebook,
    *,
    metric: str = metrics.DEFAULT,
    axis: str | None = None,
    limit: int = MAX_COMPARED,
    progress: Progress | None = None,
) -> Neighbourhood:
    """Every stored launch one axis away from a receipt, or in one axis alone; at most ``limit`` configurations an axis.

    ``progress`` is called with the number compared and the total. Raises NotFound for a metric that does not exist.
    """
    metrics.get(metric)
    lane = rulebook.lanes.of(parsed.receipt.run.lane)
    configured = configuration(parsed, lane)
    candidates = store.query.neighbours(parsed, configured, axis, limit)
    comparisons = Comparisons(store, rulebook)
    judged = []
    for done, item in enumerate(candidates, 1):
        # The other is the newest launch of its configuration, and does not represent the others.
        verdict = comparisons.compare([parsed], [store.parsed(item.entry.id)], metric, named=[parsed.id])
        # An input and the leaf that it moved are two parts and one change, which the comparison names.
        one = verdict.counted if item.axis.startswith(PREFIX) and len(verdict.counted) == 1 else (item.axis,)
        judged.append(JudgedNeighbour(one[0], item.entry, verdict, next(reasons(verdict, rulebook.rules), "")))
        if progress is not None:
            progress(done, len(candidates))
    sign = -1.0 if metrics.get(metric).better == "higher" else 1.0
    # Those with a number first, the best before the others, and the newest of equal ones.
    ordered = sorted(
        judged, key=lambda item: (item.ratio is None, sign * (item.ratio or 0.0), -item.entry.started.timestamp())
    )
    numbers = defaultdict[str, set[int]](set)
    for candidate in candidates:
        numbers[candidate.axis].add(candidate.configuration)
    return Neighbourhood(
        of=parsed,
        metric=metric,
        compared=tuple(item for item in ordered if not item.refused),
        refused=tuple(item for item in ordered if item.refused),
        unstated=tuple(sorted(configured.unstated)) if configured.own else (),
        more=tuple(sorted(name for name, held in numbers.items() if len(held) >= limit)),
        indexed=store.query.holds_lane(configured),
    )


def reasons(verdict: Comparison, rules: RuleSet) -> Iterator[str]:
    """What refuses a comparison, or what would settle it: findings on the pair first, then on its sides."""
    questions = (Question.COMPARABLE, Question.PATH, Question.EFFECT)
    order = {"pair": 0, "a": 1, "b": 2}
    opened = [item for item in verdict.findings if item.level is Level.OPEN and item.question in questions]
    opened.sort(key=lambda item: order.get(item.subject, 3))
    for item in refusing(verdict, rules) if verdict.status == "rejected" else opened:
        if item.code in rules.about(Topic.AXES):  # one finding an axis: each of them tells all
            yield f"{item.code} {item.expected}"
        else:
            yield f"{item.code} {item.at}: {item.found}" if item.unjudged else f"{item.code} {item.found}"
