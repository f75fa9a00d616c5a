"""Watching lines: incidents that open where a line stepped for the worse, and close where its level came back.

A line is watched that has a launch of the last week, or an open incident; ``/metrics`` has its gauges.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts import metrics
from receipts.base.units import signed_percent
from receipts.plugins.track.line import CONFIDENCE, History, LineChange, history
from receipts.store.decisions import Incident, IncidentEvent

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.store import Store

MIN_LAUNCHES: Final = 4  # of a line, before a step can be confirmed
NEAR: Final = 2  # launches by which a later run of watch may place the same change elsewhere
SINCE: Final = timedelta(days=7)
MAX_LINES: Final = 200  # those that ran last
GAUGES: Final = {
    "level": "The metric since the last step of the line, in the unit of the metric",
    "low": "The low end of the 95 % interval of the level",
    "high": "The high end of the 95 % interval of the level",
    "open_incidents": "Incidents that are open",
}


@dataclass(frozen=True, slots=True)
class Watched:
    """What a run of watch saw: incidents that it opened and closed, and those that stay open.

    ``listed`` are changes since then that are no incident: drifts, better levels, other hosts, other measuring.
    """

    lines: int
    opened: tuple[IncidentEvent, ...]
    closed: tuple[IncidentEvent, ...]
    still_open: tuple[Incident, ...]
    listed: tuple[tuple[History, LineChange], ...]

    @property
    def notices(self) -> Iterator[Notice]:
        """What happened, in the order in which it did. An incident of a line that has one already makes it *worse*."""
        is_open = Counter([*map(_thread, self.still_open), *map(_thread, self.closed)])
        for event in (*self.opened, *self.closed):
            thread = _thread(event)
            was_open = is_open[thread] > 0
            is_open[thread] += 1 if event.event == "opened" else -1
            yield notice("worse" if event.event == "opened" and was_open else event.event, event, is_open[thread])


class Notice(NamedTuple):
    """A notice of an incident: its type, a sentence, and its data.

    ``thread`` of the data names the line, so that all of it stands in one place; ``open`` counts its open incidents.
    """

    type: str
    text: str
    data: dict[str, Any]


def notice(what: str, item: Incident | IncidentEvent, is_open: int, reason: str | None = None) -> Notice:
    """A notice of an incident: *opened*, *worse* or *closed*; ``reason`` is that of the event, where it has another."""
    why = reason if reason is not None else item.reason if isinstance(item, IncidentEvent) else item.why
    name = item.incident if isinstance(item, IncidentEvent) else item.id
    data = {**item.body, "incident": name, "line": item.line, "kind": item.kind, "metric": item.metric}
    about = f" ({item.metric} from {item.body['name']} on)" if what == "closed" else ""
    text = f"{item.body['lane']}: {why}{about}"
    data |= {"reason": why, "owner": item.owner, "thread": _thread(item), "open": is_open}
    return Notice(f"incident.{what}", text, data)


def _thread(item: Incident | IncidentEvent) -> str:
    return f"line {item.line} {item.kind} {item.metric}"


def watch(
    store: Store,
    rulebook: Rulebook,
    since: datetime,
    *,
    metric: str = metrics.DEFAULT,
    lane: str | None = None,
    owner: str | None = None,
) -> Watched:
    """Look at every line with a launch since a moment; records what opened and what closed, in one transaction."""
    lines = store.query.recent_lines(since, lane)
    chosen = [line for line in lines if len(line.entries) >= MIN_LAUNCHES]
    known: dict[tuple[int, str], list[Incident]] = {}
    for incident in store.published.incidents([line.digest for line in chosen]):
        if incident.metric == metric:
            known.setdefault((incident.line, incident.kind), []).append(incident)
    opened: list[IncidentEvent] = []
    closed: list[IncidentEvent] = []
    still: list[Incident] = []
    listed: list[tuple[History, LineChange]] = []
    for line in chosen:
        head = line.entries[-1]
        seen = history(line.entries, line.digest, rulebook.lanes.of(head.lane), metrics.get(metric), store.parsed)
        mine = known.get((line.digest, head.kind), [])
        for item in seen.changes:
            if item.is_incident and not any(_same(seen, item, other) for other in mine):
                place = f"{seen.line}\0{seen.kind}\0{seen.metric}\0{item.first.id}"
                name = hashlib.sha256(place.encode()).hexdigest()[:12]
                suspects = ", ".join(item.moved) or "no axis that the receipts state"
                change = signed_percent(item.change.ratio - 1.0)
                reason = f"{seen.metric} {change} from {item.first.name} on; moved: {suspects}"
                data = as_data(seen, item)
                opened.append(IncidentEvent(name, "opened", seen.line, seen.kind, seen.metric, data, reason, owner))
        for other in mine:
            if other.closed is None:
                back = _is_back(seen, other)
                if back:
                    closed.append(_closing(other, back))
                else:
                    still.append(other)
        listed += [(seen, item) for item in seen.changes if not item.is_incident and item.first.started >= since]
    store.published.record_incidents([*opened, *closed])
    return Watched(len(chosen), tuple(opened), tuple(closed), tuple(still), tuple(listed))


def close(store: Store, name: str, reason: str) -> tuple[Incident, Notice]:
    """Close an incident by its id or the start of it. Raises NotFound, UsageError."""
    from receipts.base.errors import NotFound, UsageError

    every = [item for item in store.published.incidents() if item.id.startswith(name.lower())]
    if not every:
        raise NotFound(f"there is no incident {name}; see: receipts incident list --all")
    if len(every) > 1:
        raise UsageError(f"{name} is the start of {len(every)} incidents; give more of the id")
    if every[0].closed is not None:
        raise UsageError(f"incident {every[0].id} is closed already: {every[0].closed_why}")
    store.published.record_incidents([_closing(every[0], reason)])
    others = [item for item in store.published.incidents([every[0].line]) if item.closed is None]
    is_open = sum(_thread(item) == _thread(every[0]) for item in others)
    return every[0], notice("closed", every[0], is_open, reason)


def _closing(item: Incident, reason: str) -> IncidentEvent:
    return IncidentEvent(item.id, "closed", item.line, item.kind, item.metric, item.body, reason, item.owner)


def as_data(seen: History, item: LineChange) -> dict[str, Any]:
    """A change as JSON."""
    # The geometric means before and after a change.
    at = item.change.at if item.kind != "drift" else (item.change.start + item.change.stop) // 2
    sides = (seen.points[item.change.start : at], seen.points[at : item.change.stop])
    means = [math.exp(math.fsum(math.log(point.value) for point in side) / len(side)) for side in sides]
    before, after = means[0], means[1]
    return {
        "lane": seen.lane,
        "change": item.kind,
        "ratio": item.change.ratio,
        "low": item.change.low,
        "high": item.change.high,
        "before": before,
        "after": after,
        "moved": list(item.moved),
        "unknown": list(item.unknown),
        "regime": list(item.regime),
        "last": item.last.id,
        "first": item.first.id,
        "started": item.first.started.isoformat(),
        "name": item.first.name,
        "launches": [item.change.at - item.change.start, item.change.stop - item.change.at],
    }


def _same(seen: History, item: LineChange, other: Incident) -> bool:
    """Whether a change is the one of an incident: the same direction, and no more than `NEAR` launches away."""
    ids = [point.id for point in seen.points]
    places = [ids.index(name) for name in (other.body["first"], other.body["last"]) if name in ids]
    if not places:  # its launches no longer stand, or are older than what is looked at
        return item.first.started <= datetime.fromisoformat(other.body["started"])
    return min(abs(item.change.at - place) for place in places) <= NEAR


def _is_back(seen: History, other: Incident) -> str:
    """Why an incident is over: the last level lies within δ of the one before it; empty where it is not.

    It takes a confirmed step back, so at least two launches.
    """
    if not seen.changes or seen.level is None:
        return ""
    level, launches = seen.level
    better = metrics.get(seen.metric).better
    ratio = level / other.body["before"]
    worse = ratio if better == "lower" else 1.0 / ratio
    last = seen.changes[-1]
    if last.is_incident or last.kind == "drift" or worse > 1.0 + seen.delta:
        return ""
    return f"the level is back: {signed_percent(ratio - 1.0)} of what it was before, over {launches} launches"


def gauges(store: Store, rulebook: Rulebook) -> Iterator[str]:
    """Lines of OpenMetrics; none where the extra `history` is not installed."""
    if importlib.util.find_spec("ruptures") is None:
        return
    is_open = [item for item in store.published.incidents() if item.closed is None]
    count = Counter((item.line, item.kind, item.metric) for item in is_open)
    values: dict[tuple[int, str, str], tuple[str, str, dict[str, float]]] = {
        (item.line, item.kind, item.metric): (item.body["lane"], item.body["name"], {}) for item in is_open
    }
    lines = store.query.recent_lines(datetime.now(UTC) - SINCE)
    recent = [line for line in lines if len(line.entries) >= MIN_LAUNCHES]
    for line in sorted(recent, key=lambda line: line.entries[-1].started)[-MAX_LINES:]:
        head = line.entries[-1]
        others = (metric for number, kind, metric in count if (number, kind) == (line.digest, head.kind))
        for metric in {metrics.DEFAULT, *others}:
            rules = rulebook.lanes.of(head.lane)
            seen = history(line.entries, line.digest, rules, metrics.get(metric), store.parsed)
            values[line.digest, head.kind, metric] = (head.lane, head.name, _level(seen))
    rows: list[tuple[str, dict[str, float]]] = []
    for (number, kind, metric), (lane, label, level) in sorted(values.items()):
        named = {"lane": lane, "kind": kind, "line": f"{number & (1 << 64) - 1:016x}", "label": label, "metric": metric}
        # On one line, as OpenMetrics quotes a value.
        quoted = (value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for value in named.values())
        labels = ",".join(f'{key}="{value}"' for key, value in zip(named, quoted, strict=True))
        rows.append((labels, {**level, "open_incidents": float(count[number, kind, metric])}))
    for name, text in GAUGES.items():
        yield f"# TYPE receipts_line_{name} gauge"
        yield f"# HELP receipts_line_{name} {text}"
        yield from (f"receipts_line_{name}{{{labels}}} {row[name]:.10g}" for labels, row in rows if name in row)


def _level(seen: History) -> dict[str, float]:
    """The level with the interval that the spread of its launches gives; nothing of what is not known."""
    from receipts.stats.log_ratio import RatioEstimate, pooled

    if seen.level is None:
        return {}
    level, launches = seen.level
    sigma = pooled([seen.logs])
    if sigma is None:
        return {"level": level}
    widen = math.exp(RatioEstimate(0.0, sigma.value / math.sqrt(launches), sigma.df).half_width(CONFIDENCE))
    return {"level": level, "low": level / widen, "high": level * widen}
