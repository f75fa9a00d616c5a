"""Which axes made a configuration worse: a walk over what is stored, and the launches that are needed next.

The walk is delta debugging over the lattice of axes (Zeller, Hildebrandt, IEEE Trans. Software Eng. 28 (2002) 183). A
configuration is a number whose bit n is set where axis n is as the bad side has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts import metrics
from receipts.base.errors import UsageError
from receipts.base.untrusted_text import UNKNOWN
from receipts.plugins.study.chain import Judge
from receipts.plugins.study.lattice import Lattice
from receipts.plugins.study.missing_runs import launches_needed
from receipts.publish.page import Page, Section, points_of, sections_of, table_of
from receipts.publish.readings import ends, signed
from receipts.publish.text import words
from receipts.receipt import Parsed
from receipts.stats.equivalence import MIN_LAUNCHES, SMALLEST_EFFECT, Effect

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.metrics import Metric
    from receipts.plugins.study.chain import BridgePoint
    from receipts.store import Store


Outcome = Literal["good", "bad", "unknown", "fails"]
Ask = Callable[[int], Outcome]
MAX_AXES: Final = 12


class OutcomeUnknown(Exception):
    """The walk needs the outcome of a configuration that is not known."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass(frozen=True, slots=True)
class Explanation:
    """Sets of axes, each of which makes the good side bad, and none of whose parts does.

    A set of two or more acts together. ``inseparable`` are sets of which every part fails, so that they cannot be taken
    apart. ``waiting`` is the configuration whose outcome is needed next, None at the end. ``asked`` are the
    configurations that the walk needed, in order, ends left out.
    """

    sets: tuple[int, ...]
    inseparable: tuple[int, ...]
    waiting: int | None
    asked: tuple[int, ...]


def walk(count: int, ask: Ask, known: Callable[[int], bool] = lambda _: False) -> Explanation:
    """Find what makes the bad side bad among ``count`` axes.

    ``known`` says whether an outcome costs no launch; such configurations are asked first where they divide as well.
    """
    search = _Search((1 << count) - 1, ask, known)
    sets: list[int] = []
    waiting = None
    try:
        left = search.full
        while left and search.outcome(left) == "bad":
            smallest = search.smallest(left)
            sets.append(smallest)
            left &= ~smallest
    except OutcomeUnknown as unknown:
        waiting = unknown.number
    return Explanation(tuple(sets), tuple(search.inseparable), waiting, tuple(search.asked))


class _Search:
    """The outcomes so far. Both ends are known: nothing moved is good, everything moved is bad."""

    def __init__(self, full: int, ask: Ask, known: Callable[[int], bool]) -> None:
        self.full = full
        self.asked: list[int] = []
        self.inseparable: list[int] = []
        self._ask = ask
        self._known = known
        self._outcomes: dict[int, Outcome] = {0: "good", full: "bad"}

    def outcome(self, number: int) -> Outcome:
        """The outcome of a configuration. Raises Waiting where it is not known yet."""
        if number not in self._outcomes:
            answer = self._ask(number)
            if answer != "fails":
                self.asked.append(number)
            if answer == "unknown":
                raise OutcomeUnknown(number)
            self._outcomes[number] = answer
        return self._outcomes[number]

    def smallest(self, bad: int) -> int:
        """A smallest set of moved axes that is bad, within a set that is."""
        needed = 0
        while self.outcome(needed) != "bad":
            # An axis without which what is left is good, or a group that cannot be divided; the good set joins it.
            good, end = needed, bad
            while (end & ~good).bit_count() > 1:
                closer = self._closer(needed, good, end)
                if closer is None:
                    self.inseparable.append(end & ~good)
                    break
                good, end = closer
            needed |= end & ~good
            bad = needed | good
            if needed == bad:
                break
        return needed

    def _closer(self, base: int, good: int, bad: int) -> tuple[int, int] | None:
        """A good and a bad set with fewer axes between them; None if every way to divide these fails."""
        rest = bad & ~good
        for part in self._halves(rest):
            answer = self.outcome(good | part)
            if answer != "fails":
                return (good | part, bad) if answer == "good" else (good, good | part)
        # What fails beside the good axes may run without them.
        alone = (base | part for part in _bits(rest) if self.outcome(base | part) == "bad")
        return next(((base, number) for number in alone), None)

    def _halves(self, rest: int) -> Iterator[int]:
        """Parts of a set, those first that divide it evenly; of these, those whose outcome costs no launch."""
        bits = _bits(rest)
        if len(bits) > MAX_AXES:  # of which there are too many ways: parts in their order, ever smaller
            sizes = [len(bits) >> level for level in range(1, len(bits).bit_length())]
            yield from (sum(bits[at : at + size]) for size in sizes for at in range(0, len(bits), size))
            return
        parts = [
            sum(bit for at, bit in enumerate(bits) if choice >> at & 1) for choice in range(1, (1 << len(bits)) - 1)
        ]
        half = len(bits) / 2.0
        yield from sorted(parts, key=lambda part: (abs(part.bit_count() - half), not self._known(part), part))


def _bits(number: int) -> list[int]:
    return [1 << at for at in range(number.bit_length()) if number >> at & 1]


@dataclass(frozen=True)
class WalkStep:
    """A configuration that the walk needed: the axes that moved, its outcome, and the effect against the good side."""

    moved: tuple[str, ...]
    outcome: Outcome
    effect: Effect | None
    name: str


@dataclass(frozen=True)
class Bisected:
    """What explains the change: sets of axes, each sufficient; a set of several acts together.

    ``plan`` is the document to launch next, ``launches`` times, None at the end. ``avoided`` are configurations that
    fail, with the reason. ``direct`` is the effect of the bad side against the good one.
    """

    axes: tuple[str, ...]
    metric: str
    direct: Effect
    sets: tuple[tuple[str, ...], ...]
    inseparable: tuple[tuple[str, ...], ...]
    steps: tuple[WalkStep, ...]
    avoided: tuple[tuple[str, str], ...]
    plan: Parsed | None
    launches: int
    commits: tuple[str, str] | None

    @property
    def changed(self) -> bool:
        """Whether there is anything to explain."""
        return self.direct.kind in ("faster", "slower")

    @property
    def exit_code(self) -> int:
        """0 explained, 1 nothing to explain, 3 launches are needed."""
        if self.plan is not None:
            return 3
        return 0 if self.changed and self.sets else 1


def bisect(store: Store, good: Parsed, bad: Parsed, rulebook: Rulebook, metric: str = metrics.DEFAULT) -> Bisected:
    """Explain why ``bad`` differs from ``good`` by the fewest axes. Raises UsageError if no axes can be moved."""
    return _Bisection(store, good, bad, rulebook, metrics.get(metric)).run()


class _Bisection:
    """The lattice between two receipts, with what is stored of it."""

    def __init__(self, store: Store, good: Parsed, bad: Parsed, rulebook: Rulebook, metric: Metric) -> None:
        self._metric = metric
        self._judge = Judge(store, rulebook, good, bad, metric)
        verdict = self._judge.compared(self._judge.a, self._judge.b).verdict
        if verdict.difference.unknown:
            axes = ", ".join(item.axis for item in verdict.difference.unknown)
            raise UsageError(f"one side does not state {axes}: state it, so that it can be moved")
        if not verdict.counted:
            raise UsageError("the two differ in no axis; a change between them has another cause: receipts history")
        if len(verdict.counted) > MAX_AXES:
            raise UsageError(
                f"the two differ in {len(verdict.counted)} axes; bisect moves at most {MAX_AXES}: name closer ones"
            )
        self._lattice = Lattice(self._judge, rulebook, verdict.counted)
        self._stored: dict[int, BridgePoint] = {0: self._judge.a, self._lattice.full: self._judge.b}
        self._failing: dict[int, str] = {}
        self._effects: dict[int, Effect] = {}
        # What is stored between the two.
        a, b = self._judge.a.configuration, self._judge.b.configuration
        for item in store.query.mixtures(a, b, sorted(a.apart(b)), self._judge.a.parsed.receipt.run.kind):
            place = self._lattice.place(item.configuration)
            if place is None or place in (0, self._lattice.full):
                continue
            if item.newest is not None:
                self._stored.setdefault(place, self._judge.stored(item.newest.id))
            elif item.failed is not None:
                self._failing.setdefault(place, f"{item.failed.name} ended {item.failed.outcome}")
        delta = self._judge.smallest_effect
        self._delta = SMALLEST_EFFECT if delta is None else delta
        self._direct = self._effect(self._lattice.full)

    def run(self) -> Bisected:
        """Walk as far as the store knows."""
        if self._direct.kind not in ("faster", "slower"):
            again = self._direct.kind != "equivalent"
            return self._answer(Explanation((), (), None, ()), self._judge.a.parsed if again else None)
        return self._answer(walk(len(self._lattice.axes), self._outcome, self._stored.__contains__))

    def _outcome(self, number: int) -> Outcome:
        """Whether a configuration is as bad as the bad side, by an effect verdict and never by one number."""
        if number in self._failing and number not in self._stored:
            return "fails"
        if number not in self._stored:
            # Whether nothing can be launched there; the reason is kept.
            if why := self._lattice.failure(number):
                self._failing[number] = why
            return "fails" if why else "unknown"
        effect = self._effect(number)
        if effect.kind == self._direct.kind:
            return "bad"
        return "good" if effect.kind in ("faster", "slower", "equivalent") else "unknown"

    def _effect(self, number: int) -> Effect:
        """The effect of a configuration against the good side as `compare` gives it, however many axes moved."""
        if number not in self._effects:
            headline = self._judge.compared(self._judge.a, self._stored[number]).verdict.headline
            assert headline is not None  # both ends have the metric, or there would be no bisection
            self._effects[number] = headline.effect
        return self._effects[number]

    def _answer(self, explained: Explanation, again: Parsed | None = None) -> Bisected:
        waiting, plan, launches = explained.waiting, again, 0
        if waiting is not None:
            stated = self._lattice.plan(waiting)
            plan = stated if isinstance(stated, Parsed) else None
            launches = self._launches(waiting)
        elif again is not None:
            launches = self._launches(self._lattice.full)
        # The commits of both sides, where both state one and they differ.
        ends: list[Any] = [end.parsed.stated.get("code.commit") for end in (self._judge.a, self._judge.b)]
        return Bisected(
            axes=self._lattice.axes,
            metric=self._metric.name,
            direct=self._direct,
            sets=tuple(self._lattice.moved(number) for number in explained.sets),
            inseparable=tuple(self._lattice.moved(number) for number in explained.inseparable),
            steps=tuple(
                WalkStep(
                    self._lattice.moved(number),
                    self._outcome(number),
                    self._effect(number) if number in self._stored else None,
                    self._stored[number].name if number in self._stored else self._lattice.label(number),
                )
                for number in explained.asked
            ),
            avoided=tuple((self._lattice.label(number), why) for number, why in self._failing.items()),
            plan=plan,
            launches=launches,
            commits=(str(ends[0]), str(ends[1])) if None not in ends and ends[0] != ends[1] else None,
        )

    def _launches(self, number: int) -> int:
        """How many more launches of a configuration its verdict needs."""
        if number not in self._stored:
            return launches_needed(self._judge.sigma(self._judge.a), self._delta)
        have = len(self._stored[number].launches)
        return max(1, (self._effect(number).needed or MIN_LAUNCHES) - have)


say = words("bisect")


def bisection_page(seen: Bisected) -> Page:
    """The whole page."""
    lead = [say("inseparable", axes=", ".join(item)) for item in seen.inseparable]
    if seen.sets == (("code",),) and seen.commits is not None and seen.plan is None:
        lead.append(say("git", good=seen.commits[0], bad=seen.commits[1]))
    rows = (
        (
            ", ".join(item.moved),
            item.name,
            *((UNKNOWN, UNKNOWN) if (one := item.effect) is None else (signed(one.ratio), ends(one.low, one.high))),
            item.outcome,
        )
        for item in seen.steps
    )
    table = table_of("", "moved… | launch… ^2 | #change | 95 % interval ^1 | outcome", rows)
    sections = sections_of(
        Section("steps", say("steps"), tables=(table,)),
        Section("avoided", say("avoided"), points=points_of(seen.avoided)),
    )
    return Page(
        say("title", n=len(seen.axes)),
        headline=(bisection_headline(seen),),
        lead=tuple(lead),
        sections=sections,
    )


def bisection_headline(seen: Bisected) -> str:
    """The answer in one line."""
    if not seen.changed:
        if seen.plan is not None:
            return say("ends", kind=seen.direct.kind, launches=seen.launches)
        return say("nothing", kind=seen.direct.kind)
    if seen.plan is not None:
        moved = seen.steps[-1].moved if seen.steps else seen.axes
        return say("waiting", axes=", ".join(moved), launches=seen.launches)
    causes = [say("together", axes=", ".join(item)) if len(item) > 1 else item[0] for item in seen.sets]
    if len(causes) == 1:
        return say("explained", change=signed(seen.direct.ratio), axes=causes[0])
    return say("several", change=signed(seen.direct.ratio), n=len(causes), axes="; ".join(causes))
