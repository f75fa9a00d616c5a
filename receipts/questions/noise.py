"""The noise floor of a lane and shape class, learned from the store's own repeats.

Every two launches with no changed axis are an A/A pair. Launch medians are pooled on the log scale, so that one
launch against one can be judged where the lane has shown how far equal launches lie apart. The same pairs show whether
peak memory is exact there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from glob import escape
from typing import TYPE_CHECKING, Literal

from receipts import metrics
from receipts.axes.lane import Lane, Lanes
from receipts.judging.effect import alike, sessions_of
from receipts.judging.facts import Facts
from receipts.judging.grade import wanted_grade
from receipts.metrics import METRICS, Launch
from receipts.metrics.chip_pressure import largest_difference
from receipts.metrics.registry import Taint
from receipts.questions.sides import groups
from receipts.receipt import Parsed
from receipts.receipt.parse import intact
from receipts.stats.effect import shown_exact
from receipts.stats.equivalence import SMALLEST_EFFECT
from receipts.stats.log_ratio import Sigma
from receipts.stats.noise import GateCheck, SelfCheck, gate_check, largest_spread, pooled_sigma, self_check
from receipts.stats.sessions import DaySpread, order_kind, spreads

if TYPE_CHECKING:
    from receipts.store import Entry, Store

MIN_PAIRS = 2  # of equal launches, before memory is said to be exact
MAX_LAUNCHES = 30  # for one comparison: σ from two dozen degrees of freedom is known to a seventh, and reading costs
MIN_LAUNCHES_OF_FLOOR = 3  # from here on the launches of a side show their own spread
SURVEYED = 20_000
MIN_FREEDOM = 3  # from here on launches of the same context and model stand for their own spread
DeltaSource = Literal["lane", "default"]
_SHAPE = ("hardware.accelerator", "hardware.chips", "batch.sequence_length")  # of launches whose noise is alike


@dataclass(frozen=True, slots=True)
class Floor:
    """σ of log time a step on ``df`` degrees of freedom, from ``groups`` of equal launches (``launches`` in all).

    ``of`` says in words whose spread σ is; ``largest_spread`` is the largest that the lane has shown, and ``day`` the
    spread between its sessions, where launches were repeated in several.
    ``exact_memory`` names the memory metrics on which those launches always agree, and ``chip_spread`` is how far one
    chip's live peak lies apart in two of them, as a share; None where no two of them read their memory chip by chip.
    """

    sigma: float | None
    df: float | None
    largest_spread: float | None
    groups: int
    launches: int
    exact_memory: frozenset[str] = frozenset()
    chip_spread: float | None = None
    of: str = ""
    day: Sigma | None = None

    @property
    def measured(self) -> Sigma | None:
        """The floor as comparisons take it; None where nothing was measured."""
        return Sigma(self.sigma, self.df, "measured", self.of) if self.sigma is not None else None


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """A shape class: launches whose noise is taken to be alike. None is *not stated*."""

    lane: str
    kind: str
    accelerator: str | None
    chips: int | None
    sequence_length: int | None


@dataclass(frozen=True, slots=True)
class LaneNoise:
    """What the store shows of one shape class, out of ``stored`` launches that kept their steps.

    `declared` is the lane's own σ, which nobody measured. `delta` is the smallest effect on step time that matters,
    as the lane's table sets it or by default: no noise moves it. `check` compares equal launches with one another.
    """

    shape: NoiseShape
    stored: int
    floor: Floor
    declared: float | None
    delta: float
    delta_source: DeltaSource
    check: SelfCheck
    gate: GateCheck | None = None


def noise_floor(store: Store, like: Parsed, lane: Lane, until: datetime | None = None) -> Floor:
    """The floor for launches of this receipt's lane and shape class: accelerator, chips and sequence length.

    σ is that of its own context and model, where the store holds enough of their launches, else of the whole class.
    The largest spread is that of the whole lane.
    """
    run, stated = like.receipt.run, like.stated
    of_lane: Mapping[str, object] = {"lane": run.lane, "kind": run.kind}
    wanted = {**of_lane, **{path: stated.get(path) for path in _SHAPE}}
    rows = list(_entries(store, wanted, 5 * MAX_LAUNCHES, until))
    near = _nearness(like)
    rows.sort(key=lambda row: (row.context, row.model) != near)
    equal = _equal(store, rows, lane, MAX_LAUNCHES)
    known = {row.id for row in rows}
    others = [row for row in _entries(store, of_lane, 5 * MAX_LAUNCHES, until) if row.id not in known]
    spread = largest_spread(_locations([*equal, *_equal(store, others, lane, MAX_LAUNCHES)]))
    floor = replace(_floor(equal, rows), largest_spread=spread)
    of = "of the same context and model"
    nearest = _spreads([group for group in equal if _nearness(group[0].parsed) == near], of)
    if nearest.day is not None and (nearest.day.df or 0.0) >= MIN_FREEDOM:
        floor = replace(floor, day=nearest.day)
    if nearest.launch is None or (nearest.launch.df or 0.0) < MIN_FREEDOM:
        return floor
    return replace(floor, sigma=nearest.launch.value, df=nearest.launch.df, of=of)


def floor_key(like: Parsed) -> tuple[object, ...]:
    """What `noise_floor` depends on: receipts of one key have one floor."""
    run, stated = like.receipt.run, like.stated
    return (run.lane, run.kind, *(stated.get(path) for path in _SHAPE), *_nearness(like))


def _nearness(like: Parsed) -> tuple[str | None, str | None]:
    return like.receipt.run.context, like.stated.get("model.name")


def wants_floor(sides: Sequence[Sequence[Launch]], metric: str) -> bool:
    """Whether the store's own repeats must be read: for the spread of few launches, and that of days.

    And for memory always, since they alone show whether it is exact. A receipt without its steps has no effect that
    they could decide.
    """
    if metrics.get(metric).summary == "memory":
        return True
    if not all(item.series for side in sides for item in side):
        return False
    if min(len(side) for side in sides) < MIN_LAUNCHES_OF_FLOOR:
        return True
    return len(sides) == 2 and not in_turns(*sides)


def in_turns(a: Sequence[Launch], b: Sequence[Launch]) -> bool:
    """Whether two sides share a session, and did not run in it one after the other: then no spread of days matters."""
    of_a, of_b = sessions_of(a, b)
    shared = set(of_a) & set(of_b)
    starts = [
        [item.parsed.receipt.run.started.timestamp() for item, own in zip(side, numbers, strict=True) if own in shared]
        for side, numbers in ((a, of_a), (b, of_b))
    ]
    return len(shared) > 1 or (bool(shared) and order_kind(*starts) != "sequential")


def with_floor(facts: Facts, floor: Floor) -> Facts:
    """Facts that carry the floor."""
    return replace(
        facts,
        sigma=floor.sigma,
        sigma_df=floor.df,
        sigma_of=floor.of,
        largest_spread=floor.largest_spread,
        day=floor.day,
        exact_memory=floor.exact_memory,
        chip_spread=floor.chip_spread,
    )


def _exact(equal: Sequence[Sequence[Launch]]) -> Iterator[str]:
    """Memory metrics that are the same to the byte in all equal launches, of which there must be two pairs.

    One pair may agree by chance, where its figures were printed with few digits. A figure that is merely stated, or
    that only some of the launches have, shows nothing.
    """
    for metric in METRICS.values():
        if metric.summary != "memory":
            continue
        readings = [[launch.read(metric) for launch in group] for group in equal]
        values = [
            [reading.value for reading in group if reading.value is not None and reading.source == "memory"]
            for group in readings
        ]
        if sum(max(0, len(group) - 1) for group in values) >= MIN_PAIRS and shown_exact(values):
            yield metric.name


def survey(
    store: Store, lanes: Lanes, lane: str | None = None, gate: tuple[float, int] | None = None
) -> list[LaneNoise]:
    """Every lane and shape class of the store, or of one lane, in the order of their names.

    ``gate`` is somebody's own: the share by which B may be slower, and the launches of each side. Reads at most
    `SURVEYED` launches, the newest.
    """
    wanted = {"lane": lane} if lane is not None else {}
    classes: dict[NoiseShape, list[Entry]] = {}
    for row in _entries(store, wanted, SURVEYED):
        shape = NoiseShape(row.lane, row.kind, row.accelerator, row.chips, row.sequence_length)
        classes.setdefault(shape, []).append(row)
    noises = []
    for shape in sorted(
        classes, key=lambda one: (one.lane, one.kind, one.accelerator or "", one.chips or 0, one.sequence_length or 0)
    ):
        rows, own = classes[shape], lanes.of(shape.lane)
        equal = _equal(store, rows, own, SURVEYED)
        floor, delta = _floor(equal, rows), own.smallest_effect("step_seconds")
        noises.append(
            LaneNoise(
                shape=shape,
                stored=len(rows),
                floor=floor,
                declared=own.sigma,
                delta=SMALLEST_EFFECT if delta is None else delta,
                delta_source="default" if delta is None else "lane",
                check=self_check(_locations(equal)),
                gate=gate_check(_locations(equal), floor.sigma, *gate) if gate is not None else None,
            )
        )
    return noises


def _floor(equal: Sequence[Sequence[Launch]], rows: Iterable[Entry]) -> Floor:
    locations = _locations(equal)
    samples = {row.id for row in rows if row.is_sample(Taint.MEMORY)}
    of_memory = [[item for item in group if item.parsed.id in samples] for group in equal]
    of = "of the same shape class"
    sigma, day = _spreads(equal, of)
    return Floor(
        sigma=sigma.value if sigma else None,
        df=sigma.df if sigma else None,
        largest_spread=largest_spread(locations),
        groups=len(locations),
        launches=sum(len(group) for group in locations),
        of=of if sigma else "",
        day=day,
        exact_memory=frozenset(_exact(of_memory)),
        chip_spread=largest_difference([[item.account.peaks for item in group] for group in of_memory]),
    )


def _spreads(equal: Sequence[Sequence[Launch]], of: str) -> DaySpread:
    """σ between launches of one session, and between sessions; of all together where few were repeated in a session."""
    kept = [[(launch, pace) for launch in group if (pace := launch.pace)] for group in map(_steady, equal)]
    logs = (
        ([math.log(pace) for _, pace in group], sessions_of([launch for launch, _ in group], ())[0]) for group in kept
    )
    shown = spreads((item for item in logs if item[0]), of)
    if shown.launch is not None and (shown.launch.df or 0.0) >= MIN_FREEDOM:
        return shown
    return shown._replace(launch=pooled_sigma(_locations(equal), of))


def _equal(store: Store, rows: Iterable[Entry], lane: Lane, most: int) -> list[list[Launch]]:
    """Launches that replicate one another, a list for each configuration, oldest first.

    Steps that somebody typed show no noise on a lane that asks for receipts that a program wrote.
    """
    rows = list(rows)
    taken_in = {row.id: row.submitted_at for row in rows}
    launches = _launches(store, rows, most)
    asked = (item for item in launches if wanted_grade(item, lane, taken_in[item.id]) == "typed" or intact(item))
    repeated = groups(asked, lane)
    ordered = (sorted(group, key=lambda item: item.receipt.run.started) for group in repeated)
    return [[Launch(item, lane) for item in group] for group in ordered]


def _locations(equal: Iterable[Sequence[Launch]]) -> list[list[float]]:
    """What a step of equal launches cost, in seconds, of those that have a steady segment: a rate follows from it.

    It holds the stalls, so that it varies no less than a typical step does.
    """
    values = [[item.pace for item in _steady(group) if item.pace is not None] for group in equal]
    return [group for group in values if len(group) > 1]


def _steady(group: Sequence[Launch]) -> Sequence[Launch]:
    """Those that have a steady segment, and a pace that was read in one way."""
    return alike([item for item in group if item.step_seconds is not None])[0]


def _launches(store: Store, rows: Iterable[Entry], most: int) -> Iterator[Parsed]:
    """Launches that may have a twin: what the store's columns tell apart is not read."""
    alike: dict[tuple[object, ...], list[Entry]] = {}
    for row in rows:
        key = (row.context, row.micro_batch, row.global_batch, row.depth, row.model)
        alike.setdefault(key, []).append(row)
    taken = 0
    for twins in alike.values():
        if len(twins) < 2:
            continue
        for row in twins[: most - taken]:
            taken += 1
            yield store.parsed(row.id)


def _entries(store: Store, wanted: Mapping[str, object], most: int, until: datetime | None = None) -> Iterator[Entry]:
    """Rows of launches that ended well, were measured here and kept a steady segment of steps, the newest first.

    Those that have these values in these columns, and that are samples of the rate.
    """
    from receipts.store import Condition, Filters
    from receipts.store.entries import unspoiled_conditions as unspoilt

    alike = {**wanted, "outcome": "ok", "provenance": "measured", "rate_source": "steps"}
    # A value is no pattern, whatever signs it has: `A100 [80GB]` is an accelerator.
    conditions = [*unspoilt(Taint.RATE)]
    conditions += [Condition(name, "=", "-" if value is None else escape(str(value))) for name, value in alike.items()]
    if until is not None:
        conditions.append(Condition("started", "<=", until.isoformat()))
    return store.find(Filters(tuple(conditions), limit=most))
