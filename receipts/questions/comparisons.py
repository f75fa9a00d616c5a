"""The recipe of a comparison: both sides with their replicates, the facts, what counts, the noise floor, the verdict.

Whoever asks a store what two configurations differ in asks here, so that one pair has one verdict wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from receipts import metrics
from receipts.axes.lane import Lane
from receipts.judging.compare import Request, choose, compare
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_case
from receipts.judging.rule import Case
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import Comparison, Finding, Lost
from receipts.metrics import Launch, Metric
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.questions.noise import Floor
    from receipts.store import Store

Group = Sequence[Parsed]


class JudgedComparison(NamedTuple):
    """Facts for some launches, and by their ids what rules find of each and how metrics read it."""

    facts: Facts
    known: Mapping[str, tuple[Finding, ...]]
    read: Mapping[str, Launch]


@dataclass(frozen=True)
class Sides:
    """Both sides of a comparison as far as their launches count, what does not, and the request to `compare`."""

    a: list[Parsed]
    b: list[Parsed]
    request: Request

    @property
    def facts(self) -> Facts:
        """What rules may know, the noise floor among it where it is wanted."""
        return self.request.facts or Facts()


class Comparisons:
    """Comparisons by one store and one rule set; what is read or judged for one serves the next.

    Without a store there are no replicates and no noise floor. ``until`` leaves out what ran later. ``witnesses`` are
    receipts beside the store's that show the path of a launch. ``judged`` gives the facts and findings of launches to
    whom has them already.
    """

    def __init__(
        self,
        store: Store | None,
        rulebook: Rulebook,
        *,
        until: datetime | None = None,
        witnesses: Group = (),
        judged: Callable[[Group], JudgedComparison] | None = None,
    ) -> None:
        self._store = store
        self._rulebook = rulebook
        self._until = until
        self._witnesses = witnesses
        self._judged = judged or self._judge
        self._floors: dict[tuple[object, ...], Floor] = {}
        self._known: dict[str, tuple[Finding, ...]] = {}
        self._read: dict[str, Launch] = {}

    def __repr__(self) -> str:
        return f"Comparisons({self._store!r})"

    def compare(
        self, a: Group, b: Group, metric: str = metrics.DEFAULT, named: Collection[str] | None = None, **asked: Any
    ) -> Comparison:
        """B against A, each with its replicates. See `sides`; ``asked`` are further fields of a `Request`."""
        return self.verdict(self.sides(self.pool(a, b), self.pool(b, a), metric, _ids(a, b, named)), **asked)

    def verdict(self, sides: Sides, **asked: Any) -> Comparison:
        """The verdict on two sides. Raises as `compare` does."""
        return compare(sides.a, sides.b, self._rulebook, replace(sides.request, **asked))

    def pool(self, group: Group, other: Group) -> list[Parsed]:
        """A group with the stored launches that replicate it, whether they count or not; none of the other side."""
        if self._store is None or not group:
            return list(group)
        from receipts.questions.replicates import with_replicates

        return with_replicates(self._store, group, self._lane(group[0]), other, self._until)

    def sides(
        self, a: Group, b: Group, metric: str, named: Collection[str] | None = None, *, of_shape: bool = False
    ) -> Sides:
        """Launches of two pools that count for a metric; those ``named`` by id or file do, whatever they are.

        None: all of them are named. A claim may have one side alone. ``of_shape``: those count that held their shape.
        """
        measured = None if of_shape else metrics.get(metric)
        request = self._request([*a, *b], metric, _ids(a, b, named))
        left, lost_a = self._chosen(a, "a", measured, request)
        right, lost_b = self._chosen(b, "b", measured, request)
        facts = self._with_floor(request.facts or Facts(), [side for side in (left, right) if side], metric)
        return Sides(left, right, replace(request, facts=facts, lost=(*lost_a, *lost_b)))

    def samples(self, pool: Group, metric: str, named: Collection[str] = ()) -> list[Parsed]:
        """The launches of one pool that count for a metric."""
        return self._chosen(pool, "a", metrics.get(metric), self._request(pool, metric, named))[0]

    def floor(self, like: Parsed) -> Floor:
        """The noise floor of a receipt's lane and shape class, each read once. Needs a store."""
        from receipts.questions.noise import floor_key, noise_floor

        assert self._store is not None
        key = floor_key(like)
        if key not in self._floors:
            self._floors[key] = noise_floor(self._store, like, self._lane(like), self._until)
        return self._floors[key]

    def _request(self, group: Group, metric: str, named: Collection[str]) -> Request:
        facts, known, read = self._judged(group)
        return Request(metric, facts=facts, known=known, read=read, named=named)

    def _with_floor(self, facts: Facts, groups: Sequence[Group], metric: str) -> Facts:
        if self._store is None or not groups:
            return facts
        from receipts.questions.noise import wants_floor, with_floor

        return with_floor(facts, self.floor(groups[0][0])) if wants_floor(groups, metric) else facts

    def _chosen(
        self, group: Group, side: Literal["a", "b"], metric: Metric | None, request: Request
    ) -> tuple[list[Parsed], tuple[Lost, ...]]:
        return choose(group, side, self._rulebook, metric, request) if group else ([], ())

    def _judge(self, group: Group) -> JudgedComparison:
        """The facts of these launches, and what rules find of each of them under these."""
        if self._store is None:
            facts = replace(Facts.among([*group, *self._witnesses]), now=datetime.now(UTC))
        else:
            facts = self._store.facts(group).beside([*group, *self._witnesses])
        for item in group:
            if item.id not in self._known:
                launch = self._read[item.id] = Launch(item, self._lane(item))
                self._known[item.id] = judge_case(Case(launch, launch.lane, facts), self._rulebook.rules)
        return JudgedComparison(facts, self._known, self._read)

    def _lane(self, parsed: Parsed) -> Lane:
        return self._rulebook.lanes.of(parsed.receipt.run.lane)


def names_one(word: str, group: Group) -> bool:
    """Whether a word names one receipt, by pin or id, and is no label, which may name another one tomorrow."""
    return word.startswith("@") or (len(group) == 1 and group[0].id.startswith(word.lower()))


def _ids(a: Group, b: Group, named: Collection[str] | None) -> Collection[str]:
    return frozenset(item.id for item in (*a, *b)) if named is None else named
