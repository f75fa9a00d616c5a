"""``receipts history``: a line over time, and where its level changed."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from receipts.base.errors import NotFound, UsageError
from receipts.cli import output
from receipts.cli.session import Session, one
from receipts.cli.sides import METRIC
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.questions.history.line import History, Point
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
def command(
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
    from receipts.publish.history import page, picture
    from receipts.questions.history.line import history_of
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
        output.picture(svg, picture(line, name), "fewer than two launches")
    own = {"axis": dict(zip((point.id for point in line.points), values, strict=True))} if axis else {}
    return Answer(
        lambda: as_data(line) | own, lambda: page(line, name, values, axis or ""), 0 if len(line.points) > 1 else 3
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
    from receipts.publish.history import lines
    from receipts.questions.history.line import history

    rules = session.rulebook.lanes.of(lane)
    shown = [history(item.entries, item.digest, rules, metrics.get(metric), store.parsed) for item in chosen]
    return Answer(lambda: [as_data(item) for item in shown], lambda: lines(lane, shown))


def as_data(line: History) -> dict[str, Any]:
    """A line as JSON: values in the metric's own unit, ratios after over before."""
    from receipts.questions.history.watch import as_data as change_data

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
