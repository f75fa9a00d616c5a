"""Taking in what binds the rows of other stores: digests that purges left, origins of rows, and seals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, func, insert, select

from receipts.store.schema import own_id
from receipts.store.tables import content_columns, erased, origins, purges, seals
from receipts.store.transfer.origins import Row, TakenRows, record_origins

if TYPE_CHECKING:
    from receipts.store.integrity.seals import Seal


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
    from receipts.store.integrity.leaves import SHARED
    from receipts.store.integrity.seals import Seal, held

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
    return TakenRows(len(new), notes, tuple(map(_broken, broken)))


def _broken(one: Seal) -> str:
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
