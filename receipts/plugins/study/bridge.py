"""A bridge from A to B: the shortest chains of accepted one-axis receipts, or what is missing between the two.

The axis index finds the configurations that have some of the changed axes as A and the others as B; `compare` decides
on every hop, with the same launches of a configuration in each. A bridge is also written as JSON, and as Graphviz text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts import metrics
from receipts.base.errors import UsageError
from receipts.base.units import signed_percent
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import Comparison
from receipts.plugins.study.chain import (
    BridgePoint,
    Chain,
    Hop,
    HopGain,
    Interaction,
    Judge,
    JudgedHop,
    Range,
    interactions,
    ranges,
)
from receipts.plugins.study.lattice import END, MAX_CHAINS, MAX_JUDGED_HOPS, START, Edge, Lattice, Search, graph_of
from receipts.plugins.study.missing_runs import MAX_AXES, Ground, Route, cheapest
from receipts.questions.neighbours import reasons
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.store import Store
    from receipts.store.query.axis_index import Between


MAX_AXES_BEYOND: Final = 6  # axes up to which values are looked for that neither side has
Progress = Callable[[int], None]
Status = Literal["bridged", "refused", "open"]
CODES: Final[Mapping[Status, int]] = {"bridged": 0, "refused": 1, "open": 3}


@dataclass(frozen=True)
class Bridge:
    """What lies between A and B.

    ``counted`` are the axes that a comparison of the two counts. ``direct`` is that comparison, and ``total`` the gain
    of B over A by their own launches, which the gains of every chain add to. ``chains`` are bridges: every hop of them
    is accepted; the best evidenced first, and ``more`` where there are others. ``broken`` is the nearest that the store
    has to one, where it has none; ``hops`` are all that were judged. ``route`` is the cheapest that would complete one.
    ``unstated`` are axes that keep the two from ever being bridged. ``cut``: hops were left unjudged.
    """

    a: BridgePoint
    b: BridgePoint
    metric: str
    counted: tuple[str, ...]
    direct: Comparison
    total: HopGain | None
    chains: tuple[Chain, ...]
    more: bool
    broken: Chain
    hops: tuple[Hop, ...]
    interactions: tuple[Interaction, ...]
    route: Route | None
    unstated: tuple[str, ...]
    between: int
    beyond: bool
    cut: bool
    indexed: bool

    @property
    def status(self) -> Status:
        """Bridged, refused (no run could complete a chain either), or open."""
        if self.chains:
            return "bridged"
        if self.route is not None or self.unstated or self.cut or len(self.counted) > MAX_AXES:
            return "open"
        rejected = not self.broken or any(hop.verdict.status == "rejected" for hop in self.broken)
        return "refused" if rejected else "open"

    @property
    def exit_code(self) -> int:
        """0 a bridge; 1 a hop is refused on every way; 3 hops are missing or open."""
        return CODES[self.status]

    @cached_property
    def ranges(self) -> Mapping[str, Range]:
        """What each axis gave, over the orders in which it was moved."""
        return ranges(self.chains)

    @property
    def refused(self) -> tuple[Hop, ...]:
        """Hops that were judged and do not hold."""
        return tuple(hop for hop in self.hops if not hop.accepted)


def bridge(
    store: Store,
    a: Parsed,
    b: Parsed,
    rulebook: Rulebook,
    *,
    metric: str = metrics.DEFAULT,
    most: int = MAX_JUDGED_HOPS,
    progress: Progress | None = None,
) -> Bridge:
    """The shortest chains of accepted hops from one receipt to another; either may be stored or not.

    At most ``most`` hops are judged; ``progress`` gets how many were. Raises NotFound for a metric that does not
    exist, UsageError for receipts of two lanes or kinds.
    """
    left, right = a.receipt.run, b.receipt.run
    if left.lane != right.lane:
        raise UsageError(
            f"A is of lane {left.lane}, B of {right.lane}: a chain stays in one lane; see: receipts compare A B"
        )
    if left.kind != right.kind:
        raise UsageError(f"A is {left.kind}, B is {right.kind}: a chain holds launches of one kind")
    if left.launch == right.launch:
        raise UsageError(f"A and B are one launch, {left.launch}; name two")
    judge = Judge(store, rulebook, a, b, metrics.get(metric))
    return BridgeBuilder(store, rulebook, judge, metric, most, progress).build()


class BridgeBuilder:
    """The parts of a bridge, each made of those before it. A tool for the planner as well."""

    def __init__(
        self, store: Store, rulebook: Rulebook, judge: Judge, metric: str, most: int, progress: Progress | None
    ) -> None:
        self._store = store
        self._rulebook = rulebook
        self._judge = judge
        self._metric = metric
        self._progress = progress
        self._points: dict[int, BridgePoint] = {START: judge.a, END: judge.b}
        self._between: list[Between] = []
        self._search = Search(graph_of([]), self._ask, most)
        self._numbers: dict[int, int] = {}

    def build(self) -> Bridge:
        a, b = self._judge.a, self._judge.b
        direct = self._judge.compared(a, b)
        # What both do not state alike, no chain makes equal; what merely follows a changed axis is not among it.
        unstated = tuple(gap.axis for gap in direct.verdict.difference.unknown)
        alike = not a.configuration.apart(b.configuration) and not unstated
        beyond = False
        if not alike:
            beyond = self._look(unstated)
        chains = [self._chain(way) for way in self._search.chains()] if not alike else [()]
        held = tuple(sorted(chains, key=_evidence))
        broken = () if held else self._chain(self._search.broken() or ())
        route = None if held or unstated else self._route(direct.verdict)
        hops = tuple(self._hop(edge) for edge in self._search.judged)
        return Bridge(
            a=a,
            b=b,
            metric=self._metric,
            counted=direct.verdict.counted,
            direct=direct.verdict,
            total=direct.gain,
            chains=held,
            more=len(held) == MAX_CHAINS,
            broken=broken,
            hops=hops,
            interactions=tuple(interactions(self._judge, hops)),
            route=route,
            unstated=unstated,
            between=sum(item.newest is not None for item in self._between),
            beyond=beyond,
            cut=self._search.spent,
            indexed=self._store.query.holds_lane(a.configuration),
        )

    def _look(self, unstated: Sequence[str]) -> bool:
        """Find what lies between and judge it; whether values were looked for that neither side has."""
        a, b = self._judge.a.configuration, self._judge.b.configuration
        kind, differing = self._judge.a.parsed.receipt.run.kind, sorted(a.apart(b))
        if not unstated:
            self._between = self._store.query.mixtures(a, b, differing, kind)
        self._run()
        if unstated or self._search.chains() or len(differing) > MAX_AXES_BEYOND or self._search.spent:
            return False
        mixtures = self._store.query.mixtures(a, b, differing, kind, beyond=True)
        if mixtures:
            self._between += mixtures
            self._run()
        return True

    def _run(self) -> None:
        """Judge the chains over all that was found; what was judged before stays judged."""
        ends = [self._judge.a.configuration, self._judge.b.configuration]
        whole = [*ends, *(item.configuration for item in self._between)]
        failed = {at for at, item in enumerate(self._between, len(ends)) if item.newest is None}
        chart = graph_of(whole, [item.axis for item in metrics.get(self._metric).indifferent])
        for gone in failed:
            for other in chart.links.pop(gone, {}):
                del chart.links[other][gone]
        self._search.graph = chart
        self._search.run()

    def _ask(self, edge: Edge) -> JudgedHop:
        judged = self._judge.compared(self._point(edge[0]), self._point(edge[1]))
        if self._progress is not None:
            self._progress(len(self._search.judged) + 1)
        return judged

    def _point(self, number: int) -> BridgePoint:
        if number not in self._points:
            newest = self._between[number - 2].newest
            assert newest is not None  # one without is joined to nothing
            self._points[number] = self._judge.stored(newest.id)
        return self._points[number]

    def _hop(self, edge: Edge) -> Hop:
        judged = self._search.judged[edge]
        here, there = self._point(edge[0]), self._point(edge[1])
        links = self._search.graph.links
        axis = links.get(edge[0], {}).get(edge[1]) or ", ".join(judged.verdict.counted)
        verdict = judged.verdict
        why = verdict.headline.effect.why if verdict.headline is not None else ""
        reason = "" if verdict.status == "accepted" else next(reasons(verdict, self._rulebook.rules), why)
        return Hop(here, there, axis, verdict, judged.gain, reason)

    def _chain(self, way: Sequence[int]) -> Chain:
        return tuple(self._hop(edge) for edge in pairwise(way) if self._search.judge(edge) is not None)

    def _route(self, direct: Comparison) -> Route | None:
        if not direct.counted or len(direct.counted) > MAX_AXES:
            return None
        lattice = Lattice(self._judge, self._rulebook, direct.counted)
        self._numbers, failing = {0: START, lattice.full: END}, {}
        for number, item in enumerate(self._between, 2):
            place = lattice.place(item.configuration)
            if place is None or place in (0, lattice.full):
                continue
            if item.newest is None and item.failed is not None:
                failing[place] = f"{item.failed.name} ended {item.failed.outcome}"
            elif place not in self._numbers or lattice.whole(place) == item.configuration.whole:
                self._numbers[place] = number
        stored = {place: self._point(number) for place, number in self._numbers.items()}
        failing = {place: why for place, why in failing.items() if place not in stored}
        return cheapest(Ground(lattice, stored, failing, self), self._judge)

    # What the planner asks, by places of the lattice

    def known(self, here: int, there: int) -> Hop | None:
        """A hop that was judged, or None."""
        edge = self._numbers.get(here, -1), self._numbers.get(there, -1)
        return self._hop(edge) if edge in self._search.judged else None

    def judge(self, here: int, there: int) -> Hop | None:
        """A hop judged now; None if no further one may be."""
        edge = self._numbers[here], self._numbers[there]
        return self._hop(edge) if self._search.judge(edge) is not None else None


def _evidence(chain: Chain) -> tuple[int, int, tuple[str, ...]]:
    """The chain whose weakest configuration has the most launches first; then the one with the most in all."""
    counts = [len(hop.b.launches) for hop in chain[:-1]]
    return -min(counts, default=0), -sum(counts), tuple(hop.axis for hop in chain)


MAX_LISTED: Final = 24  # chains: four axes in every order; what each axis gave is of all of them


def bridge_as_data(bridge: Bridge) -> dict[str, Any]:
    """The whole answer, with the best evidenced chains.

    Ratios are of the metric, B's over A's; `log_ratio` is what adds up along a chain.
    """
    return {
        "status": bridge.status,
        "metric": bridge.metric,
        "lane": bridge.a.parsed.receipt.run.lane,
        "a": _point(bridge.a),
        "b": _point(bridge.b),
        "axes": list(bridge.counted),
        "total": _gain(bridge.total),
        "chains": [list(map(_hop, chain)) for chain in bridge.chains[:MAX_LISTED]],
        "chains_found": len(bridge.chains),
        "more_chains": bridge.more,
        "by_axis": {
            axis: {"low": math.exp(item.low), "high": math.exp(item.high)} for axis, item in bridge.ranges.items()
        },
        "interactions": [
            {
                "axes": list(item.axes),
                "corners": [corner.parsed.id for corner in item.corners],
                "first": [_gain(gain) for gain in item.first],
                "second": [_gain(gain) for gain in item.second],
                "together": _gain(item.together),
                "status": item.status,
                "shown": item.shown,
            }
            for item in bridge.interactions
        ],
        "broken": list(map(_hop, bridge.broken)) or None,
        "refused": [_hop(hop) for hop in bridge.refused],
        "missing": _route(bridge.route) if bridge.route is not None else None,
        "unstated": list(bridge.unstated),
        "stored_between": bridge.between,
        "looked_beyond": bridge.beyond,
        "hops_judged": len(bridge.hops),
        "cut": bridge.cut,
        "indexed": bridge.indexed,
    }


def _point(item: BridgePoint) -> dict[str, Any]:
    return {
        "receipt": item.parsed.id,
        "label": item.parsed.receipt.run.label,
        "launches": [other.id for other in item.launches],
    }


def _gain(item: HopGain | None) -> dict[str, Any] | None:
    if item is None:
        return None
    low, high = item.interval or (None, None)
    return {"ratio": item.ratio, "log_ratio": item.log, "low": low, "high": high, "measured": item.measured}


def _hop(hop: Hop) -> dict[str, Any]:
    effect = hop.verdict.headline.effect if hop.verdict.headline is not None else None
    return {
        "axis": hop.axis,
        "members": [{"path": item.path, "from": item.a, "to": item.b} for item in hop.members],
        "a": _point(hop.a),
        "b": _point(hop.b),
        "gain": _gain(hop.gain),
        "status": hop.verdict.status,
        "comparable": hop.verdict.comparable,
        "path": hop.verdict.path,
        "effect": hop.verdict.effect,
        "compared": {"ratio": effect.ratio, "low": effect.low, "high": effect.high, "design": effect.design}
        if effect is not None
        else None,
        "reason": hop.reason or None,
    }


def _route(route: Route) -> dict[str, Any]:
    return {
        "new": len(route.new),
        "runs": [
            {
                "configuration": item.label,
                "axes_as_b": list(item.moved),
                "new": item.stored is None,
                "receipt": item.stored.parsed.id if item.stored is not None else None,
                "launches": item.launches,
                "afresh": item.afresh,
                "why": item.why or None,
                "failing": item.failing or None,
                "chip_seconds_per_step": item.chip_seconds,
            }
            for item in route.runs
        ],
        "chain": [item._asdict() for item in route.legs],
        "avoided": [{"configuration": label, "why": why} for label, why in route.avoided],
    }


def bridge_as_dot(bridge: Bridge) -> str:
    """The configurations and the hops between them in Graphviz' language: what is not accepted is dashed."""
    lines = ['rankdir=LR; node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif"];']
    points = {item.parsed.id: item for hop in bridge.hops for item in (hop.a, hop.b)}
    points = {bridge.a.parsed.id: bridge.a, bridge.b.parsed.id: bridge.b, **points}
    names = {name: f"c{number}" for number, name in enumerate(points)}
    for name, point in points.items():
        end = ", style=bold" if point is bridge.a or point is bridge.b else ""
        counted = f"{len(point.launches)} launch{'es' if len(point.launches) != 1 else ''}"
        lines.append(f"{names[name]} [label={_quoted(point.name, f'{name[:12]} · {counted}')}{end}];")
    for hop in bridge.hops:
        style = "" if hop.accepted else f', style=dashed, color="{_COLOURS[hop.verdict.status]}"'
        ratio = percent(hop.gain.log) if hop.gain is not None else "~"
        label = _quoted(hop.axis, ratio if hop.accepted else f"{ratio} · {hop.verdict.status}")
        lines.append(f"{names[hop.a.parsed.id]} -> {names[hop.b.parsed.id]} [label={label}{style}];")
    if bridge.route is not None:
        # Configurations that have not been launched, and the hops that would lead over them.
        places = {point.name: names[name] for name, point in points.items()}
        for number, run in enumerate(bridge.route.new):
            places[run.label] = f"m{number}"
            lines.append(f"m{number} [label={_quoted(run.label, f'{run.launches} launches missing')}, style=dotted];")
        for leg in bridge.route.legs:
            if leg.state == "not run":
                lines.append(f"{places[leg.a]} -> {places[leg.b]} [label={_quoted(leg.axis)}, style=dotted];")
    return "\n".join(["digraph bridge {", *(f"  {line}" for line in lines), "}"]) + "\n"


_COLOURS = {"rejected": "red", "inconclusive": "gray40"}


def _quoted(*lines: str) -> str:
    text = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return f'"{"".join(char if char.isprintable() else "�" for char in text)}"'


def percent(log: float) -> str:
    """A log ratio as a change in percent."""
    return signed_percent(math.expm1(log), 2)
