"""Rows of another store beside receipts and verdicts: tombstones, pins, claims, decisions, quotes, seals, origins.

Content is compared, and the origin of every row is kept. What binds rows comes with them: digests that purges left,
and seals.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection, func, insert, select

from receipts.store.schema import own_id
from receipts.store.tables import claims, content_columns, erased, metadata, origins, purges, receipts, seals

if TYPE_CHECKING:
    from receipts.store.seals import Seal


T = TypeVar("T")
Row = Mapping[str, Any]


class TakenRows(NamedTuple):
    """What became of rows: how many are new, sentences for people, and conflicts, which left their rows out.

    `left` counts rows that were left out because they speak of a receipt that is neither here nor purged.
    """

    new: int
    notes: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    left: int = 0


def to_add(
    here: Sequence[T], coming: Sequence[T], same: Callable[[T], Any], rank: Callable[[T], Any] | None
) -> list[T]:
    """Rows to append so that all are here and the last one is the one that counts; none where nothing is new.

    What counts is the last by ``rank``, of equal ones the one that comes. Without a rank it is what counts here.
    """
    known = {same(item) for item in here}
    added: list[T] = []
    for item in coming:
        if same(item) not in known:
            known.add(same(item))
            added.append(item)
    if not added:
        return []
    everything = [*here, *coming]
    if rank is not None:
        best = max(range(len(everything)), key=lambda at: (rank(everything[at]), at))
    else:
        best = (len(here) or len(everything)) - 1
    return added if same(added[-1]) == same(everything[best]) else [*added, everything[best]]


def insert_rows(connection: Connection, table: Any, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Insert rows; gives their numbers in the same order."""
    if not rows:
        return []
    inserted = connection.execute(insert(table).returning(table.c.seq, sort_by_parameter_order=True), list(rows))
    return list(inserted.scalars())


def record_origins(connection: Connection, store: str, what: str, numbers: Mapping[int, int]) -> None:
    """Write down which rows here are rows of another store: numbers there to numbers here. Its own are no others'."""
    if not numbers or store == own_id(connection):
        return
    query = select(origins.c.number).where(
        origins.c.store == store, origins.c.what == what, origins.c.number.in_(list(numbers))
    )
    known = set(connection.execute(query).scalars())
    rows = [
        {"what": what, "here": here, "store": store, "number": number}
        for number, here in numbers.items()
        if number not in known
    ]
    if rows:
        connection.execute(insert(origins), rows)


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
    new = append_rows(connection, store, name, here, taken, rows)
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


def append_rows(
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


def take_erased(connection: Connection, store: str, rows: Sequence[Row]) -> TakenRows:
    """Digests that purges left there, so that seals over what they erased still hold."""
    columns = content_columns(erased)
    query = select(erased).where(erased.c.receipt.in_({row["receipt"] for row in rows}))
    known = {tuple(getattr(row, key) for key in columns) for row in connection.execute(query)}
    query = select(purges.c.receipt).where(purges.c.receipt.in_({row["receipt"] for row in rows}))
    gone = set(connection.execute(query).scalars())
    new = [row for row in rows if row["receipt"] in gone and tuple(row[key] for key in columns) not in known]
    if new:
        connection.execute(insert(erased), [{key: row[key] for key in columns} for row in new])
    return TakenRows(len(new))


def take_origins(connection: Connection, store: str, rows: Sequence[Row]) -> TakenRows:
    """Where rows of the other store came from: rows that came here with it are rows of a third store as well."""
    own = own_id(connection)
    by_kind: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row["store"] not in (own, store):
            by_kind[row["what"], row["store"]].append(row)
    count = connection.execute(select(func.count()).select_from(origins)).scalar_one()
    for (what, third), group in by_kind.items():
        query = select(origins.c.number, origins.c.here).where(
            origins.c.store == store, origins.c.what == what, origins.c.number.in_([row["here"] for row in group])
        )
        here = {row.number: row.here for row in connection.execute(query)}
        record_origins(
            connection, third, what, {row["number"]: here[row["here"]] for row in group if row["here"] in here}
        )
    return TakenRows(connection.execute(select(func.count()).select_from(origins)).scalar_one() - count)


def take_seals(connection: Connection, store: str, rows: Sequence[Row]) -> TakenRows:
    """Seals of other stores whose every row is here, for `receipts audit` to hold against them.

    A seal over rows that were left out could hold no more; it is left out as well, until they have come. One that does
    not hold over the rows that came is kept, for it shows that they were changed, and told.
    """
    from receipts.store.seals import SHARED, Seal, held

    own = own_id(connection)
    key = ("store", "what", "first", "root")
    query = select(*(seals.c[name] for name in key)).where(seals.c.store.in_({row["store"] for row in rows}))
    known = {tuple(row) for row in connection.execute(query)}
    wanted = [row for row in rows if row["store"] != own and row["what"] in SHARED]
    wanted = [row for row in wanted if tuple(row[name] for name in key) not in known]
    new = [row for row in wanted if _rows_of(connection, row) == row["held"]]
    columns = content_columns(seals)
    if new:
        connection.execute(insert(seals), [{name: row[name] for name in columns} for row in new])
    left = len(wanted) - len(new)
    notes = (f"{left} seals hold rows that were not taken in, and were left out with them",) if left else ()
    arrived = [Seal(0, *(row[name] for name in Seal._fields[1:])) for row in new]
    broken = [item for item in arrived if not held(connection, item, own).whole]
    return TakenRows(len(new), notes, tuple(map(_broken_seal, broken)))


def _broken_seal(one: Seal) -> str:
    over = f"{one.what} {one.first} to {one.last} of store {one.store[:8]}"
    return (
        f"seal over {over}: it does not hold; a row was changed after it was sealed, or the seal; see: receipts audit"
    )


def _rows_of(connection: Connection, seal: Row) -> int:
    """How many of a seal's rows are here, those counted whose digest alone was left."""
    numbers = []
    for table in (origins, erased):
        query = select(func.count()).where(
            table.c.store == seal["store"],
            table.c.what == seal["what"],
            table.c.number.between(seal["first"], seal["last"]),
        )
        if table is erased:
            query = query.where(table.c.seal == seal["root"])
        numbers.append(connection.execute(query).scalar_one())
    return sum(numbers)
