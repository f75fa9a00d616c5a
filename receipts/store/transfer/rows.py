"""Taking in what another store holds beside receipts: tombstones, pins, claims, decisions, quotes, seals, origins."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, insert, select

from receipts.store.tables import claims, content_columns, metadata, purges, receipts
from receipts.store.transfer.origins import Row, TakenRows, insert_rows, record_origins, to_add


def take_purges(connection: Connection, store: str, rows: Sequence[Row]) -> TakenRows:
    """Tombstones. What is here and was purged there is not erased by an import, which is said instead."""
    ids = [row["receipt"] for row in rows]
    here = set(connection.execute(select(receipts.c.id).where(receipts.c.id.in_(ids))).scalars())
    known = set(connection.execute(select(purges.c.receipt).where(purges.c.receipt.in_(ids))).scalars())
    new = [dict(row) for row in rows if row["receipt"] not in here | known]
    if new:
        connection.execute(insert(purges), new)
    notes = [
        f"{row['receipt'][:12]} was purged there ({row['reason']}) and is still here; where that holds here, too: "
        f'receipts purge {row["receipt"][:12]} --reason "…"'
        for row in rows
        if row["receipt"] in here
    ]
    return TakenRows(len(new), tuple(notes))


def _at(row: Row) -> datetime:
    at: datetime = row["at"]
    return at.astimezone(UTC)


# By what the row of a group is found that counts, if not by its time: what is pinned here stays as it is; the last
# reading of a document is found by its time.
_RANKS: Final[Mapping[str, Callable[[Row], Any] | None]] = {"pins": None, "quotes": lambda row: 0}


def take_plain(connection: Connection, store: str, name: str, rows: Sequence[Row]) -> TakenRows:
    """Pins, decisions, quotes, incidents, or what superseded claims, in the order in which they were said there.

    A name that is pinned here keeps what it points at, and of decisions on a receipt the later one counts.
    """
    every, rows = rows, _speaking(connection, rows) if name in ("pins", "decisions", "envelopes") else rows
    group = _group(name)
    coming: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        coming[row[group]].append(row)
    here = rows_here(connection, name, list(coming))
    taken: Mapping[str, list[Row]] = coming
    conflicts: tuple[str, ...] = ()
    if name == "claim_supersessions":
        taken, conflicts = _one_successor(coming, here)
    new = append(connection, store, name, here, taken, rows)
    notes = tuple(_pinned_otherwise(coming, here)) if name == "pins" else ()
    return TakenRows(new, notes, conflicts, len(every) - len(rows))


def rows_here(connection: Connection, name: str, groups: Sequence[str]) -> Mapping[str, list[Row]]:
    """The rows of some groups of a table that are here, in the order in which they were said."""
    table, group = metadata.tables[name], _group(name)
    here: dict[str, list[Row]] = defaultdict(list)
    columns = (table.c[key] for key in content_columns(table))
    query = select(table.c.seq.label("number"), *columns).where(table.c[group].in_(groups))
    for row in connection.execute(query.order_by(table.c.seq)).mappings():
        here[row[group]].append(dict(row))
    return here


def append(
    connection: Connection,
    store: str,
    name: str,
    here: Mapping[str, Sequence[Row]],
    coming: Mapping[str, Sequence[Row]],
    origin: Iterable[Row],
) -> int:
    """Add what is not here of rows by group, and where rows of the other store are now; gives how many were added."""
    table, rank = metadata.tables[name], _RANKS.get(name, _at)
    columns = content_columns(table)
    same = _same(columns)
    new = [row for key, group in coming.items() for row in to_add(here[key], group, same, rank)]
    inserted = insert_rows(connection, table, [{key: row.get(key) for key in columns} for row in new])
    numbers = {same(row): row["number"] for group in here.values() for row in group}
    numbers |= {same(row): seq for row, seq in zip(new, inserted, strict=True)}
    record_origins(
        connection, store, name, {row["number"]: numbers[same(row)] for row in origin if same(row) in numbers}
    )
    return len(new)


def _group(name: str) -> str:
    """The column by which rows are grouped, of which the last one counts: the first after the number."""
    return content_columns(metadata.tables[name])[0]


def _speaking(connection: Connection, rows: Sequence[Row]) -> Sequence[Row]:
    """Rows that speak of no receipt, or of one that is here or was purged."""
    wanted = {row["receipt"] for row in rows}
    known = {
        None,
        *connection.execute(select(receipts.c.id).where(receipts.c.id.in_(wanted))).scalars(),
        *connection.execute(select(purges.c.receipt).where(purges.c.receipt.in_(wanted))).scalars(),
    }
    return [row for row in rows if row["receipt"] in known]


def _same(columns: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
    def same(row: Row) -> tuple[Any, ...]:
        return tuple(_at(row) if key == "at" else row.get(key) for key in columns)

    return same


def _pinned_otherwise(coming: Mapping[str, Sequence[Row]], here: Mapping[str, Sequence[Row]]) -> Iterable[str]:
    for name, rows in coming.items():
        there, now = rows[-1]["receipt"], here[name][-1]["receipt"] if here[name] else rows[-1]["receipt"]
        if there != now:
            at = "points at nothing" if now is None else f"points at {now[:12]}"
            other = "at nothing" if there is None else f"at {there[:12]}"
            yield f"@{name} {at} here and {other} there, and stays as it is here"


def _one_successor(
    coming: Mapping[str, list[Row]], here: Mapping[str, Sequence[Row]]
) -> tuple[dict[str, list[Row]], tuple[str, ...]]:
    """Supersessions of claims but for those that name another successor than this store does."""
    taken, conflicts = {}, []
    for claim, rows in coming.items():
        now = here[claim][-1]["successor"] if here[claim] else rows[-1]["successor"]
        if now == rows[-1]["successor"]:
            taken[claim] = rows
        else:
            conflicts.append(f"claim {claim}: {_replaced(now)} here and {_replaced(rows[-1]['successor'])} there")
    return taken, tuple(conflicts)


def _replaced(successor: str | None) -> str:
    return f"superseded by {successor}" if successor else "withdrawn"


def take_claims(connection: Connection, store: str, rows: Sequence[Row]) -> TakenRows:
    """Claims. One of the same name that says something else is a conflict, and stays as it is here."""
    query = select(claims).where(claims.c.id.in_([row["id"] for row in rows]))
    here = {row.id: row for row in connection.execute(query)}
    new = [row for row in rows if row["id"] not in here]
    other = [row["id"] for row in rows if row["id"] in here and not _same_claim(here[row["id"]].body, row["body"])]
    columns = content_columns(claims)
    inserted = insert_rows(connection, claims, [{key: row.get(key) for key in columns} for row in new])
    numbers = {row["number"]: seq for row, seq in zip(new, inserted, strict=True)}
    # One row, told at another time or from another file, is no row that the other store has sealed.
    exact = _same(columns)
    for row in rows:
        if row["id"] in here and exact(row) == exact(here[row["id"]]._asdict()):
            numbers[row["number"]] = here[row["id"]].seq
    record_origins(connection, store, "claims", numbers)
    verdicts = (
        f"claim {name}: one of this name is here and says something else; claims are never edited" for name in other
    )
    return TakenRows(len(new), (), tuple(verdicts))


def _same_claim(here: str, there: str) -> bool:
    return bool(json.loads(here) == json.loads(there))
