"""Facts: what a rule may know beside the receipts that it judges, fetched by the caller before the rules run.

Among them are the shapes that a lane reached. `shape_standing` says where a launch lies in its lane's envelope:
everything up to the largest shape that was sustained repeatedly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from receipts.axes.lane import Grade
from receipts.base.units import counted
from receipts.judging.witness import Side, names, side_of
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.axes.shape import ShapeKey
    from receipts.stats.log_ratio import Sigma


class EarlierFailure(NamedTuple):
    """A launch that failed before the judged one started, and that has its signature. Times are in UTC."""

    id: str
    outcome: str
    phase: str | None
    class_: str | None
    started: datetime


class ReachedShape(NamedTuple):
    """A shape of a lane that launches reached, for the envelope; days and hosts are None if they were not counted.

    ``key`` are its geometry and layout; None are those of the judged receipt.
    """

    chips: int | None
    sequence_length: int | None
    micro_batch: int | None
    depth: int | None
    launches: int
    days: int | None = None
    hosts: int | None = None
    key: ShapeKey | None = None

    def is_of(self, key: ShapeKey, *, any_layout: bool = False) -> bool:
        """Whether it has this geometry and this layout, or with ``any_layout`` this geometry alone."""
        return self.key is None or self.key == key or (any_layout and self.key.geometry == key.geometry)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the caller fetched for the rules: values from a store, never a handle to one.

    ``superseded`` maps a receipt's id to its successor (empty when retracted) and the reason. ``shapes`` are those of
    the receipt's geometry and layout that launches of its lane sustained. ``failures`` are earlier failures of the same
    signature. ``witnesses`` are receipts that stand and name one of the judged launches in ``run.witness_for``,
    ``witnessed`` those that one of the judged names there. ``exact_memory`` names the memory metrics on which the
    store's equal launches always agree, and ``chip_spread`` is how far one chip's live peak lies apart in two of them,
    as a share. ``day`` is the spread of a lane from day to day. ``history_a`` and ``history_b`` are the metric's values
    of stored launches of either configuration that were not asked for. ``now`` is when the receipts are judged. By the
    id of a receipt, ``at_once`` holds the earlier ones that started on its host at its instant, and ``resumed`` the one
    that it says it resumed, and ``replaced`` the earlier ones of its launch, where it replaces any. ``varied`` are the
    axis leaves, by context, of which launches under it were seen with two values. ``kept`` are the digests of the files
    that the store keeps, of those that the receipts list, and ``grade`` is what the caller asks of every receipt.
    ``taken_in`` is when the store first took each receipt in, of those that it holds.
    ``strangers`` are the ids of witnesses that another actor submitted than the launch that they name. ``asked`` tells
    a store that knows of no shape from no store.
    """

    superseded: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    shapes: tuple[ReachedShape, ...] = ()
    failures: tuple[EarlierFailure, ...] = ()
    witnesses: tuple[Parsed, ...] = ()
    witnessed: tuple[Parsed, ...] = ()
    sigma: float | None = None
    sigma_df: float | None = None
    sigma_of: str = ""  # which launches, in words
    largest_spread: float | None = None
    day: Sigma | None = None
    history_a: tuple[float, ...] = ()
    history_b: tuple[float, ...] = ()
    exact_memory: frozenset[str] = frozenset()
    chip_spread: float | None = None
    now: datetime | None = field(default=None, compare=False)
    at_once: Mapping[str, tuple[Parsed, ...]] = field(default_factory=dict)
    resumed: Mapping[str, Parsed] = field(default_factory=dict)
    replaced: Mapping[str, tuple[Parsed, ...]] = field(default_factory=dict)
    varied: Mapping[str, frozenset[str]] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    grade: Grade = "typed"
    taken_in: Mapping[str, datetime] = field(default_factory=dict)
    strangers: frozenset[str] = frozenset()
    sides: Mapping[str, frozenset[Side]] = field(default_factory=dict)
    asked: bool = field(default=False, compare=False)

    @property
    def noise(self) -> Sigma | None:
        """The noise floor that the store's repeats show; None if they were not asked, or show none."""
        from receipts.stats.log_ratio import Sigma

        return Sigma(self.sigma, self.sigma_df, "measured", self.sigma_of) if self.sigma is not None else None

    @classmethod
    def among(cls, receipts: Iterable[Parsed]) -> Facts:
        """What documents say of each other without a store, in the order in which they came.

        One may supersede another of its launch, resume or witness it.
        """
        every = tuple(receipts)
        superseded: dict[str, tuple[str, str]] = {}
        replaced: dict[str, tuple[Parsed, ...]] = {}
        for item in every:
            supersession = item.receipt.run.supersedes
            for other in every if supersession else ():
                own = other.id != item.id and other.receipt.run.launch == item.receipt.run.launch
                if supersession and own and supersession.target in (other.id, other.receipt.run.launch):
                    superseded[other.id] = (item.id, supersession.reason)
                    replaced[item.id] = (*replaced.get(item.id, ()), other)
        # Those before each that started on its host at its instant.
        earlier: dict[tuple[str | None, datetime], list[Parsed]] = {}
        at_once: dict[str, tuple[Parsed, ...]] = {}
        for item in filter(exact_start, every):
            run = item.receipt.run
            known = earlier.setdefault((run.host, run.started), [])
            if others := tuple(other for other in known if other.receipt.run.launch != run.launch):
                at_once[item.id] = others
            known.append(item)
        named = {name: item for item in every for name in (item.id, item.receipt.run.launch)}
        origins = ((item, named.get(item.receipt.run.resumed_from or "")) for item in every)
        resumed = {item.id: origin for item, origin in origins if origin is not None and origin is not item}
        return cls(superseded=superseded, replaced=replaced, at_once=at_once, resumed=resumed).beside(every)

    def beside(self, receipts: Iterable[Parsed]) -> Facts:
        """These facts, and which of some receipts witness one another; one that is superseded witnesses nothing."""
        every = tuple(receipts)
        naming = [one for one in every if one.receipt.run.witness_for is not None]
        if not naming:
            return self
        links = [(one, other) for one in naming for other in every if names(one, other)]
        witnesses = {one.id: one for one, _ in links if one.id not in self.superseded}
        witnessed = {other.id: other for _, other in links}
        sides = {
            one: self.sides.get(one, frozenset())
            | {side_of(other) for item, other in links if item.id == one and other.receipt.run.witness_for is None}
            for one in {item.id for item, _ in links}
        }
        return replace(
            self,
            sides={**self.sides, **sides},
            witnesses=tuple({item.id: item for item in (*self.witnesses, *witnesses.values())}.values()),
            witnessed=tuple({item.id: item for item in (*self.witnessed, *witnessed.values())}.values()),
        )


def exact_start(parsed: Parsed) -> bool:
    """Whether a receipt was measured on a named host, and knows its start as exactly as a clock does."""
    run = parsed.receipt.run
    return run.provenance == "measured" and run.host is not None and run.started_stated is None


REPEATED: Final = 2  # launches that make a ceiling; a single good one is a peak
VALIDATED: Final = 3  # launches that make it a validated one, where they lie this many days or hosts apart
APART: Final = 2
COUNTED: Final = 10  # launches of a shape, at most
CHIPS: Final = "hardware.chips"
MICRO: Final = "batch.micro_batch"
SHAPE: Final = (
    ("sequence_length", "batch.sequence_length"),
    ("micro_batch", MICRO),
    ("depth", "model.depth"),
)
CeilingGrade = Literal["validated", "repeated", "peak"]


def ceiling_grade(launches: int, days: int | None, hosts: int | None) -> CeilingGrade:
    """How well a shape is sustained: *validated* by three launches on two days or hosts, else *repeated* by two.

    One launch reached a *peak*. Days and hosts that were not counted are one.
    """
    if launches >= VALIDATED and max(days or 1, hosts or 1) >= APART:
        return "validated"
    return "repeated" if launches >= REPEATED else "peak"


class ShapeStanding(NamedTuple):
    """Where a shape lies, under which ceiling or beyond which, or why that is unknown."""

    word: Literal["inside", "at", "beyond", "unknown"]
    ceiling: ReachedShape | None = None
    why: str = ""

    def __str__(self) -> str:
        if self.ceiling is None:
            return f"{self.word}: {self.why}" if self.why else self.word
        how = ceiling_grade(self.ceiling.launches, self.ceiling.days, self.ceiling.hosts)
        if self.word == "beyond":
            return f"beyond: the nearest {how} shape is {shape_in_words(self.ceiling)}"
        # How often it was sustained, as far as anybody counted.
        launches, days, hosts = self.ceiling.launches, self.ceiling.days, self.ceiling.hosts
        more = " or more" if launches >= COUNTED else ""
        times = [f"{launches}{more} launch{'es' if launches != 1 else ''}"]
        times += [counted(days, "day")] if days is not None else []
        times += [counted(hosts, "host")] if hosts else []
        preposition = "at" if self.word == "at" else "inside"
        return f"{preposition} a {how} ceiling, {shape_in_words(self.ceiling)}: {', '.join(times)}"


UNKNOWN_STANDING: Final = ShapeStanding("unknown")


def shape_in_words(shape: ReachedShape) -> str:
    """A shape in words."""
    return (
        f"{shape.sequence_length:,} tokens, micro batch {shape.micro_batch}, depth {shape.depth} "
        f"on {shape.chips} chip{'s' if shape.chips != 1 else ''}"
    )


def shape_standing(
    facts: Facts | None,
    parsed: Parsed,
    claimed: Mapping[str, Any] = MappingProxyType({}),
    *,
    key: ShapeKey | None = None,
) -> ShapeStanding:
    """Where its shape lies, and the ceiling that says so: the one that holds it, validated rather than repeated.

    A shape holds another where it ran on as many chips or fewer, and is at least as large in sequence length, micro
    batch and depth. Ceilings of another geometry or layout say nothing of it. Without Facts, without a repeated shape,
    or without the receipt's own shape it is unknown. ``claimed`` are sizes, by leaf paths, at which it did not run
    itself: how the work is cut there, and into which micro batches, is open, so that any layout that held them counts.
    ``key`` is that of its shape, where the caller has it.
    """
    if facts is None or not (facts.asked or facts.shapes):
        return ShapeStanding("unknown", why="no store was asked")
    wanted = {path: claimed.get(path, parsed.stated.get(path)) for path in (CHIPS, *(path for _, path in SHAPE))}
    if claimed and MICRO not in claimed:
        wanted[MICRO] = 0
    repeated = [
        shape
        for shape in facts.shapes
        if shape.launches >= REPEATED and None not in (shape.chips, *_size_of_shape(shape))
    ]
    if repeated and key is None:
        from receipts.axes.shape import shape_key  # a comparison of files has no shapes

        key = shape_key(parsed)
    ceilings = [shape for shape in repeated if key is not None and shape.is_of(key, any_layout=bool(claimed))]
    if not ceilings:
        what = "model" if claimed else "model and layout"
        return ShapeStanding("unknown", why=f"no shape of this lane was sustained by two launches of this {what}")
    missing = [path for path, value in wanted.items() if value is None]
    if missing:
        return ShapeStanding("unknown", why=f"{', '.join(missing)} not stated")
    chips, *sizes = (int(value or 0) for value in wanted.values())
    mine = tuple(sizes)
    holding = [
        shape
        for shape in ceilings
        if (shape.chips or 0) <= chips
        and all(theirs >= own for theirs, own in zip(_size_of_shape(shape), mine, strict=True))
    ]
    if not holding:
        return ShapeStanding("beyond", min(ceilings, key=lambda shape: _beyond(shape, mine, chips)))
    same = any(_size_of_shape(shape) == mine and shape.chips == chips for shape in holding)
    larger = any(_size_of_shape(shape) != mine for shape in holding)
    # A validated ceiling says most; of two that say as much, the one that is nearest.
    best = min(
        holding,
        key=lambda item: (ceiling_grade(item.launches, item.days, item.hosts) != "validated", _size_of_shape(item)),
    )
    return ShapeStanding("at" if same and not larger else "inside", best)


def _beyond(shape: ReachedShape, mine: tuple[int, ...], chips: int) -> tuple[bool, float]:
    """How far a size lies beyond a ceiling: whether that took more chips, then by how many times."""
    sizes = zip(mine, _size_of_shape(shape), strict=True)
    return (shape.chips or 0) > chips, math.prod(max(1.0, own / max(1, theirs)) for own, theirs in sizes)


_size_of_shape: Final[Callable[[ReachedShape], tuple[int, ...]]] = attrgetter(*(name for name, _ in SHAPE))
