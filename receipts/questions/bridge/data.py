"""A bridge as JSON, and as Graphviz text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from receipts.questions.bridge.bridge import Bridge
from receipts.questions.bridge.chain import Chain, Hop, Interaction
from receipts.questions.bridge.gain import HopGain
from receipts.questions.bridge.missing import MissingRun, Route
from receipts.questions.bridge.point import BridgePoint

MOST_LISTED: Final = 24  # chains: four axes in every order; what each axis gave is of all of them


def as_data(bridge: Bridge) -> dict[str, Any]:
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
        "chains": [_chain(chain) for chain in bridge.chains[:MOST_LISTED]],
        "chains_found": len(bridge.chains),
        "more_chains": bridge.more,
        "by_axis": {
            axis: {"low": math.exp(item.low), "high": math.exp(item.high)} for axis, item in bridge.ranges.items()
        },
        "interactions": [_interaction(item) for item in bridge.interactions],
        "broken": _chain(bridge.broken) if bridge.broken else None,
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


def _chain(chain: Chain) -> list[dict[str, Any]]:
    return [_hop(hop) for hop in chain]


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


def _interaction(item: Interaction) -> dict[str, Any]:
    return {
        "axes": list(item.axes),
        "corners": [corner.parsed.id for corner in item.corners],
        "first": [_gain(gain) for gain in item.first],
        "second": [_gain(gain) for gain in item.second],
        "together": _gain(item.together),
        "status": item.status,
        "shown": item.shown,
    }


def _route(route: Route) -> dict[str, Any]:
    return {
        "new": len(route.new),
        "runs": [_run(item) for item in route.runs],
        "chain": [item._asdict() for item in route.legs],
        "avoided": [{"configuration": label, "why": why} for label, why in route.avoided],
    }


def _run(item: MissingRun) -> dict[str, Any]:
    return {
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


def dot(bridge: Bridge) -> str:
    """The configurations and the hops between them in Graphviz' language: what is not accepted is dashed."""
    return "\n".join(["digraph bridge {", *(f"  {line}" for line in _lines(bridge)), "}"]) + "\n"


def _lines(bridge: Bridge) -> Iterator[str]:
    yield 'rankdir=LR; node [shape=box, fontname="sans-serif"]; edge [fontname="sans-serif"];'
    points = {item.parsed.id: item for hop in bridge.hops for item in (hop.a, hop.b)}
    points = {bridge.a.parsed.id: bridge.a, bridge.b.parsed.id: bridge.b, **points}
    names = {name: f"c{number}" for number, name in enumerate(points)}
    for name, point in points.items():
        end = ", style=bold" if point is bridge.a or point is bridge.b else ""
        counted = f"{len(point.launches)} launch{'es' if len(point.launches) != 1 else ''}"
        yield f"{names[name]} [label={_quoted(point.name, f'{name[:12]} · {counted}')}{end}];"
    for hop in bridge.hops:
        style = "" if hop.accepted else f', style=dashed, color="{_COLOURS[hop.verdict.status]}"'
        ratio = percent(hop.gain.log) if hop.gain is not None else "~"
        label = _quoted(hop.axis, ratio if hop.accepted else f"{ratio} · {hop.verdict.status}")
        yield f"{names[hop.a.parsed.id]} -> {names[hop.b.parsed.id]} [label={label}{style}];"
    if bridge.route is not None:
        yield from _planned(bridge.route, {point.name: names[name] for name, point in points.items()})


_COLOURS = {"rejected": "red", "inconclusive": "gray40"}


def _planned(route: Route, names: dict[str, str]) -> Iterator[str]:
    """Configurations that nobody launched, and the hops that would lead over them."""
    for number, run in enumerate(route.new):
        names[run.label] = f"m{number}"
        yield f"m{number} [label={_quoted(run.label, f'{run.launches} launches missing')}, style=dotted];"
    for leg in route.legs:
        if leg.state == "not run":
            yield f"{names[leg.a]} -> {names[leg.b]} [label={_quoted(leg.axis)}, style=dotted];"


def _quoted(*lines: str) -> str:
    text = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return f'"{"".join(char if char.isprintable() else "�" for char in text)}"'


def percent(log: float) -> str:
    """A log ratio as a change in percent."""
    return f"{math.expm1(log) * 100:+.2f} %"
