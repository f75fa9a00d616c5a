"""Step times of the launches that a report compared, each launch by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from receipts.publish.page import Cell, Figure, Table, table_of
from receipts.publish.pictures import steps as drawing
from receipts.publish.report.page import link
from receipts.publish.report.ref import Ref
from receipts.publish.text import number, plain

if TYPE_CHECKING:
    from receipts.metrics import Launch
    from receipts.publish.pictures.steps import Side
    from receipts.publish.report.data import JudgedPair
    from receipts.publish.report.reader import ReportReader

MOST: Final = 2  # comparisons of a lane
LAUNCHES: Final = 10  # of a side
PER: Final = 1000  # tokens


@dataclass(frozen=True, slots=True)
class Timed(drawing.LaunchSteps):
    """Steps of one launch, with its receipt."""

    receipt: Ref

    def per(self, tokens: int | None) -> Timed:
        """The same for so many tokens; for a step without a number."""
        scale = tokens / self.tokens if tokens and self.tokens else 1.0
        return replace(self, quantiles=tuple(value * scale for value in self.quantiles))


@dataclass(frozen=True, slots=True)
class ComparedSteps:
    """A comparison with its launches. `more` launches are left out."""

    a: Ref
    b: Ref
    changed: tuple[str, ...]
    launches: tuple[Timed, ...]
    more: int

    @property
    def per(self) -> int | None:
        """Tokens whose time is drawn, where steps of the two sides differ in what they take in; None for a step."""
        sizes = {one.tokens for one in self.launches}
        return PER if len(sizes) > 1 and None not in sizes and 0 not in sizes else None

    @property
    def measure(self) -> str:
        """What is drawn, in words."""
        return f"time of {self.per:,} tokens" if self.per else "step time"


def compared(reader: ReportReader, judged: Sequence[JudgedPair]) -> tuple[ComparedSteps, ...]:
    """The first of these comparisons whose sides both kept their steps."""
    pairs: list[ComparedSteps] = []
    for item in judged:
        if len(pairs) == MOST:
            break
        if item.ratio is None or item.stated:
            continue
        rows = {row.id: row for row in reader.stored.entries([ref.id for ref in (*item.a, *item.b)])}
        moved = [one.path for one in item.moved]
        steps = steps_of(item.a, item.b, moved, lambda ref, rows=rows: reader.launch(rows[ref.id]))  # type: ignore[misc]
        pairs += [steps] if steps is not None else []
    return tuple(pairs)


def steps_of(
    a: Sequence[Ref], b: Sequence[Ref], changed: Sequence[str], launch: Callable[[Ref], Launch]
) -> ComparedSteps | None:
    """The steps of both sides; None where no launch of one of them kept any."""
    sides: tuple[tuple[Side, Sequence[Ref]], ...] = (("A", a), ("B", b))
    held = [one for side, refs in sides for ref in refs[:LAUNCHES] if (one := _timed(side, ref, launch(ref)))]
    if {one.side for one in held} != {"A", "B"}:
        return None
    left = sum(max(0, len(refs) - LAUNCHES) for _, refs in sides)
    return ComparedSteps(a[0], b[0], tuple(changed[:2]), tuple(held), left)


def _timed(side: Side, ref: Ref, launch: Launch) -> Timed | None:
    from receipts.stats.distributions import quantile

    segment = launch.segment
    if segment is None or not segment.kept:
        return None
    ordered = sorted(segment.of(launch.durations))
    spread = tuple(quantile(ordered, share) for share in drawing.SHARES)
    steady = segment.status == "steady"
    return Timed(side, spread, len(ordered), len(launch.durations), steady, launch.tokens_per_step, ref)


def figures(anchor: str, compared: Sequence[ComparedSteps]) -> tuple[Figure, ...]:
    """A picture for each comparison; the first says how they are read."""
    return tuple(_figure(f"{anchor}-{index}", item, first=index == 1) for index, item in enumerate(compared, 1))


def _figure(anchor: str, item: ComparedSteps, *, first: bool) -> Figure:
    moved = f", {plain(' and '.join(item.changed))}" if item.changed else ""
    title = f"{item.measure.capitalize()} by launch: {plain(item.a.name)} (A) and {plain(item.b.name)} (B){moved}"

    rows = [one.per(item.per) for one in item.launches]
    return Figure(
        anchor,
        _caption(item, moved, first=first),
        lambda name: drawing.picture(rows, name=name, title=title, measure=item.measure),
        _table(title, item),
    )


def _caption(item: ComparedSteps, moved: str, *, first: bool) -> Cell:
    reading = (
        " A row a launch, of the steps of its steady segment: the mark is the median, the box the middle half, the "
        "line 5 to 95 %, each tick a twentieth of the steps."
    )
    caption = f" (B).{reading if first else ''}"
    open_ones = " A question mark: no steady segment." if any(not one.steady for one in item.launches) else ""
    left = f" And {item.more} more launches." if item.more else ""
    ends = (f"{item.measure.capitalize()} by launch: ", *link(item.a), " (A) and ", *link(item.b))
    return (*ends, f"{caption}{open_ones}{left}{f' Changed: {moved[2:]}.' if moved else ''}")


def _table(title: str, item: ComparedSteps) -> Table:
    header = "side | launch | median step [s] | 5 % [s] | 95 % [s] | #steps kept | #of | steady | #tokens a step"
    rows = (
        (
            *(one.side, link(one.receipt)[:1]),
            *(f"{one.quantiles[index]:.5g}" for index in (10, 1, 19)),
            *(number(one.kept), number(one.steps), "yes" if one.steady else "no", number(one.tokens)),
        )
        for one in item.launches
    )
    return table_of(title, header, rows)
