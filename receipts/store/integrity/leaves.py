"""What a seal holds of a row: its content by names that mean the same in every store, never by this store's numbers.

A leaf is the RFC 6962 digest over a JSON array: the table's name, then the row's values in a fixed order; times are
ISO 8601 in UTC to the microsecond, and a packed body is the SHA-256 of what it unpacks to. A receipt's leaf is its id,
which binds its bytes. Its promoted columns have leaves of their own (``columns``), because they follow from the bytes
and from the version that read them, and because two stores that hold one receipt took it in at two times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import Column, Connection, Select, Table, select

from receipts.base.errors import StoreError
from receipts.store.history.sides import SIDES, SidesOf
from receipts.store.integrity import merkle
from receipts.store.packing import AT_ONCE, unpack
from receipts.store.tables import content_columns, erased, metadata, purges, receipts, rules_of, seals


class Kind(NamedTuple):
    """How the rows of a sealed table are read: the number first, then what the leaf holds of them."""

    name: str
    table: Table
    query: Select[Any]
    number: Column[int]
    related: SidesOf | None = None


def _kinds() -> Iterator[Kind]:
    # Seals come last: theirs covers every other seal, so that the newest root speaks for all before it.
    for table in sorted(metadata.tables.values(), key=lambda table: table is seals):
        rules = rules_of(table)
        if not rules.sealed:
            continue
        number = table.c.seq
        query = select(number, *(table.c[name] for name in content_columns(table) if name not in rules.unsealed))
        if table is receipts:
            yield Kind("receipts", table, select(number, table.c.id), number)
            yield Kind("columns", table, query, number)
        elif table is erased:  # with its tombstone, which has no number of its own to be sealed under
            query = query.add_columns(purges.c.reason, purges.c.at, purges.c.actor)
            yield Kind("erased", table, query.outerjoin(purges, purges.c.receipt == erased.c.receipt), number)
        else:
            yield Kind(table.name, table, query, number, SIDES.get(table.name))


KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _kinds()}
# What seals of another store are checked against here; other rows concern one store only.
SHARED: Final = frozenset(name for name, table in metadata.tables.items() if rules_of(table).sealed == "everywhere")


class SealedRow(NamedTuple):
    """A row under its number in this store."""

    number: int
    digest: bytes


def between(connection: Connection, what: str, first: int, last: int, most: int | None = None) -> Iterator[SealedRow]:
    """Leaves of the rows from a number to another, both taken in, ascending; at most so many."""
    kind = KINDS[what]
    while first <= last and most != 0:
        limit = AT_ONCE if most is None else min(most, AT_ONCE)
        query = kind.query.where(kind.number >= first, kind.number <= last).order_by(kind.number).limit(limit)
        rows = connection.execute(query).all()
        yield from _leaves(connection, kind, rows)
        if len(rows) < limit:
            return
        first, most = rows[-1][0] + 1, None if most is None else most - len(rows)


def of(connection: Connection, what: str, numbers: Sequence[int]) -> Iterator[SealedRow]:
    """Leaves of the rows of these numbers that are there, ascending."""
    kind, ordered = KINDS[what], sorted(numbers)
    for start in range(0, len(ordered), AT_ONCE):
        chosen = kind.number.in_(ordered[start : start + AT_ONCE])
        yield from _leaves(connection, kind, connection.execute(kind.query.where(chosen).order_by(kind.number)).all())


def _leaves(connection: Connection, kind: Kind, rows: Sequence[Any]) -> Iterator[SealedRow]:
    related = kind.related(connection, [row[0] for row in rows]) if kind.related is not None and rows else {}
    recorded = "actor" in kind.query.selected_columns
    packed = kind.table.c.get("body") is not None and "codec" in kind.table.c
    for row in rows:
        number, *values = row
        if recorded and values[-1] is None:
            values.pop()  # a row from before actors were recorded, as its seal has it
        if packed:
            *values, codec, body = values
            values += [_digest(codec, body), related.get(number, [])]
        yield SealedRow(number, merkle.leaf(content(kind.name, values)))


def _digest(codec: str, body: bytes) -> str:
    try:
        return sha256(unpack(codec, body, "")).hexdigest()
    except StoreError:
        return "unreadable"


def content(what: str, values: Sequence[Any]) -> bytes:
    """What a leaf is the digest of."""
    return orjson.dumps([what, *(_plain(value) for value in values)], default=str)


def _plain(value: Any) -> Any:
    return value.astimezone(UTC).isoformat(timespec="microseconds") if isinstance(value, datetime) else value
