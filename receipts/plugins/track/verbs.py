"""``receipts history``, ``watch`` and ``incident``: a line over time, where its level changed, and incidents.

An incident opens where a line became slower, and closes where it recovered.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from receipts.base.errors import NotFound, UsageError
from receipts.cli import output
from receipts.cli.compare import METRIC
from receipts.cli.session import Answer, Session, group, one, verb

if TYPE_CHECKING:
    from receipts.plugins.track.line import History, Point
    from receipts.store import Store
    from receipts.store.query.replicates import Line


SHAPES = ("accelerator", "chips", "sequence_length", "micro_batch", "global_batch", "depth", "model", "context")


@verb("history")
@click.argument("receipt", required=False, metavar="REF")
@click.option("--lane", metavar="LANE", help="The lines of a lane, instead of one receipt's line.")
@click.option("--shape", metavar="NAME=VALUE,…", help=f"Of a lane, only lines of this shape: {', '.join(SHAPES)}.")
@METRIC
@click.option("--axis", metavar="LEAF", help="Also show the value of this leaf at each launch, such as wheels.jaxlib.")
@click.option("--until", metavar="TIME", help="Only launches up to then.")
@click.option("--svg", metavar="FILE", help="Also write the picture.")
def history_command(
    session: Session,
    receipt: str | None,
    lane: str | None,
    shape: str | None,
    metric: str,
    axis: str | None,
    until: str | None,
    svg: str | None,
) -> Answer:
    """Show a line over time: its launches, where the level changed, and which axes moved there.

    REF is a file, an id or unique prefix, a label, or a @pin.

    Examples:
      receipts history 3f9c
      receipts history @golden --metric step_seconds --axis wheels.jaxlib
      receipts history --lane nvidia-megatron --shape chips=8,sequence_length=4096
      receipts history 3f9c --svg history.svg

    A line is a configuration over time: its launches differ in code, wheels, image and driver alone. More:
    docs/history.md. Exit codes: 0 shown, 2 wrong call or input, 3 fewer than two launches.
    """
    from receipts.base.environment import extra
    from receipts.base.units import moment
    from receipts.plugins.track.line import history_of
    from receipts.plugins.track.pages import history_page, history_picture
    from receipts.store.query.terms import path_of

    if (receipt is None) == (lane is None):
        raise UsageError("name a receipt, or a lane with --lane")
    if shape is not None and lane is None:
        raise UsageError("--shape narrows --lane; name the lane")
    extra("ruptures", "history")
    last = moment("--until", until) if until else None
    store = session.store
    axis = path_of(axis) if axis is not None else None
    if lane is not None:
        chosen = _lines(session, store, lane, shape)
        if len(chosen) > 1:
            return _several(session, store, lane, chosen, metric)
        receipt = chosen[0].entries[-1].id
    like = one(store, str(receipt))
    line = history_of(store, like, session.rulebook.lanes.of(like.receipt.run.lane), metric, last)
    values = [_value(store, point.id, axis) for point in line.points] if axis else []
    name = like.receipt.run.label or like.id[:12]
    if svg is not None:
        output.picture(svg, history_picture(line, name), "fewer than two launches")
    own = {"axis": dict(zip((point.id for point in line.points), values, strict=True))} if axis else {}
    return Answer(
        lambda: history_as_data(line) | own,
        lambda: history_page(line, name, values, axis or ""),
        0 if len(line.points) > 1 else 3,
    )


def _value(store: Store, name: str, axis: str) -> str:
    """The value of a leaf at one launch; a wheel by its version."""
    stated = store.parsed(name).stated
    value = stated.get(axis, stated.get(f"{axis}.version"))
    return "~" if value is None else str(value)


def _lines(session: Session, store: Store, lane: str, shape: str | None) -> list[Line]:
    """Lines of a lane and shape, the longest first. Raises NotFound, UsageError."""
    session.rulebook.lanes.get(lane)
    wanted = dict(part.partition("=")[::2] for part in (shape or "").split(",") if part.strip())
    strange = [name for name in wanted if name.strip() not in SHAPES]
    if strange:
        raise UsageError(f"--shape: {strange[0]!r} is not part of a shape; it is one of {', '.join(SHAPES)}")
    lines = [
        line
        for line in store.query.recent_lines(datetime(1970, 1, 1, tzinfo=UTC), lane)
        if all(str(getattr(line.entries[-1], name.strip())) == value.strip() for name, value in wanted.items())
    ]
    if not lines:
        raise NotFound(f"the store has no line of lane {lane}{f' and shape {shape}' if shape else ''}")
    return sorted(lines, key=lambda line: -len(line.entries))


def _several(session: Session, store: Store, lane: str, chosen: list[Line], metric: str) -> Answer:
    from receipts import metrics
    from receipts.plugins.track.line import history
    from receipts.plugins.track.pages import lines

    rules = session.rulebook.lanes.of(lane)
    shown = [history(item.entries, item.digest, rules, metrics.get(metric), store.parsed) for item in chosen]
    return Answer(lambda: [history_as_data(item) for item in shown], lambda: lines(lane, shown))


def history_as_data(line: History) -> dict[str, Any]:
    """A line as JSON: values in the metric's own unit, ratios after over before."""
    from receipts.plugins.track.watch import as_data as change_data

    return {
        "lane": line.lane,
        "kind": line.kind,
        "metric": line.metric,
        "delta": line.delta,
        "launches": [_launch(point) for point in line.points],
        "left_out": line.left_out,
        "hosts": line.hosts,
        "changes": [{**change_data(line, item), "incident": item.is_incident} for item in line.changes],
    }


def _launch(point: Point) -> dict[str, Any]:
    row = asdict(point)
    return {"receipt": row.pop("id"), **row, "started": point.started.isoformat()}


@verb("watch")
@click.option("--since", metavar="TIME", default="7d", show_default=True, help="Lines with a launch submitted since.")
@click.option("--lane", metavar="LANE", help="One lane only.")
@METRIC
@click.option("--owner", metavar="NAME", help="Who looks after incidents that open now.")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
def watch_command(session: Session, since: str, lane: str | None, metric: str, owner: str | None, form: str) -> Answer:
    """Look at every line with new launches; open an incident where one stepped for the worse.

    Examples:
      receipts watch
      receipts watch --since 1d --lane nvidia-megatron --owner perf-oncall
      receipts watch --since 7d --format markdown

    Run it after every submit, or from cron: one change point is one incident, however many runs see it. A step counts
    once a second launch confirms it. Exit codes: 0 nothing new, 1 a new incident, 2 wrong call, 4 the store failed.
    """
    from receipts.base.environment import extra
    from receipts.base.units import moment
    from receipts.plugins.track.pages import watched
    from receipts.plugins.track.watch import watch
    from receipts.publish.markdown import markdown

    extra("ruptures", "history")
    if lane is not None:
        session.rulebook.lanes.get(lane)
    begin = moment("--since", since)
    seen = watch(session.store, session.rulebook, begin, metric=metric, lane=lane, owner=owner)
    groups = {"opened": seen.opened, "closed": seen.closed, "open": seen.still_open}
    data = {name: [item._asdict() for item in events] for name, events in groups.items()}  # type: ignore[attr-defined]
    shown = watched(seen)
    session.as_json |= form == "json"
    printed = markdown(shown) if form == "markdown" else shown
    return Answer({"lines": seen.lines, **data}, printed, 1 if seen.opened else 0)


@group("incident")
def incident() -> None:
    """List the incidents that watch opened, or close one.

    Examples:
      receipts incident list
      receipts incident list --all --json
      receipts incident close 4f2a --reason "expected: the new data mix"

    An incident that is closed is not opened again for the same change point.
    """


@verb("list", of=incident)
@click.option("--all", "every", is_flag=True, help="Closed ones too.")
def incident_list(session: Session, every: bool) -> Answer:
    """List incidents, open ones first.

    Examples:
      receipts incident list
      receipts incident list --all --json
    """
    from receipts.plugins.track.watch import most_recent
    from receipts.publish.report.regressions import incidents

    shown = [item for item in most_recent(session.store.published.incidents()) if every or item.closed is None]
    return Answer([item._asdict() for item in shown], incidents(shown))


@verb("close", of=incident)
@click.argument("incident", metavar="ID")
@click.option("--reason", required=True, help="Why; it stays with the incident.")
def incident_close(session: Session, incident: str, reason: str) -> Answer:
    """Close an incident, with the reason.

    Examples:
      receipts incident close 4f2a --reason "expected: the new data mix"

    The id may be shortened while it names one incident.
    """
    from receipts.plugins.track import watch

    closed = watch.close(session.store, incident, reason)
    return Answer(closed._asdict(), f"closed {closed.id}: {reason}")
