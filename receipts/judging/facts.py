"""Facts: what a rule may know beside the receipts that it judges, fetched by the caller before the rules run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from receipts.axes.lane import Grade
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
    """A shape of a lane that launches reached, for the envelope; days and hosts are None where nobody counted them.

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

    ``superseded`` maps a receipt's id to its successor (empty when retracted) and the reason. ``shapes`` are those
    of the receipt's geometry and layout that launches of its lane sustained. ``failures`` are earlier failures of the
    same signature. ``witnesses`` are receipts that stand and name one of the judged launches in ``run.witness_for``,
    ``witnessed`` those that one of the judged names there. ``exact_memory`` names the memory metrics on which the
    store's equal launches always agree, and ``chip_spread`` is how far one chip's live peak lies apart in two of them,
    as a share. ``day`` is the spread of a lane from day to day. ``history_a`` and ``history_b`` are the metric's values
    of stored launches of either configuration that were not asked for. ``now`` is when the receipts are judged. By the
    id of a receipt, ``at_once`` holds the earlier ones that started on its host at its instant, and ``resumed`` the one
    that it says it resumed. ``varied`` are the axis leaves, by context, of which launches under it were seen with two
    values. ``kept`` are the digests of the files that the store keeps, of those that the receipts list, and ``grade``
    is what the caller asks of every receipt. ``strangers`` are the ids of witnesses that another actor submitted than
    the launch that they name. ``asked`` tells a store that knows of no shape from no store.
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
    varied: Mapping[str, frozenset[str]] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    grade: Grade = "typed"
    strangers: frozenset[str] = frozenset()
    sides: Mapping[str, frozenset[Side]] = field(default_factory=dict)
    asked: bool = field(default=False, compare=False)

    @property
    def noise(self) -> Sigma | None:
        """The noise floor that the store's repeats show; None where they were not asked, or show none."""
        from receipts.stats.log_ratio import Sigma

        return Sigma(self.sigma, self.sigma_df, "measured", self.sigma_of) if self.sigma is not None else None

    @classmethod
    def among(cls, receipts: Iterable[Parsed]) -> Facts:
        """What documents say of each other without a store: one may supersede another of its launch, or witness it."""
        every = tuple(receipts)
        superseded: dict[str, tuple[str, str]] = {}
        for item in every:
            supersession = item.receipt.run.supersedes
            for other in every if supersession else ():
                own = other.id != item.id and other.receipt.run.launch == item.receipt.run.launch
                if supersession and own and supersession.target in (other.id, other.receipt.run.launch):
                    superseded[other.id] = (item.id, supersession.reason)
        return cls(superseded=superseded, at_once=_at_once(every), resumed=_resumed(every)).beside(every)

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


def _at_once(every: Sequence[Parsed]) -> dict[str, tuple[Parsed, ...]]:
    """Of receipts in the order in which they came: those before each that started on its host at its instant."""
    earlier: dict[tuple[str | None, datetime], list[Parsed]] = {}
    others_by_id = {}
    for item in filter(exact_start, every):
        run = item.receipt.run
        known = earlier.setdefault((run.host, run.started), [])
        others = tuple(other for other in known if other.receipt.run.launch != run.launch)
        if others:
            others_by_id[item.id] = others
        known.append(item)
    return others_by_id


def _resumed(every: Sequence[Parsed]) -> dict[str, Parsed]:
    """Of receipts by id: the launch that each says it resumed, where it is one of them."""
    named = {name: item for item in every for name in (item.id, item.receipt.run.launch)}
    wanted = ((item, item.receipt.run.resumed_from) for item in every)
    return {item.id: named[name] for item, name in wanted if name in named and named[name] is not item}
