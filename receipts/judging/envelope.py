"""Where a launch lies in its lane's envelope: everything up to the largest shape that was sustained repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from receipts.judging.facts import Facts, ReachedShape
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.axes.shape import ShapeKey

REPEATED: Final = 2  # launches that make a ceiling; a single good one is a peak
VALIDATED: Final = 3  # launches that make it a validated one, where they lie this many days or hosts apart
APART: Final = 2
COUNTED: Final = 10  # more launches of a shape than this nobody counts
CHIPS: Final = "hardware.chips"
MICRO: Final = "batch.micro_batch"
SHAPE: Final = (
    ("sequence_length", "batch.sequence_length"),
    ("micro_batch", MICRO),
    ("depth", "model.depth"),
)
Grade = Literal["validated", "repeated", "peak"]


def grade(launches: int, days: int | None, hosts: int | None) -> Grade:
    """How well a shape is sustained: *validated* by three launches on two days or hosts, else *repeated* by two.

    One launch reached a *peak*. Days and hosts that nobody counted are one.
    """
    if launches >= VALIDATED and max(days or 1, hosts or 1) >= APART:
        return "validated"
    return "repeated" if launches >= REPEATED else "peak"


class ShapeStanding(NamedTuple):
    """Where a shape lies, under which ceiling or beyond which, or why nobody can tell."""

    word: Literal["inside", "at", "beyond", "unknown"]
    ceiling: ReachedShape | None = None
    why: str = ""

    def __str__(self) -> str:
        if self.ceiling is None:
            return f"{self.word}: {self.why}" if self.why else self.word
        how = grade(self.ceiling.launches, self.ceiling.days, self.ceiling.hosts)
        if self.word == "beyond":
            return f"beyond: the nearest {how} shape is {shown(self.ceiling)}"
        preposition = "at" if self.word == "at" else "inside"
        return f"{preposition} a {how} ceiling, {shown(self.ceiling)}: {counted(self.ceiling)}"


UNKNOWN: Final = ShapeStanding("unknown")


def shown(shape: ReachedShape) -> str:
    """A shape in words."""
    return (
        f"{shape.sequence_length:,} tokens, micro batch {shape.micro_batch}, depth {shape.depth} "
        f"on {shape.chips} chip{'s' if shape.chips != 1 else ''}"
    )


def counted(shape: ReachedShape) -> str:
    """How often it was sustained, as far as anybody counted."""
    more = " or more" if shape.launches >= COUNTED else ""
    parts = [f"{shape.launches}{more} launch{'es' if shape.launches != 1 else ''}"]
    parts += [f"{shape.days} day{'s' if shape.days != 1 else ''}"] if shape.days is not None else []
    parts += [f"{shape.hosts} host{'s' if shape.hosts != 1 else ''}"] if shape.hosts else []
    return ", ".join(parts)


def standing(
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
    repeated = [shape for shape in facts.shapes if shape.launches >= REPEATED and _whole(shape)]
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
    holding = [shape for shape in ceilings if _holds(shape, mine, chips)]
    if not holding:
        return ShapeStanding("beyond", _nearest(ceilings, mine, chips))
    same = any(_size(shape) == mine and shape.chips == chips for shape in holding)
    larger = any(_size(shape) != mine for shape in holding)
    # A validated ceiling says most; of two that say as much, the one that is nearest.
    best = min(holding, key=lambda item: (grade(item.launches, item.days, item.hosts) != "validated", _size(item)))
    return ShapeStanding("at" if same and not larger else "inside", best)


def _nearest(ceilings: list[ReachedShape], mine: tuple[int, ...], chips: int) -> ReachedShape:
    """The ceiling from which it is the fewest doublings, on as many chips rather than on more."""

    def away(shape: ReachedShape) -> tuple[bool, float]:
        beyond = 1.0
        for own, theirs in zip(mine, _size(shape), strict=True):
            beyond *= max(1.0, own / max(1, theirs))
        return (shape.chips or 0) > chips, beyond

    return min(ceilings, key=away)


def _whole(shape: ReachedShape) -> bool:
    return None not in (shape.chips, shape.sequence_length, shape.micro_batch, shape.depth)


_size: Final[Callable[[ReachedShape], tuple[int, ...]]] = attrgetter(*(name for name, _ in SHAPE))


def _holds(shape: ReachedShape, mine: tuple[int, ...], chips: int) -> bool:
    return (
        shape.chips is not None
        and shape.chips <= chips
        and all(theirs >= own for theirs, own in zip(_size(shape), mine, strict=True))
    )
