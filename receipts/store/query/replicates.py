"""Stored launches that repeat a configuration: those that may replicate a receipt, and those of its line.

Launches of one line differ in their lineage alone: code, wheels, container image, driver.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, or_, select

from receipts.axes.configuration import LINEAGE, Configuration
from receipts.metrics.registry import Taint
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.document import UNFAILED
from receipts.store import entries
from receipts.store.entries import cut, entry_of, safe, select_entries, standing
from receipts.store.entry import COLUMNS, METRICS, PATHS, Entry
from receipts.store.index import unpacked
from receipts.store.query.axis_index import AXIS, holds_lane, own_values
from receipts.store.sql import engine_of
from receipts.store.sql.statement import SqlStatement
from receipts.store.tables import configurations, placements, receipts


def line_launches(connection: Connection, of: Configuration, kind: str, until: datetime | None = None) -> list[Entry]:
    """Launches of a configuration's line and of a kind that stand, the oldest first; none that ended after a moment.

    The configuration need not be stored. Empty where what it leaves unstated is its receipt's alone.
    """
    numbers = _line_configurations(connection, of)
    if of.plain is not None:  # the line goes on from before inputs were recorded
        numbers += _line_configurations(connection, of.plain)
    if not numbers:
        return []
    query = select_entries().join(placements, placements.c.receipt == receipts.c.seq)
    query = query.where(
        engine_of(connection).among(placements.c.configuration, numbers), receipts.c.kind == kind, standing()
    )
    if until is not None:
        query = query.where(func.coalesce(receipts.c.finished, receipts.c.started) <= until)
    return [entry_of(row) for row in connection.execute(query.order_by(receipts.c.started, receipts.c.seq))]


MAX_LAUNCHES: Final = 200  # of one line


class Line(NamedTuple):
    """Launches of one line and kind, the oldest first."""

    digest: int
    entries: list[Entry]


def recent_lines(connection: Connection, since: datetime, lane: str | None = None) -> list[Line]:
    """Every line with a launch that started or was submitted since a moment: its newest `MAX_LAUNCHES` that stand.

    Lines differ by their digest, lane and kind.
    """
    active = (
        select(configurations.c.line)
        .join(placements, placements.c.configuration == configurations.c.seq)
        .join(receipts, receipts.c.seq == placements.c.receipt)
        .where(configurations.c.line.is_not(None), receipts.c.submitted_at >= since)
    )
    if lane is not None:
        active = active.where(configurations.c.lane == cut(lane))
    place = (
        func.row_number()
        .over(
            partition_by=(configurations.c.line, receipts.c.lane, receipts.c.kind),
            order_by=(receipts.c.started.desc(), receipts.c.seq.desc()),
        )
        .label("place")
    )
    ranked = (
        select(configurations.c.line, receipts.c.seq, place)
        .join(placements, placements.c.configuration == configurations.c.seq)
        .join(receipts, receipts.c.seq == placements.c.receipt)
        .where(configurations.c.line.in_(active), standing())
        .subquery()
    )
    query = (
        select(ranked.c.line, *(receipts.c[name] for name in COLUMNS))
        .join(ranked, ranked.c.seq == receipts.c.seq)
        .where(ranked.c.place <= MAX_LAUNCHES)
        .order_by(receipts.c.started, receipts.c.seq)
    )
    lines: dict[tuple[int, str, str], Line] = {}
    for digest, *columns in connection.execute(query):
        item = entry_of((*columns, None, None))
        lines.setdefault((digest, item.lane, item.kind), Line(digest, [])).entries.append(item)
    return list(lines.values())


def _line_configurations(connection: Connection, of: Configuration) -> list[int]:
    """Numbers of the configurations of a line: equal digests are a hint, and the values themselves are compared."""
    if of.line is None:
        return []
    query = select(configurations.c.seq, configurations.c.value_numbers).where(configurations.c.line == of.line)
    numbers = {seq: set(unpacked(bytes(body))) for seq, body in connection.execute(query)}
    values = {value for some in numbers.values() for value in some}
    lineage = {seq for seq, axis in AXIS.read(connection, ((value,) for value in values)) if axis in LINEAGE}
    wanted = {seq for seq, part in own_values(connection, of) if part.axis not in LINEAGE}
    if len(wanted) != sum(axis not in LINEAGE for axis in of.parts):
        return []  # it has a value that no stored configuration has
    return sorted(seq for seq, some in numbers.items() if some - lineage == wanted)


MAX_OTHERS: Final = 100  # launches of other sessions that are read
MAX_ALIKE: Final = 400  # launches of a configuration that are read at once
_COLUMNS: Final = ("id", "launch", "label", "session", "host", "actor", "started", "outcome", "rate_source", *METRICS)
_SPOILT: Final = ~entries.unspoiled_rows(Taint.RATE)
_SELECTED: Final = (*(receipts.c[name] for name in _COLUMNS), (~_SPOILT).label("sound"))
_NEWEST_FIRST: Final = (receipts.c.started.desc(), receipts.c.seq.desc())
_EVER: Final = datetime(9999, 1, 1, tzinfo=UTC)


def _placed(digest: str, whole: str) -> ColumnElement[bool]:
    of_type = configurations.c
    return and_(
        of_type.digest == bindparam(digest, type_=of_type.digest.type),
        of_type.whole == bindparam(whole, type_=of_type.whole.type),
    )


_NEWEST: Final = SqlStatement(
    select(*_SELECTED)
    .where(
        receipts.c.seq.in_(
            select(placements.c.receipt)
            .join(configurations, configurations.c.seq == placements.c.configuration)
            .where(or_(_placed("digest", "whole"), _placed("plain_digest", "plain_whole")))
        ),
        receipts.c.kind == bindparam("kind"),
        # Beside one that failed only such as failed alike.
        or_(bindparam("outcome", type_=receipts.c.outcome.type) == "ok", receipts.c.outcome == bindparam("outcome")),
        bindparam("until", type_=receipts.c.started.type) >= func.coalesce(receipts.c.finished, receipts.c.started),
        standing(),
    )
    .order_by(*_NEWEST_FIRST)
    .limit(bindparam("most", type_=receipts.c.chips.type))
)
_SHAPE: Final = ("accelerator", "chips", "sequence_length", "micro_batch", "global_batch", "depth")


class AlikeLaunch(NamedTuple):
    """A stored launch of a configuration by its columns; ``sound``: by its first verdict no offense spoils its rate."""

    id: str
    launch: str
    label: str | None
    session: str | None
    host: str | None
    actor: str
    started: datetime
    outcome: str
    sound: bool
    readings: Mapping[str, float | None]


class AlikeLaunches(NamedTuple):
    """Those in a span of time or of a declared session, and others, the newest; ``more`` were not read."""

    near: list[AlikeLaunch]
    others: list[AlikeLaunch]
    more: int

    @classmethod
    def of(
        cls, newest: Sequence[AlikeLaunch], span: tuple[datetime, datetime], sessions: Collection[str]
    ) -> AlikeLaunches:
        """Every launch of a configuration, the newest first, by whether it is in a span or of a declared session."""
        inside = [row for row in newest if span[0] <= row.started <= span[1] or row.session in sessions]
        near = {row.id for row in inside}
        others = [row for row in newest if row.id not in near]
        return cls(inside[::-1], others[:MAX_OTHERS], max(0, len(others) - MAX_OTHERS))


def newest_alike(
    connection: Connection, parsed: Parsed, own: Configuration, until: datetime | None = None
) -> list[AlikeLaunch]:
    """Stored launches that may differ from this one in no axis, the newest first: `MAX_ALIKE` and one more at most."""
    run = parsed.receipt.run
    if not holds_lane(connection, own):
        query = select(*_SELECTED).where(*_replicate_conditions(connection, parsed, own, until))
        rows: Iterable[Any] = connection.execute(query.order_by(*_NEWEST_FIRST).limit(MAX_ALIKE + 1))
    else:
        plain = own.plain or own  # of launches from before inputs were recorded, too
        given = {"digest": own.digest, "whole": own.whole, "plain_digest": plain.digest, "plain_whole": plain.whole}
        given |= {"kind": run.kind, "outcome": run.outcome, "until": until or _EVER, "most": MAX_ALIKE + 1}
        rows = _NEWEST.all(connection, given)
    return list(map(_alike_launch, rows))


def alike(
    connection: Connection,
    parsed: Parsed,
    own: Configuration,
    span: tuple[datetime, datetime],
    sessions: Collection[str],
    until: datetime | None = None,
) -> AlikeLaunches:
    """Stored launches that may differ from this one in no axis, by their columns alone; no document is read."""
    conditions = _replicate_conditions(connection, parsed, own, until)
    near: ColumnElement[bool] = receipts.c.started.between(*span)
    if sessions:
        near = or_(near, receipts.c.session.in_(sorted(sessions)))
    query = select(*_SELECTED).where(*conditions)
    newest = query.where(~near).order_by(*_NEWEST_FIRST).limit(MAX_OTHERS)
    inside, others = (list(map(_alike_launch, connection.execute(one))) for one in (query.where(near), newest))
    more = 0
    if len(others) == MAX_OTHERS:
        every = connection.execute(select(func.count()).select_from(receipts).where(*conditions)).scalar_one()
        more = every - len(inside) - MAX_OTHERS
    return AlikeLaunches(inside, others, more)


def _alike_launch(row: Any) -> AlikeLaunch:
    *names, source = row[: -len(METRICS) - 1]
    readings = dict(zip(METRICS, row[-len(METRICS) - 1 : -1], strict=True)) if source in ("steps", None) else {}
    return AlikeLaunch._make((*names, bool(row[-1]), readings))


def _replicate_conditions(
    connection: Connection, parsed: Parsed, own: Configuration, until: datetime | None
) -> list[ColumnElement[bool]]:
    run = parsed.receipt.run
    conditions: list[ColumnElement[bool]] = [receipts.c.kind == run.kind, standing()]
    if holds_lane(connection, own):
        placed = select(placements.c.receipt).join(configurations, configurations.c.seq == placements.c.configuration)
        known = [of for of in (own, own.plain) if of is not None]  # of launches from before inputs were recorded, too
        alike = [and_(configurations.c.digest == of.digest, configurations.c.whole == of.whole) for of in known]
        conditions.append(receipts.c.seq.in_(placed.where(or_(*alike))))
    else:
        # An axis that is unstated on one side only is unknown, so that such a receipt is no replicate either.
        # A context fills what is unstated; if nothing is, it may be another one.
        names = (*_SHAPE, "context") if own.anchor is not None else _SHAPE
        values: dict[str, Any] = {name: parsed.stated.get(PATHS[name]) for name in names}
        chip = find_accelerator(values["accelerator"]) if values["accelerator"] else None
        values["accelerator"] = chip.key if chip is not None else cut(values["accelerator"])
        conditions.append(receipts.c.lane == cut(safe(own.lane)))
        # `IS NULL` rather than `IS NOT DISTINCT FROM`, which PostgreSQL answers without an index.
        for name, value in values.items():
            conditions.append(receipts.c[name].is_(None) if value is None else receipts.c[name] == value)
    if run.outcome not in UNFAILED:
        conditions.append(receipts.c.outcome == run.outcome)
    if until is not None:
        conditions.append(func.coalesce(receipts.c.finished, receipts.c.started) <= until)
    return conditions


def replicate_candidates(connection: Connection, parsed: Parsed, own: Configuration) -> list[str]:
    """Ids of stored launches that may differ from this one in no axis; the caller compares them.

    ``own`` is its configuration: they are looked up where the axis index holds its lane; else what SQL can tell apart
    is left out. Those that ended as it did come first, of these what is a sample of the rate, and the newest: spoilt
    and failed launches, however many and new, keep no good one from being seen. Beside one that failed only such as
    failed alike.
    """
    run = parsed.receipt.run
    query = select(receipts.c.id).where(
        *_replicate_conditions(connection, parsed, own, None), receipts.c.launch != run.launch
    )
    query = query.order_by(receipts.c.outcome != run.outcome, _SPOILT, receipts.c.started.desc(), receipts.c.seq.desc())
    return list(connection.execute(query).scalars())
