"""Seals over rows, what a purge erased of them, and where rows of another store came from."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, PrimaryKeyConstraint, Table, UniqueConstraint

from receipts.store.tables.columns import key, metadata, moment, number, words
from receipts.store.tables.rules import TableRules

seals = Table(
    "seals",
    metadata,
    key("Number in the order in which seals were written or came in"),
    words(
        "store",
        "Id of the store that sealed its rows: this one's, or that of an export that was taken in",
        required=True,
    ),
    words("what", "Table of the rows: receipts, verdicts, supersessions, …", required=True),
    number("first", "Number of the first row, in the store that sealed it", required=True),
    number("last", "Number of the last row", required=True),
    Column("held", Integer, nullable=False, comment="How many rows it holds"),
    words("root", "Merkle root over the rows' digests, SHA-256 in hex", required=True),
    moment("at", "When it was sealed"),
    UniqueConstraint("store", "what", "first", "root"),
    comment="Merkle roots: a row that was changed or taken away since is found",
    info=TableRules("submitter", sealed="here").info,
)

origins = Table(
    "origins",
    metadata,
    # As in the key: SQLite's own check takes a column between those of a key for one that is null.
    words("store", "Id of the store that it came from", required=True),
    words("what", "Table of the row: receipts, verdicts, supersessions, …", required=True),
    number("number", "Its number there", required=True),
    Column("here", BigInteger, nullable=False, comment="The row's number here"),
    PrimaryKeyConstraint("store", "what", "number"),
    comment="Rows that another store sealed: they came from it, or both hold the same receipt",
    info=TableRules("decider").info,
    sqlite_with_rowid=False,
)

erased = Table(
    "erased",
    metadata,
    key("Number in the order in which rows were erased"),
    words("store", "Id of the store that sealed the row", required=True),
    words("what", "Table of the row: receipts, verdicts, supersessions, …", required=True),
    number("number", "Its number in that store", required=True),
    words("receipt", "Id of the receipt with whose tombstone it went", required=True, of="purges"),
    words("leaf", "Digest of the row as the seal holds it, SHA-256 in hex; empty if none did", required=True),
    words("seal", "Root of the seal that holds it; empty if none did", required=True),
    comment="What a purge erased: the digest of a sealed row stays, so that the seal still holds",
    info=TableRules("owner", sealed="here").info,
)

Index("origins_here", origins.c.what, origins.c.here)
