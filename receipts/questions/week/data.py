"""What a report says of its lanes, as values: no text that a template could not choose, each number beside its receipt.

Units are those of the names (`_bytes`, `_seconds`); a rate is in tokens a second a chip, an MFU a fraction. None is
*not known*, and is printed as ``~``. `Ref` is what a report calls a receipt, and `Cut` the first of many values with
how many more there are, since a page would drown in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from receipts import metrics
from receipts.axes.lane import Lane
from receipts.base.untrusted_text import UNKNOWN, plain

if TYPE_CHECKING:
    from receipts.questions.answers import AnsweredQuestion, StepWork
    from receipts.questions.week.links import LaunchGroup
    from receipts.receipt import Parsed
    from receipts.stats.noise import SelfCheck
    from receipts.store import Entry


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Cut(Generic[T_co]):
    """The values that are shown, and how many ``more`` there are."""

    shown: tuple[T_co, ...] = ()
    more: int = 0

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.shown) + self.more

    def map(self, show: Callable[[T_co], T]) -> Cut[T]:
        """The same with every value as another."""
        return Cut(tuple(map(show, self.shown)), self.more)

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.shown)

    def __len__(self) -> int:
        return len(self.shown)

    def __getitem__(self, place: Any) -> Any:
        return self.shown[place]


def cut(values: Iterable[T_co], most: int) -> Cut[T_co]:
    """The first so many."""
    every = tuple(values)
    return Cut(every[:most], max(0, len(every) - most))


@dataclass(frozen=True, slots=True)
class Ref:
    """A receipt, by id and by what people call it."""

    id: str
    name: str

    @property
    def short(self) -> str:
        """Enough of the id to find it by."""
        return self.id[:12]

    @property
    def anchor(self) -> str:
        """Where the appendix describes it."""
        return f"r-{self.id[:12]}"


def ref_of(item: Parsed | Entry) -> Ref:
    """What to call a receipt, from its document or its row."""
    return Ref(item.id, item.name)


def refs_in(value: Any) -> Iterator[Ref]:
    """Every receipt that the values of a page name, in their order."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, tuple | Mapping):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from refs_in(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from refs_in(getattr(value, field.name))


MAX_NAME: Final = 64  # signs of a part of a series' name
STANDINGS: Final = ("proven", "unsettled", "peak", "reported")


@dataclass(frozen=True, slots=True)
class WeekCounts:
    """Receipts that ran in the week. Those superseded since stand apart: they are judged no more."""

    submitted: int
    valid: int
    open: int
    invalid: int
    superseded: int


@dataclass(frozen=True, slots=True)
class FrontierMove:
    """What the interval did to the best of a shape. `state` is *new* where none was valid before, *same*, *better*, or
    *equal* where another configuration leads, and a comparison shows no difference that matters.

    `was` stands for the configuration that led when the interval began. `ratio` is now over then, with `low` to `high`
    (95 %, unadjusted) where a comparison of the two gives an interval, else of the two levels. `comparable` is
    the answer of a comparison of the two and `moved` its counted axes; None where both ran one configuration.
    """

    state: str
    was: Ref | None
    was_rate: float | None
    ratio: float | None
    low: float | None
    high: float | None
    comparable: str | None
    moved: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BestResult:
    """The best result of one shape. `shape` is its geometry and the layout that it used, by their digests; `axes` are
    those of the model and `layout` the degrees, both in words. `answers` are the five questions with their answers.

    `standing` is *proven* (launches that agree within 5 %), *unsettled* (launches that do not yet), *peak* (one launch,
    or the best of several), or *reported* (stated, not witnessed). The rate of the first two is the geometric mean of
    `launches` in so many `sessions`, `low` to `high` its 95 % interval, and `fastest` the best of them. `target` is the
    lane's target that the shape is. `in_week` tells whether it ran in the week or stands from earlier; `open_questions`
    are the codes for which a stated result is no witnessed one. `change` is that since the interval began; None for a
    stated result or a peak. `lineage` says which of the lane's known versions it ran on; empty where it names none.
    `repeatable` says that its receipt states everything that another launch like it takes.
    """

    receipt: Ref
    answers: tuple[AnsweredQuestion, ...]
    shape: str
    family: str | None
    model: str | None
    axes: str
    layout: str
    accelerator: str | None
    sequence_length: int | None
    chips: int | None
    standing: str
    target: str | None
    is_substrate: bool
    tokens_per_second_per_chip: float | None
    rate_source: str
    mfu: float | None
    mfu_basis: str | None
    peak_bytes: float | None
    in_week: bool
    provenance: str
    open_questions: tuple[str, ...]
    work: StepWork
    change: FrontierMove | None
    launches: int | None
    sessions: int | None
    low: float | None
    high: float | None
    fastest: Ref | None
    fastest_rate: float | None
    micro_batch: int | None
    depth: int | None
    lineage: str
    repeatable: bool

    @property
    def rank(self) -> tuple[int, float]:
        """Where it stands among results: by how well it is shown, then by what it is at least."""
        floor = self.low if self.low is not None else self.tokens_per_second_per_chip or 0.0
        return STANDINGS.index(self.standing), -floor

    def names(self, beside: Iterable[BestResult]) -> tuple[str, ...]:
        """Family and name; the axes as well where these do not tell it from another shape, or attention is sparse."""
        named = tuple(dict.fromkeys(filter(None, (self.family, self.model))))
        alike = any(
            other.axes != self.axes and (other.family, other.model) == (self.family, self.model) for other in beside
        )
        by_model = self.model and not alike and "sparse attention" not in self.axes
        return named if by_model or not self.axes else (*named, self.axes)

    def series(self, beside: Iterable[BestResult]) -> str:
        """What a series of such results is called; the start of its digest where words do not tell it from another."""
        named = [plain(part, MAX_NAME) for part in self.names(beside)] or ["model not stated"]
        machine = plain(self.accelerator, MAX_NAME) if self.accelerator else UNKNOWN
        chips = f"{self.chips:,}" if self.chips is not None else UNKNOWN
        alike = {other.shape[:16] for other in beside if other.names(beside) == self.names(beside)}
        return " · ".join([*named, f"{chips} × {machine}", *([self.shape[:4]] if len(alike) > 1 else [])])


@dataclass(frozen=True, slots=True)
class Moved:
    """A leaf whose values differ between two receipts, in words."""

    axis: str
    path: str
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a comparison is refused or open: a rule, what it found on which side (empty: on the pair), and what to do."""

    code: str
    name: str
    side: str
    found: str
    do: str


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """A comparison of B against A, under the present rules and Holm's adjustment over the report.

    `ratio` is B over A of the metric, `low` to `high` its 95 % interval, unadjusted, `delta` the largest change that
    is none that matters. `counted` are the axes that
    moved and count. `stated` says that the two numbers are as stated, not measured. `next` is the command that would
    decide an inconclusive one.
    """

    a: tuple[Ref, ...]
    b: tuple[Ref, ...]
    metric: str
    status: str
    comparable: str
    path: str
    effect: str
    counted: tuple[str, ...]
    moved: tuple[Moved, ...]
    unknown: tuple[str, ...]
    ratio: float | None
    low: float | None
    high: float | None
    delta: float | None
    stated: bool
    why: str
    reasons: tuple[Reason, ...]
    next: str = ""

    @property
    def word(self) -> str:
        """The effect in a word that fits its metric."""
        return metrics.effect_word(metrics.get(self.metric), self.effect)


@dataclass(frozen=True, slots=True)
class AwaitedRule:
    """What `pairs` of a lane's undecided comparisons wait for: a rule, and what it asks to be done."""

    code: str
    do: str
    pairs: int


@dataclass(frozen=True, slots=True)
class RefusedPairs:
    """The rule that refuses `pairs` of a lane's comparisons before all others, with what it found of the first.

    The code is empty where no rule does. `axes` are those of the first that changed together.
    """

    code: str
    name: str
    found: str
    axes: tuple[str, ...]
    pairs: int
    a: Ref
    b: Ref


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise floor of a lane: σ of a launch's log step time, from launches that differ in nothing.

    `sigma` is None where no two such launches keep their steps. `declared` is what the lane's file says meanwhile.
    """

    sigma: float | None
    degrees: float | None
    groups: int
    launches: int
    largest_spread: float | None
    check: SelfCheck
    declared: float | None


@dataclass(frozen=True, slots=True)
class LaneWeek:
    """One lane.

    `frontier` has the best result of each shape, or a peak where none is repeated; `peaks` are launches of other
    configurations that were faster. `left_out` are launches that would be among them, how many by the reason.
    `targets` names the shapes that the lane's claims must hold at.
    `waiting` and `refusals` count over every comparison, those that are left out as well. `undecided` shapes have no
    valid result among those of their launches that were looked at. `configurations` ran in
    the interval; `uncompared` of them were not compared with anything, since a lane has only so many comparisons.
    """

    name: str
    title: str
    version: int
    counts: WeekCounts
    frontier: Cut[BestResult]
    peaks: Cut[BestResult]
    undecided: int
    left_out: tuple[tuple[str, int], ...]
    targets: tuple[str, ...]
    stated: Cut[BestResult]
    accepted: Cut[JudgedPair]
    inconclusive: Cut[JudgedPair]
    waiting: tuple[AwaitedRule, ...]
    refused: Cut[JudgedPair]
    refusals: tuple[RefusedPairs, ...]
    configurations: int
    uncompared: int
    noise: Noise

    @property
    def ranked(self) -> tuple[BestResult, ...]:
        """Its results, the proven ones first, each by what it is at least."""
        return tuple(sorted((*self.frontier, *self.peaks, *self.stated), key=lambda item: item.rank))

    @property
    def leaders(self) -> tuple[BestResult, ...]:
        """At the lane's targets, or at any shape but a substrate where it has none: the best proven result, what was
        faster once, and the best reported; the best of what there is where none is proven."""
        return leaders_of(self.ranked, self.targets)

    @property
    def moved(self) -> tuple[BestResult, ...]:
        """Results that the interval brought in the place of another: no first of its kind, and no equal."""
        proven = (item for item in self.frontier if item.standing == "proven")
        return tuple(item for item in proven if item.change is not None and item.change.state == "better")

    @property
    def first(self) -> tuple[BestResult, ...]:
        """Results of shapes that had none before the interval."""
        return tuple(item for item in self.frontier if item.change is not None and item.change.state == "new")

    @property
    def alone(self) -> tuple[BestResult, ...]:
        """Results of the interval that nobody repeated, or whose launches do not agree; others were named then."""
        return tuple(item for item in (*self.frontier, *self.peaks) if item.in_week and item.standing != "proven")

    @property
    def waits(self) -> tuple[str, ...]:
        """Rules that every reported result waits for: a notebook's rows lack the same facts one and all."""
        codes = self.stated[0].open_questions if self.stated else ()
        return tuple(code for code in codes if all(code in item.open_questions for item in self.stated))


def leaders_of(ranked: Iterable[BestResult], targets: Sequence[str]) -> tuple[BestResult, ...]:
    """What leads among the results of a lane that has these targets; see `LaneWeek.leaders`."""
    led = [item for item in ranked if item.tokens_per_second_per_chip is not None and not item.is_substrate]
    led = [item for item in led if item.target is not None or not targets]
    shown = [item for item in led if item.standing != "reported"]
    first = shown[:1]
    best = (first[0].tokens_per_second_per_chip or 0.0) if first else 0.0
    faster = (item for item in shown if item.standing == "peak" and item not in first)
    faster = (item for item in faster if (item.tokens_per_second_per_chip or 0.0) > best)
    reported = (item for item in led if item.standing == "reported")
    return (*first, *islice(faster, 1), *islice(reported, 1))


@dataclass(frozen=True, slots=True)
class Described:
    """A receipt of the appendix. `superseded_by` is the successor's id, empty where it was retracted.

    `rate` is in tokens a second a chip; the numbers are None where nobody states them or an error spoils them.
    `lineage` says which of its lane's known versions it ran on; empty where the lane names none.
    """

    receipt: Ref
    launch: str
    lane: str
    kind: str
    outcome: str
    provenance: str
    status: str
    path: str
    topology: str
    lineage: str
    rate: float | None
    step_seconds: float | None
    peak_bytes: float | None
    started: str
    finished: str | None
    context: str | None
    notes: tuple[tuple[str, str], ...]
    errors: tuple[str, ...]
    superseded_by: str | None


def noise(configurations: Iterable[LaunchGroup], lane: Lane) -> Noise:
    """σ of log step time, pooled over configurations of two and more launches that keep their steps."""
    from receipts.stats.noise import largest_spread, pooled_sigma, self_check

    groups = []
    for configuration in configurations:
        if configuration.head.rate_status == "invalid":
            continue
        steps = (item.entry.step_seconds for item in configuration.launches if item.kept_steps)
        values = list(dict.fromkeys(value for value in steps if value is not None))  # a copy is no second launch
        if len(values) > 1:
            groups.append(values)
    sigma, check = pooled_sigma(groups), self_check(groups)
    return Noise(
        sigma=sigma.value if sigma else None,
        degrees=sigma.df if sigma else None,
        groups=len(groups),
        launches=sum(map(len, groups)),
        largest_spread=largest_spread(groups),
        check=check,
        declared=lane.sigma,
    )


def overall(lanes: Sequence[LaneWeek]) -> str:
    """The self-check over all lanes."""
    from receipts.stats.noise import combined_checks

    total = combined_checks(lane.noise.check for lane in lanes)
    if not total.pairs:
        return "No two groups of equal launches were read: there is nothing to check against."
    return f"Over all lanes: {total.why}."
