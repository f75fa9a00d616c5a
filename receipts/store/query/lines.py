"""Histories: launches of one line, which differ in their lineage alone: code, wheels, container image, driver."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Connection, func, select

from receipts.axes.configuration import LINEAGE, Configuration
from receipts.store.entries import Entry, entries, entry, standing
from receipts.store.query.neighbours import own_values
from receipts.store.sql import engine_of
from receipts.store.sql.lookup import Lookup
from receipts.store.tables import axis_values, configurations, placements, receipts
from receipts.store.write.index import unpacked

_AXIS: Final = Lookup([axis_values.c.seq], [axis_values.c.seq, axis_values.c.axis])


def launches(connection: Connection, of: Configuration, kind: str, until: datetime | None = None) -> list[Entry]:
    """Launches of a configuration's line and of a kind that stand, the oldest first; none that ended after a moment.

    The configuration need not be stored. Empty where what it leaves unstated is its receipt's alone.
    """
    numbers = _configurations(connection, of)
    if not numbers:
        return []
    query = entries().join(placements, placements.c.receipt == receipts.c.seq)
    query = query.where(
        engine_of(connection).among(placements.c.configuration, numbers), receipts.c.kind == kind, standing()
    )
    if until is not None:
        query = query.where(func.coalesce(receipts.c.finished, receipts.c.started) <= until)
    return [entry(row) for row in connection.execute(query.order_by(receipts.c.started, receipts.c.seq))]


def _configurations(connection: Connection, of: Configuration) -> list[int]:
    """Numbers of the configurations of a line: equal digests are a hint, and the values themselves are compared."""
    if of.line is None:
        return []
    query = select(configurations.c.seq, configurations.c.members).where(configurations.c.line == of.line)
    members = {seq: set(unpacked(bytes(body))) for seq, body in connection.execute(query)}
    values = {value for some in members.values() for value in some}
    lineage = {seq for seq, axis in _AXIS.read(connection, ((value,) for value in values)) if axis in LINEAGE}
    wanted = {seq for seq, part in own_values(connection, of) if part.axis not in LINEAGE}
    if len(wanted) != sum(axis not in LINEAGE for axis in of.parts):
        return []  # it has a value that no stored configuration has
    return sorted(seq for seq, some in members.items() if some - lineage == wanted)
