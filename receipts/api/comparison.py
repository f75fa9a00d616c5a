"""Comparisons of B against A: the verdict, with what its page and its JSON show beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Union

from receipts import metrics
from receipts.api.answer import Answer, with_sections
from receipts.api.session import Session, documents
from receipts.base.errors import NotFound, UsageError, every
from receipts.judging.facts import shape_standing
from receipts.judging.verdict import Comparison as Verdict
from receipts.judging.verdict import verdict_to_json
from receipts.judging.witness import names
from receipts.metrics.chip_pressure import Pressure, pressure, pressure_json
from receipts.metrics.chips import account
from receipts.publish.text import number, value

if TYPE_CHECKING:
    from receipts.axes.lane import Grade
    from receipts.judging.rulebook import Rulebook, RuleSet
    from receipts.publish.page import Page
    from receipts.questions.comparisons import Comparisons, Floors, JudgedSides
    from receipts.questions.corroboration import Reproduced
    from receipts.questions.gate import Gate, Required
    from receipts.questions.sides import Asked, Join
    from receipts.receipt import Parsed
    from receipts.store import Decision
    from receipts.store import Store as Opened

Group = Sequence["Parsed"]
Named = Union["Parsed", str]
MAX_RECEIPTS = 2000  # receipts that one word may name: each is read whole


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Answer):
    """What the difference between two numbers means: one sentence, three answers, and the effect with its interval."""

    sides: JudgedSides
    verdict: Verdict
    prove: Callable[[], Verdict]
    decided: Sequence[Decision]
    rules: RuleSet
    reproduced: Mapping[str, Reproduced]
    store: Opened | None = None
    gates: list[tuple[str, Gate]] = field(default_factory=list)  # what was required, at most one

    def require(self, wanted: Required, *, any_standing: bool = False) -> Gate:
        """Hold the comparison against what is required of B: its exit code is that of the gate from then on."""
        from receipts.questions.gate import required

        gate = required(self.verdict, wanted.kind, wanted.margin, any_standing=any_standing)
        margin = f"={100 * wanted.margin:g}%" if wanted.margin is not None else ""
        self.gates[:] = [(f"{wanted.kind}{margin}", gate)]
        return gate

    @property
    def status(self) -> str:
        """``accepted``, ``rejected`` or ``inconclusive``."""
        return self.verdict.status

    @cached_property
    def proved(self) -> Verdict:
        """The verdict, each error with the stated leaves that prove it: seconds where dozens of axes changed."""
        return self.prove()

    @property
    def exit_code(self) -> int:
        """0 accepted, 1 rejected, 3 inconclusive; of a gate 0 it holds, 1 it does not, 3 not enough to say."""
        return self.gates[0][1].exit_code if self.gates else self.verdict.exit_code

    @property
    def always(self) -> Sequence[str]:  # type: ignore[override]  # it follows from the gate
        """What explains the exit code of a gate."""
        return [f"--require {name}: {gate.why}" for name, gate in self.gates]

    @cached_property
    def notes(self) -> Sequence[str]:  # type: ignore[override]  # it follows from both sides
        """What a cold cache costs beside a warm one; of compile_seconds any longer compile."""
        from receipts.questions.answers import payback

        answer = payback(*(side.judged[0].case.launch for side in (self.sides.side_a, self.sides.side_b)))
        own = answer is not None and (answer.of_caches or self.verdict.metric == "compile_seconds")
        return (str(answer),) if own else ()

    @property
    def ratio(self) -> float | None:
        """B over A of the metric; None if it is not known. See `frame` for the interval."""
        headline = self.verdict.headline
        return headline.ratio if headline is not None else None

    @cached_property
    def deciding(self) -> str:
        """The command that would decide an inconclusive pair; empty otherwise."""
        from receipts.questions.commands import of_pair

        return of_pair(self.verdict, self.sides.a[0], self.sides.b[0])

    @cached_property
    def memory(self) -> tuple[list[str], Pressure]:
        """Both sides chip by chip in sentences, and the change of pressure, on which C109 reports too."""
        from receipts.metrics.chip_pressure import compared

        a, b = ([account(item) for item in side] for side in (self.sides.a, self.sides.b))
        change = pressure(a, b, spread=self.sides.facts.chip_spread)
        return compared(a, b, change), change

    @cached_property
    def envelope(self) -> dict[str, str]:
        """Where the shape of each side lies in the lane's envelope; empty if neither has a known place."""
        facts = self.sides.facts
        if not facts.shapes:
            return {}
        places = {side: shape_standing(facts, group[0]) for side, group in (("A", self.sides.a), ("B", self.sides.b))}
        known = any(place.word != "unknown" for place in places.values())
        return {side: str(place) for side, place in places.items()} if known else {}

    @cached_property
    def regimes(self) -> list[tuple[str, str, str]]:
        """How both sides were measured, leaf by leaf, and the regime that each ran in."""
        from receipts.publish.receipt import regime
        from receipts.questions.answers import measured, work

        heads = [side.judged[0] for side in (self.sides.side_a, self.sides.side_b)]
        a, b = (measured(item.submitted.stated) for item in heads)
        ran_a, ran_b = (work(item.case.launch, item.findings, self.rules) for item in heads)
        return [
            *((path, value(a.get(path)), value(b.get(path))) for path in {**a, **b}),
            ("tokens a step a chip", number(ran_a.tokens_per_chip), number(ran_b.tokens_per_chip)),
            ("regime", regime(ran_a), regime(ran_b)),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The verdict (``schema/verdict-1.schema.json``), with memory, envelope and decisions where there are any."""
        memory = pressure_json(self.memory[1])
        beside = {
            "memory": memory if memory["chips"] else None,
            "envelope": {side.lower(): place for side, place in self.envelope.items()},
            "decisions": [item._asdict() for item in self.decided],
            "next": self.deciding,
            "reproduced": {side.lower(): who._asdict() for side, who in self.reproduced.items()},
        }
        for name, gate in self.gates:
            beside["gate"] = {"require": name, "answer": gate.answer, "why": gate.why}
        return {**verdict_to_json(self.proved), **{name: value for name, value in beside.items() if value}}

    def file(self, name: str) -> str | None:
        """The gate as a JUnit report. Raises UsageError where nothing is required."""
        from receipts.publish.comparison import gate_report

        if name != "junit":
            return None
        if not self.gates:
            raise UsageError("--junit reports a gate; add --require")
        required, gate = self.gates[0]
        return gate_report(self.verdict, required, gate.answer, gate.why)

    def page(self, **_views: Any) -> Page:
        """The page that ``receipts compare`` prints."""
        from receipts.publish.comparison import page

        known = {side: str(who) for side, who in self.reproduced.items()}
        beside = (self.decided, self.memory[0], self.envelope, self.deciding, known, self.regimes)
        return with_sections(page(self.verdict, self.rules, *beside), "comparison", self.store, self)

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """A row for each metric: unit, both values, B over A with its 95 % interval, and the effect."""
        return [
            {
                "metric": item.metric,
                "unit": item.unit,
                "a": item.a.value,
                "b": item.b.value,
                "ratio": item.ratio,
                "low": item.effect.low,
                "high": item.effect.high,
                "effect": item.effect.kind,
            }
            for item in self.verdict.results
        ]


def gather(
    session: Session,
    a: Sequence[Named],
    b: Sequence[Named],
    *,
    witnesses: Sequence[Named] = (),
    stored: bool = False,
    **options: Any,
) -> Comparison:
    """Compare as `compared` does, of a session; its store is asked where a word names what it holds, or ``stored``.

    Documents alone need no store. Where somebody chose more than two, those that a store has beside are counted.
    """
    named = [*a, *b]
    alone = not stored and documents([*named, *witnesses])
    return compared(
        None if alone else session.opened(looked_up=named),
        session.rulebook,
        a,
        b,
        witnesses=witnesses,
        beside=session.beside if alone and len(named) > 2 else None,
        floors=None if alone else session.floors,
        **options,
    )


def compared(
    store: Opened | None,
    rulebook: Rulebook,
    a: Sequence[Named],
    b: Sequence[Named],
    *,
    metric: str = metrics.DEFAULT,
    witnesses: Sequence[Named] = (),
    waivers: Mapping[str, str] = MappingProxyType({}),
    study: str | None = None,
    grade: Grade = "typed",
    join: Join = "session",
    beside: Opened | None = None,
    floors: Floors | None = None,
) -> Comparison:
    """Compare two groups of launches: receipts, or words that a store knows them by.

    A label or pattern means the launches that carry it, as far as they count. A launch given as a receipt, id or pin
    represents its side, and the others of its session with the same configuration and label join it; with ``join``
    *only* none does, with *all* every stored launch of the configuration. Every launch is asked for at least the
    ``grade``. The verdict counts stored launches that were left out; ``beside`` is the store to count them in if the
    launches are in none. Raises NotFound, UsageError for a witness that witnesses none of the launches, and as
    `receipts.judging.comparison.compare_sides` does.
    """
    from receipts.questions.comparisons import Comparisons, names_one

    read = iter(every(partial(receipts_of, store), (*witnesses, *a, *b)))
    shown_by = [item for _ in witnesses for item in next(read)]
    matches = [[(word, next(read)) for word in side] for side in (a, b)]
    left, right = ([item for _, group in side for item in group] for side in matches)
    pairs = [pair for side in matches for pair in side]
    own = {item.id for word, group in pairs if not isinstance(word, str) or names_one(word, group) for item in group}
    labelled = {item.id for item in (*left, *right)} - own
    comparisons = Comparisons(store, rulebook, witnesses=shown_by, grade=grade, floors=floors)
    asked = comparisons.asked(left, right, join, labelled)
    if beside is not None:
        asked = asked._replace(left_out=Comparisons(beside, rulebook).asked(left, right, "only").left_out)
    sides = comparisons.sides(asked, metric, own)
    refuse_strangers(shown_by, [*sides.a, *sides.b])

    def judge(*, prove: bool) -> Verdict:
        return comparisons.verdict(sides, waivers=waivers, study=study, prove=prove)

    verdict = judge(prove=False)
    # What repeats one side of one configuration repeats the other.
    apart = verdict.difference.changed or verdict.difference.unknown
    return Comparison(
        sides,
        verdict=verdict,
        prove=partial(judge, prove=True),
        decided=store.published.decisions([item.id for item in (*sides.a, *sides.b)]) if store is not None else [],
        rules=rulebook.rules,
        reproduced=_reproduced(comparisons, store, sides, asked, metric) if apart else {},
        store=store,
    )


def _reproduced(
    comparisons: Comparisons, store: Opened | None, sides: JudgedSides, asked: Asked, metric: str
) -> dict[str, Reproduced]:
    """By side, who else came to its value; asked where launches of its configuration ran on several hosts."""
    known: dict[str, Reproduced] = {}
    for letter, group, history in zip("AB", (sides.a, sides.b), asked.history, strict=True):
        hosts = {item.receipt.run.host for item in group} | {row.host for row in history}
        if store is not None and len(hosts) > 1:
            from receipts.questions.corroboration import reproduced

            head = next((item for item in group if store.entries([item.id])), None)
            who = reproduced(comparisons, store, head, metric) if head is not None else None
            known |= {letter: who} if who is not None else {}
    return known


def receipts_of(store: Opened | None, word: Named) -> list[Parsed]:
    """The receipt itself, or up to `MAX_RECEIPTS` that a word names in a store. Raises NotFound and UsageError."""
    if not isinstance(word, str):
        return [word]
    ids = store.resolve_all(word) if store is not None else []
    if store is None or not ids:
        raise NotFound(f"nothing in the store is called {word!r}; see: receipts list")
    if len(ids) > MAX_RECEIPTS:
        raise UsageError(f"{word!r} names {len(ids):,} receipts, and a side has at most {MAX_RECEIPTS:,}; name fewer")
    return [store.parsed(item) for item in ids]


def refuse_strangers(witnesses: Group, receipts: Group) -> None:
    """Refuse a witness that witnesses none of the receipts that it was given for. Raises UsageError."""
    for item in witnesses:
        if not any(names(item, other) for other in receipts):
            named = item.receipt.run.witness_for
            statement = f"its run.witness_for is {named}" if named else "it states no run.witness_for"
            raise UsageError(f"--witness {item.source}: it witnesses no launch that was given; {statement}")
