"""Pictures of launches: the step times of compared ones, a row each, and memory by chip over the physical topology.

Launches stay apart: the spread between medians is what a comparison rests on, and pooled steps would hide it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from receipts.base.text import plain
from receipts.publish.page import Cell, Figure, Table, table_of
from receipts.publish.pictures import svg, topology
from receipts.publish.pictures.chart import BELOW, WIDTH, Panel, Scale, below, nice, tick_label
from receipts.publish.pictures.svg import DOTTED, FAINT, INK, LINE, MARKS, SMALL, Canvas
from receipts.publish.pictures.topology import Heat, layout
from receipts.publish.report.page import link
from receipts.publish.text import gib, number
from receipts.questions.week.series import Chips, ComparedSteps, LaunchSteps, highest

_LEFT: Final = 46.0
_RIGHT: Final = 92.0
_TOP: Final = 30.0
_ROW: Final = 17.0
_BETWEEN: Final = 8.0  # the sides
_UNITS: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def picture(rows: Sequence[LaunchSteps], *, name: str, title: str, measure: str = "step time") -> str | None:
    """The SVG element, or None where a side has no launch with steps. ``measure`` is what the quantiles are of."""
    if {item.side for item in rows} != {"A", "B"}:
        return None
    ordered = sorted(rows, key=lambda item: item.side)
    height = _TOP + _ROW * len(ordered) + _BETWEEN + BELOW
    size, unit = _unit(ordered)
    parts = []
    for side in ("A", "B"):
        medians = ", ".join(f"{item.median / size:.4g}" for item in ordered if item.side == side)
        parts.append(f"{side}: medians {medians} {unit}")
    return svg.inline_svg(
        partial(_paint, ordered, measure), name=name, width=WIDTH, height=height, title=title, alt="; ".join(parts)
    )


def _unit(rows: Sequence[LaunchSteps]) -> tuple[float, str]:
    least = min(item.median for item in rows)
    return next((unit for unit in _UNITS if least >= unit[0]), _UNITS[-1])


def _paint(rows: Sequence[LaunchSteps], measure: str, canvas: Canvas) -> None:
    size, unit = _unit(rows)
    # The outermost twentieths of a launch may lie many times farther out than all others.
    ends = [item.quantiles[index] / size for item in rows for index in (1, -2)]
    marks = nice(min(ends), max(ends), 6)
    x = Scale(min(marks), max(marks))
    plot = Panel(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, canvas.height - _TOP - BELOW, x, Scale(0.0, 1.0))
    canvas.label(plot.right + 8.0, _TOP - 12.0, "steps kept", size=SMALL, colour=FAINT)
    grid = [(plot.at(value, 0.0)[0], plot.top, plot.bottom) for value in marks]
    canvas.uprights(grid, colour=LINE, width=0.8)
    seen = 0
    for index, item in enumerate(rows):
        first = index == 0 or rows[index - 1].side != item.side
        seen = 1 if first else seen + 1
        y = _TOP + (index + 0.5) * _ROW + (_BETWEEN if item.side == "B" else 0.0)
        canvas.label(4.0, y, f"{item.side} {seen}", size=SMALL, bold=True)
        mark = MARKS[0] if item.side == "A" else MARKS[1]
        values = [value / size for value in item.quantiles]
        inside = [value for value in values if plot.x.low <= value <= plot.x.high]
        places = [plot.at(value, 0.0)[0] for value in values]
        canvas.line([(places[1], y), (places[-2], y)], colour=mark.light, width=1.2)
        box = (places[5], y - 5.0, places[15] - places[5], 10.0)
        canvas.boxes([box], fill=mark.light, edge=mark.light, alpha=0.3, dash=() if item.steady else DOTTED)
        canvas.uprights([(plot.at(value, 0.0)[0], y - 3.0, y + 3.0) for value in inside], colour=mark.light)
        canvas.marks([(places[10], y)], mark, size=6.5)
        counts = f"{item.kept:,} of {item.steps:,}" + ("" if item.steady else " ?")
        canvas.label(plot.right + 8.0, y, counts, size=SMALL, colour=FAINT if item.steady else INK)
    canvas.line([(plot.left, plot.bottom), (plot.right, plot.bottom)], colour=FAINT, width=1.0)
    below(canvas, plot, [(value, tick_label(value)) for value in marks], f"{measure}, {unit}")


def step_figures(anchor: str, compared: Sequence[ComparedSteps]) -> tuple[Figure, ...]:
    """A picture for each comparison; the first says how they are read."""
    return tuple(_step_figure(f"{anchor}-{index}", item, first=index == 1) for index, item in enumerate(compared, 1))


def _step_figure(anchor: str, item: ComparedSteps, *, first: bool) -> Figure:
    moved = f", {plain(' and '.join(item.changed))}" if item.changed else ""
    title = f"{item.measure.capitalize()} by launch: {plain(item.a.name)} (A) and {plain(item.b.name)} (B){moved}"

    rows = [one.per(item.per) for one in item.launches]
    return Figure(
        anchor,
        _step_caption(item, moved, first=first),
        lambda name: picture(rows, name=name, title=title, measure=item.measure),
        _step_table(title, item),
    )


def _step_caption(item: ComparedSteps, moved: str, *, first: bool) -> Cell:
    reading = (
        " A row a launch, of the steps of its steady segment: the mark is the median, the box the middle half, the "
        "line 5 to 95 %, each tick a twentieth of the steps."
    )
    caption = f" (B).{reading if first else ''}"
    open_ones = " A question mark: no steady segment." if any(not one.steady for one in item.launches) else ""
    left = f" And {item.more} more launches." if item.more else ""
    ends = (f"{item.measure.capitalize()} by launch: ", *link(item.a), " (A) and ", *link(item.b))
    return (*ends, f"{caption}{open_ones}{left}{f' Changed: {moved[2:]}.' if moved else ''}")


def _step_table(title: str, item: ComparedSteps) -> Table:
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


MAX_TOGETHER: Final = 4  # in one picture
MAX_LISTED: Final = 4  # chips of a launch in the table, the tightest of them


def heat_of(of: Chips) -> Heat:
    """Chips as they are drawn."""
    known = of.ordered
    shares = {item.chip: of.share(item) for item in known}
    most, least = max(shares.values(), default=0.0), min(shares.values(), default=0.0)
    return Heat(
        layout=layout(
            [item.chip for item in of.chips],
            count=of.count,
            hosts=of.hosts,
            physical=of.physical,
            accelerator=of.accelerator,
        ),
        values={item.chip: float(highest(item)) for item in known},
        title=f"{plain(of.receipt.name, 40)} · {plain(of.phase.replace('_', ' '))}, GiB",
        about="",
        limits={item.chip: float(item.limit) for item in known if item.limit},
        leaders=frozenset(chip for chip, share in shares.items() if share == most > least),
        thin=frozenset(item.chip for item in known if item.limit and shares[item.chip] > 1.0 - of.wanted),
    )


def chip_figures(anchor: str, launches: Sequence[Chips]) -> tuple[Figure, ...]:
    """Pictures of so many launches each, the tightest first, of those with two chips or more."""
    drawn = [item for item in launches if len(heat_of(item).values) >= topology.MIN_CHIPS]
    parts = [drawn[at : at + MAX_TOGETHER] for at in range(0, len(drawn), MAX_TOGETHER)]
    return tuple(_chip_figure(f"{anchor}-{index}", part) for index, part in enumerate(parts, 1))


def _chip_figure(anchor: str, launches: Sequence[Chips]) -> Figure:
    title, drawn = "Memory by chip", [heat_of(item) for item in launches]
    caption, table = _chip_caption(title, launches), _chip_table(title, launches)
    return Figure(anchor, caption, lambda name: topology.picture(drawn, name=name, title=title), table)


def _chip_caption(title: str, launches: Sequence[Chips]) -> Cell:
    thin = " Red with !: less is left than the lane wants." if any(heat_of(item).thin for item in launches) else ""
    outlined = " Outlined: the fullest." if any(heat_of(item).leaders for item in launches) else ""
    caption = (
        f"{title} in the phase in which its launch is tightest; the darker, the nearer to its limit.{thin}{outlined} "
    )
    named = [part for item in launches for part in (*link(item.receipt), "; ")]
    return (caption, *named[:-1], ".")


def _chip_table(title: str, launches: Iterable[Chips]) -> Table:
    header = "launch | phase | #chip | in use [GiB] | live peak [GiB] | pool peak [GiB] | limit [GiB]"
    rows: list[tuple[str | Cell, ...]] = []
    after = []
    for item in launches:
        ordered = item.ordered
        for one in ordered[:MAX_LISTED]:
            amounts = map(gib, (one.used, one.peak, one.pool, one.limit))
            rows.append((link(item.receipt)[:1], item.phase.replace("_", " "), str(one.chip), *amounts))
        if len(ordered) > MAX_LISTED:
            after.append(f"{plain(item.receipt.name)}: and {len(ordered) - MAX_LISTED:,} chips that keep more.")
    return table_of(title, header, rows, tuple(after))
