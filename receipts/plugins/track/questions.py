"""``history`` and ``incident list``: a line over time, where its level changed, and the incidents that it opened."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from receipts.api.question import FLAG, MOMENT, RECEIPT, WORD, File, Metric, Param, question
from receipts.base.errors import NotFound, UsageError

if TYPE_CHECKING:
    from receipts.api.answer import Answer
    from receipts.api.session import Session
    from receipts.plugins.track.line import History
    from receipts.store import Store
    from receipts.store.query.replicates import Line

SHAPES = ("accelerator", "chips", "sequence_length", "micro_batch", "global_batch", "depth", "model", "context")


@question(
    "history",
    costly=True,
    forms=("csv",),
    files={"svg": File(("--svg",), "image/svg+xml", "Also write the picture.", without="fewer than two launches")},
)
def history(
    session: Session,
    receipt: Annotated[Any, Param(RECEIPT, "The receipt", metavar="REF")] = None,
    *,
    lane: Annotated[
        str | None, Param(WORD, "The lines of a lane, instead of one receipt's line.", ("--lane",), "LANE")
    ] = None,
    shape: Annotated[
        str | None,
        Param(WORD, f"Of a lane, only lines of this shape: {', '.join(SHAPES)}.", ("--shape",), "NAME=VALUE,…"),
    ] = None,
    metric: Metric = "tokens_per_second",
    axis: Annotated[
        str | None,
        Param(WORD, "Also show the value of this leaf at each launch, such as wheels.jaxlib.", ("--axis",), "LEAF"),
    ] = None,
    until: Annotated[datetime | None, Param(MOMENT, "Only launches up to then.", ("--until",), "TIME")] = None,
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
    from receipts.api.answer import Answer
    from receipts.base.environment import extra
    from receipts.plugins.track.line import history_of
    from receipts.plugins.track.pages import history_page, history_picture
    from receipts.publish.svg import svg_file
    from receipts.store.query.terms import path_of

    if (receipt is None) == (lane is None):
        raise UsageError("name a receipt, or a lane with --lane")
    if shape is not None and lane is None:
        raise UsageError("--shape narrows --lane; name the lane")
    extra("ruptures", "history")
    store = session.store
    axis = path_of(axis) if axis is not None else None
    if lane is not None:
        chosen = _lines(session, store, lane, shape)
        if len(chosen) > 1:
            return _several(session, store, lane, chosen, metric)
        receipt = chosen[0].entries[-1].id
    like = session.one(receipt)
    line = history_of(store, like, session.rulebook.lanes.of(like.receipt.run.lane), metric, until)
    values = [_value(store, point.id, axis) for point in line.points] if axis else []
    name = like.receipt.run.label or like.id[:12]

    own = {"axis": dict(zip((point.id for point in line.points), values, strict=True))} if axis else {}
    data = history_as_data(line) | own
    return Answer(
        data,
        lambda: history_page(line, name, values, axis or ""),
        0 if len(line.points) > 1 else 3,
        rows=data["launches"],
        files={"svg": lambda: svg_file(history_picture(line, name))},
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
    from receipts.api.answer import Answer
    from receipts.plugins.track.line import history
    from receipts.plugins.track.pages import lines

    rules = session.rulebook.lanes.of(lane)
    shown = [history(item.entries, item.digest, rules, metrics.get(metric), store.parsed) for item in chosen]
    data = [history_as_data(item) for item in shown]
    return Answer(data, lambda: lines(lane, shown), rows=data)


def history_as_data(line: History) -> dict[str, Any]:
    """A line as JSON: values in the metric's own unit, ratios after over before."""
    from dataclasses import asdict

    from receipts.plugins.track.watch import as_data as change_data

    launches = [{"receipt": row.pop("id"), **row} for row in map(asdict, line.points)]
    return {
        "lane": line.lane,
        "kind": line.kind,
        "metric": line.metric,
        "delta": line.delta,
        "launches": [{**row, "started": row["started"].isoformat()} for row in launches],
        "left_out": line.left_out,
        "hosts": line.hosts,
        "changes": [{**change_data(line, item), "incident": item.is_incident} for item in line.changes],
    }


@question("incident list", path="/v1/incidents", forms=("csv",))
def incidents(
    session: Session, *, every: Annotated[bool, Param(FLAG, "Closed ones too.", ("--all",), wire="all")] = False
) -> Answer:
    """List incidents, open ones first.

    Examples:
      receipts incident list
      receipts incident list --all --json
    """
    from receipts.api.answer import Answer
    from receipts.publish.tables import incidents

    shown = [item for item in session.store.published.incidents() if every or item.closed is None]
    shown.sort(key=lambda item: (item.closed is not None, -item.opened.timestamp()))
    data = [item._asdict() for item in shown]
    return Answer(data, incidents(shown), rows=data)
