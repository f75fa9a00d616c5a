"""The recipe of a comparison, in stages: sides as asked, judged, samples kept, noise floor added, verdict.

Every command, report and check that compares configurations uses it, so that a pair has one verdict everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from receipts import metrics
from receipts.axes.lane import Grade, Lane
from receipts.judging.comparison import Request, compare_sides
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_case
from receipts.judging.rule import Case
from receipts.judging.rulebook import Rulebook
from receipts.judging.side import JudgedLaunches, JudgedSide, in_common_sessions, judge_side
from receipts.judging.verdict import Comparison, Finding, Lost
from receipts.metrics import Launch, Metric
from receipts.questions.sides import Asked, Join, StoredLaunches, asked
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.questions.noise import Floor
    from receipts.store import Store
    from receipts.store.query.replicates import AlikeLaunch


Group = Sequence[Parsed]
Floors = dict[tuple[object, ...], "Floor"]


@dataclass(frozen=True)
class JudgedSides:
    """Both sides of a comparison, judged and reduced to the launches that count, and the request to `compare_sides`."""

    side_a: JudgedSide
    side_b: JudgedSide
    request: Request

    @property
    def a(self) -> tuple[Parsed, ...]:
        """Receipts of A that count."""
        return self.side_a.receipts

    @property
    def b(self) -> tuple[Parsed, ...]:
        """Receipts of B that count."""
        return self.side_b.receipts

    @property
    def lost(self) -> tuple[Lost, ...]:
        """Launches of both sides that do not count."""
        return (*self.side_a.lost, *self.side_b.lost)

    @property
    def facts(self) -> Facts:
        """What rules may know, with the noise floor if the comparison needs it."""
        return self.request.facts or Facts()


class Comparisons:
    """Comparisons in one store under one rule set; whatever is read or judged for one serves the next.

    Without a store there are no replicates and no noise floor. ``until`` leaves out later launches. ``witnesses`` are
    receipts, beside those in the store, that show the path of a launch; every launch is asked for at least the
    ``grade``. ``judged`` returns facts, findings and launches if the caller has them already, and ``floors`` are noise
    floors of this state of the store, which several may share.
    """

    def __init__(
        self,
        store: Store | None,
        rulebook: Rulebook,
        *,
        until: datetime | None = None,
        witnesses: Group = (),
        grade: Grade = "typed",
        judged: Callable[[Group], JudgedLaunches] | None = None,
        floors: Floors | None = None,
    ) -> None:
        self._store = store
        self.rulebook = rulebook
        self._until = until
        self._stored = StoredLaunches(store, until) if store is not None else None
        self._witnesses = witnesses
        self._grade = grade
        self._judged = judged or self._judge
        self._floors: Floors = {} if floors is None else floors
        self._findings: dict[str, tuple[Finding, ...]] = {}
        self._launches: dict[str, Launch] = {}

    def __repr__(self) -> str:
        return f"Comparisons({self._store!r})"

    def compare(
        self,
        a: Group,
        b: Group,
        metric: str = metrics.DEFAULT,
        named: Collection[str] | None = None,
        join: Join = "session",
        labelled: Collection[str] = (),
        **options: Any,
    ) -> Comparison:
        """B against A, each as `asked` has it. See `sides`; ``options`` are further fields of a `Request`."""
        named = _ids(a, b) if named is None else named
        return self.verdict(self.sides(self.asked(a, b, join, labelled), metric, named), **options)

    def asked(self, a: Group, b: Group = (), join: Join = "session", labelled: Collection[str] = ()) -> Asked:
        """Both sides with the stored launches that belong to them; see `receipts.questions.sides.asked`."""
        return asked(self._stored, self._lane, a, b, labelled=labelled, join=join)

    def alike(self, one: Parsed) -> Sequence[AlikeLaunch]:
        """Stored launches of a receipt's configuration, the newest first, that may stand beside it."""
        return self._stored.newest(one, self._lane(one)) if self._stored is not None else ()

    def pool(
        self,
        group: Group,
        other: Group = (),
        join: Join = "session",
        few: Callable[[AlikeLaunch], object] | None = None,
    ) -> list[Parsed]:
        """One side alone; see `receipts.questions.sides.asked` for ``few``."""
        return asked(self._stored, self._lane, group, other, join=join, few=few).a

    def sides(
        self, asked: Asked, metric: str, named: Collection[str] | None = None, *, of_shape: bool = False
    ) -> JudgedSides:
        """Two sides, judged, with the launches that count for a metric and those ``named`` by id or file.

        None: all of them are named. A claim may have one side alone. With ``of_shape`` the launches of its shape count.
        Of launches in sessions of their own none counts where both sides share a session.
        """
        named = _ids(asked.a, asked.b) if named is None else named
        measured = None if of_shape else metrics.get(metric)
        known, rules = self._judged([*asked.a, *asked.b]), self.rulebook.rules
        side_a = judge_side(asked.a, "a", self.rulebook, known).samples(measured, rules, named)
        side_b = judge_side(asked.b, "b", self.rulebook, known).samples(measured, rules, named)
        every = side_a, side_b
        if measured is not None and not asked.pooled:
            side_a, side_b = in_common_sessions(side_a, side_b, measured)
        history_a, history_b = (
            (
                *(value for row in rows if (value := row.readings.get(metric)) is not None and value > 0.0),
                *_left_behind(whole, kept, metrics.get(metric)),
            )
            for rows, whole, kept in zip(asked.history, every, (side_a, side_b), strict=True)
        )
        facts = replace(known.facts or Facts(), history_a=history_a, history_b=history_b)
        judged = [side for side in (side_a, side_b) if side.judged]
        if self._store is not None and judged:
            from receipts.questions.noise import wants_floor, with_floor

            if wants_floor([side.launches for side in judged], metric):
                facts = with_floor(facts, self.floor(judged[0].receipts[0]))
        request = Request(metric, facts=facts, named=named, left_out=asked.left_out, pooled=asked.pooled)
        return JudgedSides(side_a, side_b, request)

    def verdict(self, sides: JudgedSides, **options: Any) -> Comparison:
        """The verdict on two sides. Raises as `compare_sides` does."""
        return compare_sides(sides.side_a, sides.side_b, self.rulebook, replace(sides.request, **options))

    def samples(self, pool: Group, metric: str, named: Collection[str] = ()) -> tuple[Parsed, ...]:
        """The launches of one pool that count for a metric."""
        side = judge_side(pool, "a", self.rulebook, self._judged(pool))
        return side.samples(metrics.get(metric), self.rulebook.rules, named).receipts

    def floor(self, like: Parsed) -> Floor:
        """The noise floor of a receipt's lane and shape class, each read once. Needs a store."""
        from receipts.questions.noise import floor_key, noise_floor

        assert self._store is not None
        key = floor_key(like)
        if key not in self._floors:
            self._floors[key] = noise_floor(self._store, like, self._lane(like), self._until)
        return self._floors[key]

    def _judge(self, group: Group) -> JudgedLaunches:
        """The facts of these launches, and the findings on each under them."""
        if self._store is None:
            facts = replace(Facts.among([*group, *self._witnesses]), now=datetime.now(UTC))
        else:
            facts = self._store.query.facts(group).beside([*group, *self._witnesses])
        facts = replace(facts, grade=self._grade)
        for item in group:
            if item.id not in self._findings:
                launch = self._launches[item.id] = Launch(item, self._lane(item))
                self._findings[item.id] = judge_case(Case(launch, launch.lane, facts), self.rulebook.rules)
        return JudgedLaunches(facts, self._findings, self._launches)

    def _lane(self, parsed: Parsed) -> Lane:
        return self.rulebook.lanes.of(parsed.receipt.run.lane)


def _left_behind(whole: JudgedSide, kept: JudgedSide, metric: Metric) -> Iterator[float]:
    """What the launches of a side have of a metric that are of sessions of their own."""
    counted = {item.id for item in kept.receipts} if kept is not whole else ()
    gone = (launch for launch in whole.launches if counted and launch.parsed.id not in counted)
    yield from (value for launch in gone if (value := launch.read(metric).value))


def _ids(a: Group, b: Group) -> frozenset[str]:
    return frozenset(item.id for item in (*a, *b))


def names_one(word: str, group: Group) -> bool:
    """Whether a word names one receipt, by pin or id, and is no label, which may name another one tomorrow."""
    return word.startswith("@") or (len(group) == 1 and group[0].id.startswith(word.lower()))
