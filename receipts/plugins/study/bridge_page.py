"""The page of a bridge: what each hop gave, what each axis gives in any order, and what runs are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.base.text import UNKNOWN, short
from receipts.base.units import counted
from receipts.plugins.study.bridge import percent
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
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.plugins.study.bridge import Bridge
    from receipts.plugins.study.chain import BridgePoint, Chain, Hop, HopGain, Interaction
    from receipts.plugins.study.missing_runs import MissingRun, Route

say = words("bridge")

SHOWN_UNSTATED = 3  # in the first line
MAX_SHOWN = 12  # of hops and of interactions
SAME = 5e-5  # ratios that are printed alike
ORDERED = ("turns", "paired")  # designs that take the order of launches into account


def bridge_page(bridge: Bridge, plans: Sequence[str] | None = None) -> Page:
    """The whole page; ``plans`` are the files of the missing runs, None if they were not written."""
    sections = [*_chain(bridge), *_axes(bridge), *_hops(bridge)]
    if len(bridge.unstated) > SHOWN_UNSTATED:
        sections.append(Section("unstated", say("not_stated"), (", ".join(bridge.unstated),)))
    steps: list[tuple[str, str]] = []
    if bridge.route is not None:
        sections.append(_missing(bridge.route))
        ends = f"{bridge.a.parsed.id[:12]} {bridge.b.parsed.id[:12]}"
        steps = [(f"receipts run --plan {plan} -- COMMAND…", say("launch")) for plan in plans or ()]
        if plans is None:
            steps.append((f"receipts bridge {ends} --plan DIR", say("write_plans")))
    return Page(
        title=f"{bridge.a.name} → {bridge.b.name}",
        headline=_headline(bridge),
        facts=tuple(_facts(bridge)),
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


def _facts(bridge: Bridge) -> Iterator[tuple[str, Cell]]:
    for letter, point in (("A", bridge.a), ("B", bridge.b)):
        yield letter, (say("side", label=point.name, id=point.parsed.id[:12], launches=_launches(point)),)
    about = say("about", lane=bridge.a.parsed.receipt.run.lane, metric=bridge.metric)
    yield "", (f"{about}{say('apart', n=len(bridge.counted), axes=', '.join(bridge.counted))}",)


def _launches(point: BridgePoint) -> str:
    return counted(len(point.launches), "launch", "launches")


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
    rows = [_step(chain, hop) for hop in chain]
    after = []
    if len(rows) > 1:
        end = bridge.b
        total = (_gain(bridge.total), "", _interval(bridge.total), "", end.parsed.id[:12], str(len(end.launches)))
        rows.append((say("total"), "", *total, end.name))
        after += [say("own_interval")] if _interval(bridge.total) != UNKNOWN else []
    if bridge.total is not None and not bridge.total.measured:
        after.append(say("stated"))
    for number, hop in enumerate(chain, 1):
        if (order := _ordered(hop)) is not None:
            after.append(say("hop", n=number, text=order))
    return table_of("", header, rows, tuple(after))


def _step(chain: Chain, hop: Hop) -> tuple[str, ...]:
    start, here = chain[0].a.values.place, hop.b.values.place
    so_far = percent(here - start) if start is not None and here is not None else UNKNOWN
    effect = effect_word(hop.verdict.headline) if hop.verdict.headline is not None else hop.verdict.effect
    verdict = effect if hop.accepted else f"{hop.verdict.status}, {effect}"
    end = hop.b
    return (
        hop.axis,
        moved(hop.members),
        _gain(hop.gain),
        so_far,
        _interval(hop.gain),
        verdict,
        end.parsed.id[:12],
        str(len(end.launches)),
        end.name,
    )


def _ordered(hop: Hop) -> str | None:
    """What the comparison says beside the gain, where the order of the launches makes it another number."""
    headline = hop.verdict.headline
    if headline is None or headline.ratio is None or headline.effect.design not in ORDERED or hop.gain is None:
        return None
    if abs(headline.ratio / hop.gain.ratio - 1) < SAME:
        return None
    return say("ordered", change=signed(headline.ratio), design=headline.effect.why.partition(";")[0])


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
        shown = [_interaction(item) for item in bridge.interactions[:MAX_SHOWN]]
        rest = len(bridge.interactions) - MAX_SHOWN
        shown += [say("weaker", n=rest)] if rest > 0 else []
        yield Section("interactions", say("interactions"), points=lines_of([*shown, say("unadjusted")]))


def _interaction(item: Interaction) -> str:
    kind = "together" if item.shown else "none_shown"
    return say(
        "interaction",
        x=item.axes[0],
        y=item.axes[1],
        kind=say(kind if item.status == "accepted" else "not_all_hold"),
        joint=_gain(item.together),
        interval=_interval(item.together),
        x_before=_gain(item.first[0]),
        x_after=_gain(item.first[1]),
        y_before=_gain(item.second[0]),
        y_after=_gain(item.second[1]),
        base=item.corners[0].name,
    )


def _hops(bridge: Bridge) -> Iterator[Section]:
    """Hops that hold the bridge up, and why."""
    for status in ("rejected", "inconclusive"):
        hops = [hop for hop in bridge.refused if hop.verdict.status == status]
        points = points_of((f"{hop.a.name} → {hop.b.name} ({hop.axis})", hop.reason) for hop in hops[:MAX_SHOWN])
        rest = len(hops) - MAX_SHOWN
        yield Section(status, say(status), (say("more_hops", n=rest),) if rest > 0 else (), points)


def _missing(route: Route) -> Section:
    new, again = len(route.new), len(route.runs) - len(route.new)
    parts = [say("new", n=new)] if new else []
    parts += [say("again", n=again)] if again else []
    legs = " · ".join(say("leg", axis=leg.axis, to=leg.b, state=leg.state) for leg in route.legs)
    runs = points_of((run.label, _run(run)) for run in route.runs)
    avoided = points_of((say("avoided"), f"{label}: {why}") for label, why in route.avoided)
    return Section("missing", say("missing", runs=say("and").join(parts)), (say("legs", legs=legs),), runs + avoided)


def _run(run: MissingRun) -> str:
    launches = say("launches" if run.afresh else "more_launches", n=run.launches)
    text = say("run", launches=launches)
    if run.stored is not None:
        text = say("stored", id=run.stored.parsed.id[:12], launches=launches)
    text += say("cost", seconds=run.chip_seconds) if run.chip_seconds is not None else ""
    text += f"; {run.why}" if run.why else ""
    return text + (say("fails", why=run.failing) if run.failing else "")


def bridge_picture(bridge: Bridge, name: str = "bridge") -> str | None:
    """The waterfall as an SVG element, its ids beginning with ``name``.

    None if there is no bridge, or a hop of it has no number.
    """
    from receipts.plugins.study import waterfall

    def step(title: str, gain: HopGain) -> waterfall.WaterfallHop:
        return waterfall.WaterfallHop(title, gain.log, gain.low, gain.high)

    chain = bridge.chains[0] if bridge.chains else ()
    steps = [step(hop.axis, hop.gain) for hop in chain if hop.gain is not None]
    if bridge.total is None or len(steps) < len(chain):
        return None
    title = f"From {short(bridge.a.name, 60)} to {short(bridge.b.name, 60)}"
    whole = step(f"{short(bridge.b.name, 24)} against {short(bridge.a.name, 24)}", bridge.total)
    return waterfall.picture(steps, whole, metric=metrics.get(bridge.metric).title, name=name, title=title)
