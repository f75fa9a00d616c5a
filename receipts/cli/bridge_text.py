"""A bridge as text: the waterfall, what each axis gave over the orders, what two gave together, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from receipts.cli import output
from receipts.publish.readings import effect_word, value
from receipts.publish.words import words
from receipts.questions.bridge import Bridge, BridgePoint, Chain, Hop, HopGain, Interaction, MissingRun, Route
from receipts.questions.bridge.data import percent

NARROW = 100  # columns under which a hop is told in lines and not in a row
SHOWN_UNSTATED = 12
SHOWN_INTERACTIONS = 12
SHOWN_HOPS = 12
MOST_NAME = 24  # characters of a label in a row; the id stands beside it
SAME = 5e-5  # ratios that are printed alike
ORDERED = ("turns", "paired")  # designs that take the order of launches into account


def print_bridge(bridge: Bridge, plans: Sequence[str], folder: str | None) -> None:
    """Print the whole answer, its conclusion first; ``plans`` are the files that were written."""
    state = {"refused": "rejected", "open": "inconclusive"}.get(bridge.status, "accepted")
    first, *rest = output.terminal().wrapped(_answer(bridge), 0, 2)
    status, gap, text = first.partition("  ")
    output.lines([f"{output.paint(status, state)}{gap}{text}", *rest])
    for letter, point in (("A", bridge.a), ("B", bridge.b)):
        output.line(f"{letter}  {output.clean(point.name)}  {point.parsed.id[:12]}  {_launches(point)}")
    lane = output.clean(bridge.a.parsed.receipt.run.lane)
    output.line(f"   lane {lane} · metric {bridge.metric}")
    _axes(bridge)
    if bridge.chains and bridge.chains[0]:
        _bridge(bridge)
    _ranges(bridge)
    _interactions(bridge)
    if not bridge.chains:
        _broken(bridge)
    _refused(bridge)
    if bridge.route is not None:
        _route(bridge.route, plans)
    _end(bridge, folder)
    if not bridge.indexed:
        output.note("the index does not hold every receipt of this lane as it is read now; run: receipts db reindex")


def _answer(bridge: Bridge) -> str:
    """The conclusion in a sentence: what each step gave, or why there is no chain."""
    say = words("bridge")
    if not bridge.chains:
        return say("refused" if bridge.status == "refused" else "open", why=_why(bridge))
    hops = bridge.chains[0]
    if not hops:
        return say("same")
    axes = ", ".join(f"{hop.axis} {_gain(hop.gain)}" for hop in hops)
    return say("bridged", n=len(hops), gain=_gain(bridge.total), metric=bridge.metric, axes=axes)


def _axes(bridge: Bridge) -> None:
    if not bridge.counted:
        return
    axes = f"axis {bridge.counted[0]}" if len(bridge.counted) == 1 else f"{len(bridge.counted)} axes"
    names = "" if len(bridge.counted) == 1 else f": {', '.join(bridge.counted)}"
    output.wrapped(f"apart in {axes}{names}", 3, 5)


def _launches(point: BridgePoint) -> str:
    return f"{len(point.launches)} launch{'es' if len(point.launches) != 1 else ''}"


def _bridge(bridge: Bridge) -> None:
    chain = bridge.chains[0]
    others = len(bridge.chains) - 1
    more = f"; the best evidenced of {'more than ' if bridge.more else ''}{others + 1} chains" if others else ""
    output.heading(f"Bridge of {_hops(chain)}{more}")
    _waterfall(bridge, chain)
    for number, hop in enumerate(chain, 1):
        if (order := _ordered(hop)) is not None:
            output.wrapped(f"hop {number}: {order}", 2, 4)


def _ordered(hop: Hop) -> str | None:
    """What the comparison says beside the gain, where the order of the launches makes it another number."""
    headline = hop.headline
    if headline is None or headline.ratio is None or headline.effect.design not in ORDERED or hop.gain is None:
        return None
    if abs(headline.ratio / hop.gain.ratio - 1) < SAME:
        return None
    design = headline.effect.why.partition(";")[0]
    return f"with the order of its launches taken into account {_change(headline.ratio)} ({design})"


def _hops(chain: Chain) -> str:
    return f"{len(chain)} hop{'s' if len(chain) != 1 else ''}"


def _waterfall(bridge: Bridge, chain: Chain) -> None:
    rows = list(_rows(chain))
    total = ("total", "", _gain(bridge.total), "", _interval(bridge.total), "", f"{bridge.b.parsed.id[:12]}")
    if output.width() >= NARROW:
        columns = ("axis", "from → to", "gain", "cumulative", "95 % interval", "verdict", "receipt")
        output.table(columns, [*rows, total] if len(rows) > 1 else rows, right=(2, 3))
    else:
        for number, (axis, moved, gain, so_far, interval, verdict, receipt) in enumerate(rows, 1):
            output.wrapped(f"{number}. {axis} {moved}: {gain}", 2, 5)
            output.wrapped(f"95 % {interval} · so far {so_far}", 5)
            output.wrapped(f"{verdict} · {receipt}", 5)
        if len(rows) > 1:
            output.wrapped(f"total {_gain(bridge.total)}, 95 % {_interval(bridge.total)}", 2, 5)
    if bridge.total is not None and not bridge.total.measured:
        output.wrapped("* as stated: what the numbers were taken from was not kept")
    if len(rows) > 1 and _interval(bridge.total) != "~":
        output.wrapped("the total's interval is that of its ends' own launches; those of the hops do not add up to it")


def _rows(chain: Chain) -> Iterator[tuple[str, str, str, str, str, str, str]]:
    start = chain[0].a.values.place
    for hop in chain:
        here = hop.b.values.place
        so_far = percent(here - start) if start is not None and here is not None else "~"
        verdict = _effect(hop) if hop.accepted else f"{hop.verdict.status}, {_effect(hop)}"
        receipt = f"{hop.b.parsed.id[:12]}, {_launches(hop.b)}, {_cut(hop.b.name)}"
        yield hop.axis, _moved(hop), _gain(hop.gain), so_far, _interval(hop.gain), verdict, receipt


def _cut(name: str) -> str:
    return name if len(name) <= MOST_NAME else f"{name[: MOST_NAME - 1]}…"


def _effect(hop: Hop) -> str:
    return effect_word(hop.headline) if hop.headline is not None else hop.verdict.effect


def _gain(item: HopGain | None) -> str:
    return "~" if item is None else percent(item.log) + ("" if item.measured else "*")


def _change(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.2f} %"


def _interval(item: HopGain | None) -> str:
    if item is None or item.low is None or item.high is None:
        return "~"
    return f"{percent(item.low).removesuffix(' %')} … {percent(item.high)}"


def _moved(hop: Hop) -> str:
    """What the axis changed from and to, leaf by leaf."""
    moves = [f"{value(item.a)} → {value(item.b)}" for item in hop.members]
    if len(moves) == 1:
        return moves[0]
    names = [item.path.rpartition(".")[2] for item in hop.members]
    return "; ".join(f"{name} {move}" for name, move in zip(names, moves, strict=True)) or "?"


def _ranges(bridge: Bridge) -> None:
    if not bridge.ranges:
        return
    output.heading(f"Gain of each axis over {'the first ' if bridge.more else ''}{len(bridge.chains)} chains")
    rows = [(axis, percent(item.low), percent(item.high)) for axis, item in bridge.ranges.items()]
    output.table(("axis", "least", "most"), rows, right=(1, 2))


def _interactions(bridge: Bridge) -> None:
    if not bridge.interactions:
        return
    output.heading("Interactions, where a 2×2 of receipts exists")
    for item in bridge.interactions[:SHOWN_INTERACTIONS]:
        output.wrapped(_interaction(item), 2, 4)
    rest = len(bridge.interactions) - SHOWN_INTERACTIONS
    if rest > 0:
        output.wrapped(f"and {rest} weaker; all of them with --json")
    output.wrapped("the intervals are not adjusted for their number")


def _interaction(item: Interaction) -> str:
    x, y = item.axes
    joint = f"{_gain(item.together)} ({_interval(item.together)})"
    label = "together" if item.shown else "none shown, together"
    if item.status != "accepted":
        label = "not all four pairs hold, together"
    return (
        f"{x} × {y}: {label} {joint} over both apart; {x} gives {_gain(item.first[0])} before {y} moves and "
        f"{_gain(item.first[1])} after, {y} {_gain(item.second[0])} and {_gain(item.second[1])} "
        f"(from {item.corners[0].name})"
    )


def _broken(bridge: Bridge) -> None:
    if not bridge.broken:
        return
    output.heading("No bridge: the stored chain that comes nearest does not hold")
    _waterfall(bridge, bridge.broken)


def _refused(bridge: Bridge) -> None:
    for status, title in (("rejected", "Hops that are refused"), ("inconclusive", "Hops that are open")):
        hops = [hop for hop in bridge.refused if hop.verdict.status == status]
        if not hops:
            continue
        output.heading(title)
        for hop in hops[:SHOWN_HOPS]:
            output.wrapped(f"{hop.a.name} → {hop.b.name} ({hop.axis}): {hop.reason}", 2, 4)
        if len(hops) > SHOWN_HOPS:
            output.wrapped(f"and {len(hops) - SHOWN_HOPS} more; all of them with --json")


def _route(route: Route, plans: Sequence[str]) -> None:
    new, again = len(route.new), len(route.runs) - len(route.new)
    parts = [f"{new} new configuration{'s' if new != 1 else ''}"] if new else []
    parts += [f"{again} stored one{'s' if again != 1 else ''} again"] if again else []
    output.heading(f"Cheapest missing runs: {' and '.join(parts)}")
    for number, run in enumerate(route.runs):
        output.wrapped(_run(run), 2, 4)
        if number < len(plans):
            output.wrapped(f"receipts run --plan {plans[number]} -- COMMAND…", 4, 6)
    output.wrapped("the chain would be: " + " · ".join(_leg(leg.axis, leg.b, leg.state) for leg in route.legs), 2, 4)
    for label, why in route.avoided:
        output.wrapped(f"avoided: {label}: {why}", 2, 4)


def _leg(axis: str, name: str, state: str) -> str:
    return f"{axis} to {name} ({state})"


def _run(run: MissingRun) -> str:
    cost = f", about {run.chip_seconds:.3g} chip-seconds a step" if run.chip_seconds is not None else ""
    count = f"{run.launches} {'' if run.afresh else 'more '}launch{'es' if run.launches != 1 else ''}"
    kind = "new" if run.stored is None else f"again ({run.stored.parsed.id[:12]})"
    why = f"; {run.why}" if run.why else ""
    failing = f"; it fails, and no way leads past it: {run.failing}" if run.failing else ""
    return f"{run.label}: {kind}, {count}{cost}{why}{failing}"


def _end(bridge: Bridge, folder: str | None) -> None:
    output.line()
    if bridge.chains:
        hops = bridge.chains[0]
        if not hops:
            output.wrapped("no axis differs: the two are launches of one configuration; see: receipts compare A B", 0)
        counted = f"{len(hops)} accepted hop{'s' if len(hops) != 1 else ''}"
        output.line(f"{output.paint('bridged', 'accepted')}: {counted}, {_gain(bridge.total)} on {bridge.metric}")
        return
    if bridge.route is not None and folder is None:
        ends = f"{bridge.a.parsed.id[:12]} {bridge.b.parsed.id[:12]}"
        output.wrapped(f"the plans are written by: receipts bridge {ends} --plan DIR", 0)
    output.line(output.paint(bridge.status, {"refused": "rejected", "open": "inconclusive"}[bridge.status]))


def _why(bridge: Bridge) -> str:
    if bridge.unstated:
        shown = ", ".join(bridge.unstated[:SHOWN_UNSTATED])
        rest = len(bridge.unstated) - SHOWN_UNSTATED
        axes = "1 axis" if len(bridge.unstated) == 1 else f"{len(bridge.unstated)} axes"
        return (
            f"A and B do not both state {axes} ({shown}{f' and {rest} more' if rest > 0 else ''}), "
            "so that no chain makes them equal; state it in both, or the run.context that holds it"
        )
    if bridge.status == "refused":
        return "a hop is refused or impossible on every way from A to B, and no further run would change that"
    if bridge.route is not None and bridge.route.new:
        return "receipts are missing between A and B"
    if bridge.route is not None:
        return "every hop is stored, and not every one is settled"
    if bridge.cut:
        return "not every hop was judged; ask for more with --most N"
    return (
        f"A and B are {len(bridge.counted)} axes apart and no stored chain joins them; name a receipt between the two, "
        "and bridge to it from both"
    )
