"""What a seal holds of a row: its content by names that mean the same in every store, never by this store's numbers.

A leaf is the RFC 6962 digest over a JSON array: the table's name, then the row's values in a fixed order; times are
ISO 8601 in UTC to the microsecond, and a packed body is the SHA-256 of what it unpacks to. A receipt's leaf is its id,
which binds its bytes. Its promoted columns have leaves of their own (``columns``), because they follow from the bytes
and from the version that read them, and because two stores that hold one receipt took it in at two times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import Column, Connection, Select, Table, select

from receipts.base.errors import StoreError
from receipts.store.history.sides import Sides, sides_of, sides_of_claims
from receipts.store.integrity import merkle
from receipts.store.packing import unpack
from receipts.store.tables import (
    claim_supersessions,
    claim_verdicts,
    claims,
    decisions,
    envelopes,
    erased,
    incidents,
    pins,
    purges,
    quotes,
    receipts,
    seals,
    supersessions,
    trusted_keys,
    verdicts,
)

# A column that comes later is no part of this: yesterday's seals have to hold.
_COLUMNS: Final = (
    *("id", "launch", "generation", "lane", "kind", "outcome", "provenance", "status", "path_answer"),
    *("schema_version", "started", "finished", "submitted_at", "label", "context", "host", "supersedes"),
    *("supersedes_reason", "accelerator", "chips", "sequence_length", "micro_batch", "global_batch", "depth"),
    *("model", "family", "tokens_per_second", "tokens_per_second_per_chip", "step_seconds"),
    *("tflops_per_second_per_chip", "mfu", "rate_source", "peak_bytes", "peak_reserved_bytes", "compile_seconds"),
    *("failure_phase", "failure_class", "witness_for"),
)
_AT_ONCE: Final = 500  # rows, with their bodies, that are held at a time
Related = Callable[[Connection, Sequence[int]], Sides]


class Kind(NamedTuple):
    """How the rows of a sealed table are read: the number first, then what the leaf holds of them."""

    name: str
    table: Table
    query: Select[Any]
    number: Column[int]
    related: Related | None = None


def _named(table: Table, *names: str) -> Kind:
    return Kind(table.name, table, select(table.c.seq, *(table.c[name] for name in names)), table.c.seq)


_ALL: Final = (
    _named(receipts, "id"),
    _named(receipts, *_COLUMNS, "actor")._replace(name="columns"),
    _named(verdicts, "kind", "status", "metric", "rules", "judge", "judged_at", "codec", "body")._replace(
        related=sides_of
    ),
    _named(supersessions, "receipt", "successor", "reason", "at", "actor"),
    _named(pins, "name", "receipt", "note", "at", "actor"),
    _named(claims, "id", "kind", "body", "origin", "at", "actor"),
    _named(claim_supersessions, "claim", "successor", "reason", "at", "actor"),
    _named(claim_verdicts, "claim", "status", "rules", "judge", "at", "codec", "body")._replace(
        related=sides_of_claims
    ),
    _named(decisions, "receipt", "decision", "reason", "at", "actor"),
    _named(quotes, "document", "receipt", "says", "at"),
    _named(incidents, "incident", "event", "line", "kind", "metric", "body", "owner", "actor", "reason", "at"),
    # With its tombstone, which has no number of its own to be sealed under.
    Kind(
        "erased",
        erased,
        select(
            erased.c.seq,
            *(erased.c[name] for name in ("store", "what", "number", "receipt", "leaf", "seal")),
            *(purges.c.reason, purges.c.at, purges.c.actor),
        ).outerjoin(purges, purges.c.receipt == erased.c.receipt),
        erased.c.seq,
    ),
    _named(trusted_keys, "name", "fingerprint", "key", "lanes", "ends", "revoked", "at", "actor"),
    _named(envelopes, "receipt", "fingerprint", "signature", "at", "actor"),
    # Last: every other seal is a row that this one holds, so that the newest of them speaks for all before it.
    _named(seals, "store", "what", "first", "last", "held", "root", "at"),
)
KINDS: Final[Mapping[str, Kind]] = {item.name: item for item in _ALL}
# What another store's seals can be held against here; the rest speaks of one store only.
SHARED: Final = (
    *("receipts", "verdicts", "supersessions", "pins", "claims", "claim_supersessions", "claim_verdicts"),
    *("decisions", "quotes", "incidents"),
)


class SealedRow(NamedTuple):
    """A row under its number in this store."""

    number: int
    digest: bytes


def between(connection: Connection, what: str, first: int, last: int, most: int | None = None) -> Iterator[SealedRow]:
    """Leaves of the rows from a number to another, both taken in, ascending; at most so many."""
    kind = KINDS[what]
    while first <= last and most != 0:
        limit = _AT_ONCE if most is None else min(most, _AT_ONCE)
        query = kind.query.where(kind.number >= first, kind.number <= last).order_by(kind.number).limit(limit)
        rows = connection.execute(query).all()
        yield from _leaves(connection, kind, rows)
        if len(rows) < limit:
            return
        first, most = rows[-1][0] + 1, None if most is None else most - len(rows)


def of(connection: Connection, what: str, numbers: Sequence[int]) -> Iterator[SealedRow]:
    """Leaves of the rows of these numbers that are there, ascending."""
    kind, ordered = KINDS[what], sorted(numbers)
    for start in range(0, len(ordered), _AT_ONCE):
        chosen = kind.number.in_(ordered[start : start + _AT_ONCE])
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
