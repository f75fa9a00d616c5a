"""Histories: launches of one line, which differ in their lineage alone: code, wheels, container image, driver."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from receipts.axes.configuration import LINEAGE, Configuration
from receipts.store.entries import COLUMNS, Entry, cut, entries, entry_of, standing
from receipts.store.query.neighbours import AXIS, own_values
from receipts.store.sql import engine_of
from receipts.store.tables import configurations, placements, receipts
from receipts.store.write.index import unpacked


def launches(connection: Connection, of: Configuration, kind: str, until: datetime | None = None) -> list[Entry]:
    """Launches of a configuration's line and of a kind that stand, the oldest first; none that ended after a moment.

    The configuration need not be stored. Empty where what it leaves unstated is its receipt's alone.
    """
    numbers = _configurations(connection, of)
    if of.plain is not None:  # the line goes on from before inputs were recorded
        numbers += _configurations(connection, of.plain)
    if not numbers:
        return []
    query = entries().join(placements, placements.c.receipt == receipts.c.seq)
    query = query.where(
        engine_of(connection).among(placements.c.configuration, numbers), receipts.c.kind == kind, standing()
    )
    if until is not None:
        query = query.where(func.coalesce(receipts.c.finished, receipts.c.started) <= until)
    return [entry_of(row) for row in connection.execute(query.order_by(receipts.c.started, receipts.c.seq))]


class Line(NamedTuple):
    """Launches of one line and kind, the oldest first."""

    digest: int
    entries: list[Entry]


def recent(connection: Connection, since: datetime, lane: str | None = None, most: int = 200) -> list[Line]:
    """Every line with a launch that started or was submitted since a moment: its newest ``most`` launches that stand.

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
        .where(ranked.c.place <= most)
        .order_by(receipts.c.started, receipts.c.seq)
    )
    lines: dict[tuple[int, str, str], Line] = {}
    for digest, *columns in connection.execute(query):
        item = entry_of((*columns, None, None))
        lines.setdefault((digest, item.lane, item.kind), Line(digest, [])).entries.append(item)
    return list(lines.values())


def _configurations(connection: Connection, of: Configuration) -> list[int]:
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
