"""Seals: Merkle roots over the rows that came since the last one, to find a row changed or taken away since.

No row carries a chain, which would make writers wait for each other. A seal holds at most `MAX_ROWS` rows, so that
nobody waits long for the one who writes it. The last seal of a run is over the seals themselves: a person who keeps its
root somewhere else can tell that none of those before it was rewritten. A purge leaves the digest of each sealed row
that it erases (`erased`), so that the seal still holds; no number is given again, on either engine.

A seal holds a row's content by names that mean the same in every store, never by this store's numbers. A leaf is the
RFC 6962 digest over a JSON array: the table's name, then the row's values in a fixed order; times are ISO 8601 in UTC
to the microsecond, and a packed body is the SHA-256 of what it unpacks to. A receipt's leaf is its id, which binds
its bytes. Its promoted columns have leaves of their own (``columns``), because they follow from the bytes and from
the version that read them, and because two stores that hold one receipt took it in at two times.

Merkle trees are those of RFC 6962 (section 2.1): leaves and nodes are hashed under prefixes of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import Column, Connection, Select, Table, func, insert, select

from receipts.base.errors import StoreError
from receipts.store.entries import AT_ONCE, unpack
from receipts.store.schema import own_id
from receipts.store.sql import engine_of
from receipts.store.tables import content_columns, erased, metadata, purges, receipts, rules_of, seals
from receipts.store.verdicts import SIDES, SidesOf


def leaf(content: bytes) -> bytes:
    """The digest of a leaf, 32 bytes."""
    return sha256(b"\x00" + content).digest()


def node(left: bytes, right: bytes) -> bytes:
    """The digest over two digests."""
    return sha256(b"\x01" + left + right).digest()


def merkle_root(leaves: Iterable[bytes]) -> bytes:
    """The root over leaves' digests, in one pass that holds one digest a level. Of none it is SHA-256 of nothing."""
    whole: list[tuple[int, bytes]] = []  # full subtrees, the highest first
    for digest in leaves:
        height = 0
        while whole and whole[-1][0] == height:
            digest = node(whole.pop()[1], digest)
            height += 1
        whole.append((height, digest))
    if not whole:
        return sha256(b"").digest()
    _, top = whole.pop()
    while whole:
        top = node(whole.pop()[1], top)
    return top


class ProofStep(NamedTuple):
    """One digest of a proof, and whether it lies left of what is proven."""

    left: bool
    digest: bytes


def proof(leaves: Sequence[bytes], at: int) -> list[ProofStep]:
    """What it takes to get from the leaf at a place to the root, lowest first (RFC 6962, 2.1.1)."""
    if len(leaves) < 2:
        return []
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if at < half:
        return [*proof(leaves[:half], at), ProofStep(False, merkle_root(leaves[half:]))]
    return [*proof(leaves[half:], at - half), ProofStep(True, merkle_root(leaves[:half]))]


def consistency(leaves: Sequence[bytes], size: int) -> list[bytes]:
    """What it takes to show that a tree continues the one of its first ``size`` leaves (RFC 9162, 2.1.4.1)."""
    if not 0 < size <= len(leaves):
        return []
    return _subproof(leaves, size, complete=True)


def _subproof(leaves: Sequence[bytes], size: int, *, complete: bool) -> list[bytes]:
    if size == len(leaves):
        return [] if complete else [merkle_root(leaves)]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if size <= half:
        return [*_subproof(leaves[:half], size, complete=complete), merkle_root(leaves[half:])]
    return [*_subproof(leaves[half:], size - half, complete=False), merkle_root(leaves[:half])]


class SealedTable(NamedTuple):
    """How the rows of a sealed table are read: the number first, then what the leaf holds of them."""

    name: str
    table: Table
    query: Select[Any]
    number: Column[int]
    related: SidesOf | None = None


def _sealed_tables() -> Iterator[SealedTable]:
    # Seals come last: theirs covers every other seal, so that the newest root speaks for all before it.
    for table in sorted(metadata.tables.values(), key=lambda table: table is seals):
        rules = rules_of(table)
        if not rules.sealed:
            continue
        number = table.c.seq
        query = select(number, *(table.c[name] for name in content_columns(table) if name not in rules.unsealed))
        if table is receipts:
            yield SealedTable("receipts", table, select(number, table.c.id), number)
            yield SealedTable("columns", table, query, number)
        elif table is erased:  # with its tombstone, which has no number of its own to be sealed under
            query = query.add_columns(purges.c.reason, purges.c.at, purges.c.actor)
            yield SealedTable("erased", table, query.outerjoin(purges, purges.c.receipt == erased.c.receipt), number)
        else:
            yield SealedTable(table.name, table, query, number, SIDES.get(table.name))


KINDS: Final[Mapping[str, SealedTable]] = {kind.name: kind for kind in _sealed_tables()}


class SealedRow(NamedTuple):
    """A row under its number in this store."""

    number: int
    digest: bytes


def leaves_between(
    connection: Connection, what: str, first: int, last: int, most: int | None = None
) -> Iterator[SealedRow]:
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


def leaves_of(connection: Connection, what: str, numbers: Sequence[int]) -> Iterator[SealedRow]:
    """Leaves of the rows of these numbers that are there, ascending."""
    kind, ordered = KINDS[what], sorted(numbers)
    for start in range(0, len(ordered), AT_ONCE):
        chosen = kind.number.in_(ordered[start : start + AT_ONCE])
        yield from _leaves(connection, kind, connection.execute(kind.query.where(chosen).order_by(kind.number)).all())


def _leaves(connection: Connection, kind: SealedTable, rows: Sequence[Any]) -> Iterator[SealedRow]:
    related = kind.related(connection, [row[0] for row in rows]) if kind.related is not None and rows else {}
    recorded = "actor" in kind.query.selected_columns
    packed = kind.table.c.get("body") is not None and "codec" in kind.table.c
    for row in rows:
        number, *values = row
        if recorded and values[-1] is None:
            values.pop()  # a row from before actors were recorded, as its seal has it
        if packed:
            *values, codec, body = values
            try:
                digest = sha256(unpack(codec, body, "")).hexdigest()
            except StoreError:
                digest = "unreadable"
            values += [digest, related.get(number, [])]
        yield SealedRow(number, leaf(leaf_content(kind.name, values)))


def leaf_content(what: str, values: Sequence[Any]) -> bytes:
    """What a leaf is the digest of."""
    plain = (
        value.astimezone(UTC).isoformat(timespec="microseconds") if isinstance(value, datetime) else value
        for value in values
    )
    return orjson.dumps([what, *plain], default=str)


MAX_ROWS: Final = 10_000  # rows: some two seconds, for which other writers wait
_MAX_SHOWN: Final = 5  # numbers of a gap


class Seal(NamedTuple):
    """A root over `held` rows of a table, numbered `first` to `last`. Time in UTC."""

    seq: int
    store: str
    what: str
    first: int
    last: int
    held: int
    root: str
    at: datetime


class SealRows(NamedTuple):
    """What is there of a seal's rows, with those whose digest a purge left."""

    seal: Seal
    leaves: tuple[SealedRow, ...]
    erased: int

    @property
    def root(self) -> str:
        """The root over what is there."""
        return merkle_root(item.digest for item in self.leaves).hex()

    @property
    def whole(self) -> bool:
        """Whether every row is there as it was sealed."""
        return len(self.leaves) == self.seal.held and self.root == self.seal.root


def seal(connection: Connection, at: datetime, most: int = MAX_ROWS) -> list[Seal]:
    """Seal what no seal holds yet, at most so many rows a table; gives the seals written, none where all is sealed.

    On PostgreSQL a number may be given before another and its row be seen after it: whoever writes rows holds the
    lock of `submission.lock` together with others, and this takes it alone, so that none is left behind a seal.
    """
    engine_of(connection).lock(connection, alone=True)
    store = own_id(connection)
    written: list[Seal] = []
    for what in KINDS:
        if what == "seals" and not written:
            continue  # a seal over the last seal alone would be followed by another for ever
        end = connection.execute(select(func.max(KINDS[what].number))).scalar() or 0
        unsealed = list(leaves_between(connection, what, last_sealed(connection, what) + 1, end, most))
        if not unsealed:
            continue
        root = merkle_root(item.digest for item in unsealed).hex()
        one = Seal(0, store, what, unsealed[0].number, unsealed[-1].number, len(unsealed), root, at)
        values = {name: value for name, value in one._asdict().items() if name != "seq"}
        key = connection.execute(insert(seals).values(**values)).inserted_primary_key
        assert key is not None
        written.append(one._replace(seq=key[0]))
    return written


def all_seals(connection: Connection, what: str | None = None) -> Iterator[Seal]:
    """Seals, over one table or all, in the order in which they were written."""
    query = select(seals).order_by(seals.c.seq)
    query = query if what is None else query.where(seals.c.what == what)
    for row in connection.execute(query):
        yield Seal(*row)


def last_sealed(connection: Connection, what: str) -> int:
    """The number of the last row of a table that a seal holds, 0 where none does."""
    query = select(func.max(seals.c.last)).where(seals.c.what == what)
    return connection.execute(query).scalar() or 0


def last_at(connection: Connection) -> datetime | None:
    """When this store was last sealed, in UTC; None where it never was."""
    at: datetime | None = connection.execute(select(func.max(seals.c.at))).scalar()
    return at


def held(connection: Connection, one: Seal) -> SealRows:
    """What is there of a seal's rows."""
    query = select(erased.c.number, erased.c.leaf).where(erased.c.what == one.what, erased.c.seal == one.root)
    gone = []
    for number, digest in connection.execute(query):
        try:
            gone.append(SealedRow(number, bytes.fromhex(digest)))
        except ValueError:
            gone.append(SealedRow(number, digest.encode()))  # no digest: it will not give the root
    there = leaves_between(connection, one.what, one.first, one.last)
    return SealRows(one, tuple(sorted([*there, *gone])), len(gone))


def keep_leaves(connection: Connection, receipt: str, doomed: Mapping[str, Iterable[int]]) -> None:
    """Before rows are erased: keep the digest of each that a seal holds, and the number of each that none holds yet.

    ``receipt`` is the one that has the tombstone, ``doomed`` are numbers by table.
    """
    rows = []
    for what, numbers in doomed.items():
        for item in leaves_of(connection, what, list(numbers)):
            over = (seals.c.what == what, seals.c.first <= item.number, seals.c.last >= item.number)
            root = connection.scalar(select(seals.c.root).where(*over).order_by(seals.c.seq.desc()).limit(1))
            leaf = "" if root is None else item.digest.hex()
            rows.append({"what": what, "number": item.number, "receipt": receipt, "leaf": leaf, "seal": root or ""})
    if rows:
        connection.execute(insert(erased), rows)


class Gap(NamedTuple):
    """How many numbers have no row, and the first few of them."""

    missing: int
    first: tuple[int, ...]


def gaps(connection: Connection) -> dict[str, Gap]:
    """Gaps by table: each is a row that was deleted before a seal covered it. A table without a gap is left out.

    A gap has the numbers after the last seal, up to the last row, that have no row and that no purge erased.
    """
    every = {}
    for what, kind in KINDS.items():
        if what != kind.table.name:
            continue
        last = last_sealed(connection, what)
        query = select(erased.c.number).where(erased.c.what == what, erased.c.number > last)
        known = {last, *connection.execute(select(kind.number).where(kind.number > last)).scalars()}
        known.update(connection.execute(query).scalars())
        count, first = 0, list[int]()
        for before, after in pairwise(sorted(known)):
            count += after - before - 1
            first += range(before + 1, min(after, before + 1 + _MAX_SHOWN - len(first)))
        if count:
            every[what] = Gap(count, tuple(first))
    return every
