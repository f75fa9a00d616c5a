"""The page of a bridge: what each hop gave, what each axis gives in any order, and what runs are missing.

Its picture is a waterfall: what each hop gave, one after another, from A to B, with the interval of the whole. Its axis
is that of logs, so that hops of one size are bars of one length and add up; its ticks are changes in percent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.base.units import counted
from receipts.base.units import signed as signed_number
from receipts.base.untrusted_text import UNKNOWN, short
from receipts.plugins.study.bridge import percent
from receipts.publish import svg
from receipts.publish.page import (
    Cell,
    Figure,
    Mark,
    Page,
    Section,
    Table,
    lines_of,
    marked,
    points_of,
    sections_of,
    table_of,
)
from receipts.publish.readings import effect_word, moved, signed
from receipts.publish.svg import (
    BELOW,
    FAINT,
    LINE,
    MARKS,
    PAPER,
    WIDTH,
    Canvas,
    Panel,
    Scale,
    below,
    cut,
    nice,
)
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.plugins.study.bridge import Bridge
    from receipts.plugins.study.chain import Chain, HopGain
    from receipts.plugins.study.missing_runs import Route

say = words("bridge")

SHOWN_UNSTATED = 3  # in the first line
MAX_SHOWN = 12  # of hops and of interactions
SAME = 5e-5  # ratios that are printed alike
ORDERED = ("turns", "paired")  # designs that take the order of launches into account


def bridge_page(bridge: Bridge, plans: Sequence[str] | None = None) -> Page:
    """The whole page; ``plans`` are the files of the missing runs, None if they were not written."""
    sections = [*_chain(bridge), *_axes(bridge)]
    for status in ("rejected", "inconclusive"):
        hops = [hop for hop in bridge.refused if hop.verdict.status == status]
        points = points_of((f"{hop.a.name} → {hop.b.name} ({hop.axis})", hop.reason) for hop in hops[:MAX_SHOWN])
        rest = len(hops) - MAX_SHOWN
        sections.append(Section(status, say(status), (say("more_hops", n=rest),) if rest > 0 else (), points))
    if len(bridge.unstated) > SHOWN_UNSTATED:
        sections.append(Section("unstated", say("not_stated"), (", ".join(bridge.unstated),)))
    steps: list[tuple[str, str]] = []
    if bridge.route is not None:
        sections.append(_missing(bridge.route))
        ends = f"{bridge.a.parsed.id[:12]} {bridge.b.parsed.id[:12]}"
        steps = [(f"receipts run --plan {plan} -- COMMAND…", say("launch")) for plan in plans or ()]
        if plans is None:
            steps.append((f"receipts bridge {ends} --plan DIR", say("write_plans")))
    facts: list[tuple[str, Cell]] = []
    for letter, point in (("A", bridge.a), ("B", bridge.b)):
        launches = counted(len(point.launches), "launch", "launches")
        facts.append((letter, (say("side", label=point.name, id=point.parsed.id[:12], launches=launches),)))
    about = say("about", lane=bridge.a.parsed.receipt.run.lane, metric=bridge.metric)
    facts.append(("", (f"{about}{say('apart', n=len(bridge.counted), axes=', '.join(bridge.counted))}",)))
    return Page(
        title=f"{bridge.a.name} → {bridge.b.name}",
        headline=_headline(bridge),
        facts=tuple(facts),
        next=tuple(steps),
        sections=sections_of(*sections),
    )


def _headline(bridge: Bridge) -> Cell:
    """What each hop gave, or why there is no chain."""
    if not bridge.chains:
        return (marked(bridge.status, say(bridge.status)), f"  {_why(bridge)}")
    hops = bridge.chains[0]
    if not hops:
        return (Mark("shown", say("same")), f"  {say('one_configuration')}")
    axes = ", ".join(f"{hop.axis} {_gain(hop.gain)}" for hop in hops)
    answer = say("answer", n=len(hops), gain=_gain(bridge.total), metric=bridge.metric, axes=axes)
    return (marked("bridged", say("bridged")), f"  {answer}")


def _why(bridge: Bridge) -> str:
    if bridge.unstated:
        rest = len(bridge.unstated) - SHOWN_UNSTATED
        shown = ", ".join(bridge.unstated[:SHOWN_UNSTATED]) + (say("rest", n=rest) if rest > 0 else "")
        return say("unstated", n=len(bridge.unstated), axes=shown)
    if bridge.status == "refused":
        return say("impossible")
    if bridge.route is not None:
        return say("runs_missing" if bridge.route.new else "unsettled")
    return say("cut") if bridge.cut else say("too_far", n=len(bridge.counted))


def _chain(bridge: Bridge) -> Iterator[Section]:
    """The best evidenced chain hop by hop; where there is none, the nearest, which does not hold."""
    chain = bridge.chains[0] if bridge.chains else bridge.broken
    if not chain:
        return
    others = len(bridge.chains) - 1
    title = say("chain" if bridge.chains else "broken", hops=counted(len(chain), "hop"))
    if others > 0:
        title += say("best_of_more" if bridge.more else "best_of", n=others + 1)
    figure = Figure("waterfall", (say("waterfall"),), lambda name: bridge_picture(bridge, name))
    yield Section("chain", title, tables=(_waterfall(bridge, chain),), figures=(figure,))


def _waterfall(bridge: Bridge, chain: Chain) -> Table:
    header = (
        "axis | from → to ^2 | #gain | #cumulative ^3 | 95 % interval ^1 | verdict | receipt ^4 | #launches ^5"
        " | label… ^6"
    )
    start, rows, after = chain[0].a.values.place, list[tuple[str, ...]](), []
    for hop in chain:
        here, end = hop.b.values.place, hop.b
        so_far = percent(here - start) if start is not None and here is not None else UNKNOWN
        effect = effect_word(hop.verdict.headline) if hop.verdict.headline is not None else hop.verdict.effect
        verdict = effect if hop.accepted else f"{hop.verdict.status}, {effect}"
        gain = (_gain(hop.gain), so_far, _interval(hop.gain), verdict)
        rows.append((hop.axis, moved(hop.members), *gain, end.parsed.id[:12], str(len(end.launches)), end.name))
    if len(rows) > 1:
        end = bridge.b
        total = (_gain(bridge.total), "", _interval(bridge.total), "", end.parsed.id[:12], str(len(end.launches)))
        rows.append((say("total"), "", *total, end.name))
        after += [say("own_interval")] if _interval(bridge.total) != UNKNOWN else []
    if bridge.total is not None and not bridge.total.measured:
        after.append(say("stated"))
    for number, hop in enumerate(chain, 1):
        headline = hop.verdict.headline
        if headline is None or headline.ratio is None or headline.effect.design not in ORDERED or hop.gain is None:
            continue
        # The order of the launches may make what the comparison says another number than the gain.
        if abs(headline.ratio / hop.gain.ratio - 1) >= SAME:
            design = headline.effect.why.partition(";")[0]
            order = say("ordered", change=signed(headline.ratio), design=design)
            after.append(say("hop", n=number, text=order))
    return table_of("", header, rows, tuple(after))


def _gain(item: HopGain | None) -> str:
    return UNKNOWN if item is None else percent(item.log) + ("" if item.measured else "*")


def _interval(item: HopGain | None) -> str:
    if item is None or item.low is None or item.high is None:
        return UNKNOWN
    return f"{percent(item.low).removesuffix(' %')} … {percent(item.high)}"


def _axes(bridge: Bridge) -> Iterator[Section]:
    """What each axis gave over all orders, and what two gave together."""
    rows = ((axis, percent(item.low), percent(item.high)) for axis, item in bridge.ranges.items())
    title = say("ranges_of_more" if bridge.more else "ranges", n=len(bridge.chains))
    yield Section("ranges", title, tables=(table_of("", "axis | #least | #most", rows),))
    if bridge.interactions:
        shown = []
        for item in bridge.interactions[:MAX_SHOWN]:
            kind = say("not_all_hold")
            if item.status == "accepted":
                kind = say("together" if item.shown else "none_shown")
            shown.append(
                say(
                    "interaction",
                    x=item.axes[0],
                    y=item.axes[1],
                    kind=kind,
                    joint=_gain(item.together),
                    interval=_interval(item.together),
                    x_before=_gain(item.first[0]),
                    x_after=_gain(item.first[1]),
                    y_before=_gain(item.second[0]),
                    y_after=_gain(item.second[1]),
                    base=item.corners[0].name,
                )
            )
        rest = len(bridge.interactions) - MAX_SHOWN
        shown += [say("weaker", n=rest)] if rest > 0 else []
        yield Section("interactions", say("interactions"), points=lines_of([*shown, say("unadjusted")]))


def _missing(route: Route) -> Section:
    new, again = len(route.new), len(route.runs) - len(route.new)
    parts = [say("new", n=new)] if new else []
    parts += [say("again", n=again)] if again else []
    legs = " · ".join(say("leg", axis=leg.axis, to=leg.b, state=leg.state) for leg in route.legs)
    texts: list[tuple[str, str]] = []
    for run in route.runs:
        launches = say("launches" if run.afresh else "more_launches", n=run.launches)
        text = say("run", launches=launches)
        if run.stored is not None:
            text = say("stored", id=run.stored.parsed.id[:12], launches=launches)
        text += say("cost", seconds=run.chip_seconds) if run.chip_seconds is not None else ""
        text += f"; {run.why}" if run.why else ""
        texts.append((run.label, text + (say("fails", why=run.failing) if run.failing else "")))
    points = points_of([*texts, *((say("avoided"), f"{label}: {why}") for label, why in route.avoided)])
    return Section("missing", say("missing", runs=say("and").join(parts)), (say("legs", legs=legs),), points)


def bridge_picture(bridge: Bridge, name: str = "bridge") -> str | None:
    """The waterfall as an SVG element, its ids beginning with ``name``.

    None if there is no bridge, or a hop of it has no number.
    """
    chain = bridge.chains[0] if bridge.chains else ()
    gains = [(hop.axis, hop.gain) for hop in chain if hop.gain is not None]
    if bridge.total is None or len(gains) < len(chain):
        return None
    title = f"From {short(bridge.a.name, 60)} to {short(bridge.b.name, 60)}"
    whole = f"{short(bridge.b.name, 24)} against {short(bridge.a.name, 24)}"
    steps = [WaterfallHop(axis, gain.log, gain.low, gain.high) for axis, gain in (*gains, (whole, bridge.total))]
    return waterfall(steps[:-1], steps[-1], metric=metrics.get(bridge.metric).title, name=name, title=title)


_LEFT: Final = 16.0
_RIGHT: Final = 76.0  # where the amounts stand
_TOP: Final = 6.0
_ROW: Final = 38.0  # a name, and the bar below it
_NAME: Final = 18.0
_BAR: Final = 14.0
_UP, _DOWN, _WHOLE = MARKS[0].light, MARKS[1].light, MARKS[5].light


@dataclass(frozen=True, slots=True)
class WaterfallHop:
    """One hop: its axis, and the log of what B of the hop has over its A; an interval of the log where there is one."""

    name: str
    log: float
    low: float | None = None
    high: float | None = None


def waterfall(steps: Sequence[WaterfallHop], total: WaterfallHop, *, metric: str, name: str, title: str) -> str | None:
    """The SVG element, or None without a hop. ``total`` is what B has over A; the hops add up to it."""
    if not steps:
        return None
    height = _TOP + _ROW * (len(steps) + 1) + BELOW
    alts = []
    for item in (*steps, total):
        ends = _whiskers(0.0, item)
        interval = f" ({percent(ends[0])} to {percent(ends[1])})" if ends else ""
        alts.append(f"{item.name} {percent(item.log)}{interval}")
    alt = "; ".join(alts)
    paint = partial(_paint, steps, total, metric)
    return svg.inline_svg(paint, name=name, width=WIDTH, height=height, title=title, alt=alt)


def _paint(steps: Sequence[WaterfallHop], total: WaterfallHop, metric: str, canvas: Canvas) -> None:
    starts = [math.fsum(item.log for item in steps[:index]) for index in range(len(steps) + 1)]
    bars = [(start, start + item.log, item) for start, item in zip(starts, steps, strict=False)]
    bars.append((0.0, total.log, total))
    ends = [end for start, stop, item in bars for end in (start, stop, *_whiskers(start, item))]
    # Round percentages over the range.
    rounds = nice(math.expm1(min(ends)) * 100, math.expm1(max(ends)) * 100, 6)
    marks = [math.log1p(value / 100) for value in rounds if value > -100.0]
    x = Scale(min(*ends, *marks) - 1e-4, max(*ends, *marks) + 1e-4)
    plot = Panel(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, canvas.height - _TOP - BELOW, x, Scale(0.0, 1.0))
    # Only beside bars: a line would run through the names between them.
    tops = [_TOP + index * _ROW + _NAME for index in range(len(bars))]
    places = [plot.at(mark, 0.0)[0] for mark in marks]
    canvas.uprights([(x, top - 2.0, top + _BAR + 2.0) for x in places for top in tops], colour=LINE, width=0.8)
    zero = plot.at(0.0, 0.0)[0]
    canvas.uprights([(zero, top - 2.0, top + _BAR + 2.0) for top in tops], colour=FAINT, width=1.2)
    for top, (start, stop, item) in zip(tops, bars, strict=True):
        _bar(canvas, plot, item, start, stop, top, item is total)
    ends_at = [
        (plot.at(stop, 0.0)[0], top + _BAR, top + _ROW) for top, (_, stop, _) in zip(tops, bars[:-1], strict=False)
    ]
    canvas.uprights(ends_at, colour=FAINT, dash=(2, 2))
    canvas.line([(plot.left, plot.bottom), (plot.right, plot.bottom)], colour=FAINT, width=1.0)
    changes = [(mark, round(math.expm1(mark) * 100, 6)) for mark in marks]
    ticks = [(mark, signed_number(change) if change else "0") for mark, change in changes]
    below(canvas, plot, ticks, f"change of {metric} against A, % (log scale)")


def _whiskers(start: float, item: WaterfallHop) -> tuple[float, ...]:
    return () if item.low is None or item.high is None else (start + item.low, start + item.high)


def _bar(canvas: Canvas, plot: Panel, item: WaterfallHop, start: float, stop: float, top: float, whole: bool) -> None:
    left, right = sorted((plot.at(start, 0.0)[0], plot.at(stop, 0.0)[0]))
    colour = _WHOLE if whole else _UP if item.log >= 0.0 else _DOWN
    canvas.label(4.0, top - 9.0, cut(item.name, WIDTH - 90.0), bold=whole)
    canvas.label(WIDTH - 4.0, top - 9.0, percent(item.log), ha="right", bold=True)
    middle = top + _BAR / 2
    canvas.boxes([(left, top, max(1.0, right - left), _BAR)], fill=colour, alpha=0.55 if whole else 1.0)
    # Without color, the way a hop went is that of the arrow at its end.
    if not whole and right - left > 12.0:
        tip, back = (right - 4.0, -5.0) if item.log >= 0.0 else (left + 4.0, 5.0)
        arrow = [(tip + back, middle - 3.5), (tip, middle), (tip + back, middle + 3.5)]
        canvas.line(arrow, colour=PAPER, width=1.6)
    ends = [plot.at(end, 0.0)[0] for end in _whiskers(start, item)]
    if ends:
        feet = [((x, middle - 4.0), (x, middle + 4.0)) for x in ends]
        canvas.segments([((ends[0], middle), (ends[1], middle)), *feet], width=1.4)
