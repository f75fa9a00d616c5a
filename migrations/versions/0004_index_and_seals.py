"""The index of axes, signatures of launches, seals over rows, and where rows of another store came from.

The indexes are filled by the program (`receipts db reindex`), which knows how a receipt is read. A migration is frozen:
it repeats what `receipts/store/tables/` and `triggers.py` said on its day.
"""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

MOMENT = sa.DateTime(timezone=True)
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    values()
    places()
    sealed()
    indexes()
    made = sqlite() if op.get_bind().dialect.name == "sqlite" else postgresql()
    for statement in made:
        op.execute(statement)


def key(says: str) -> sa.Column:
    return sa.Column("seq", NUMBER, nullable=False, autoincrement=True, comment=says)


def words(name: str, says: str, *, required: bool = False) -> sa.Column:
    return sa.Column(name, WORDS, nullable=not required, comment=says)


def number(name: str, says: str, *, required: bool = False) -> sa.Column:
    return sa.Column(name, sa.BigInteger(), nullable=not required, comment=says)


def refers(name: str, says: str) -> sa.Column:
    return sa.Column(name, NUMBER, nullable=False, autoincrement=False, comment=says)


def twin(says: str) -> sa.Column:
    return sa.Column("twin", sa.SmallInteger(), nullable=False, comment=says)


def values() -> None:
    op.create_table(
        "axis_values",
        key("Number of the value, by which configurations name it"),
        words("axis", "Name of the axis, as `receipts axes` prints it", required=True),
        number("digest", "First 8 bytes of the value's SHA-256, signed", required=True),
        twin("0, or 1 and up for another value of one digest"),
        sa.Column(
            "early",
            sa.SmallInteger(),
            nullable=False,
            comment="1 for the first few values of an axis, whose neighbours are found by sums; 0 for the others",
        ),
        words("value", "The axis' effective leaves as JSON", required=True),
        sa.UniqueConstraint("axis", "digest", "twin", name=op.f("axis_values_axis_digest_twin_key")),
        sa.PrimaryKeyConstraint("seq", name=op.f("axis_values_pkey")),
        comment="Every value that an axis was seen to have, once",
    )
    op.create_table(
        "configurations",
        key("Number of the configuration"),
        number(
            "digest",
            "Sum of the digests of its parts, modulo 2^64, signed: what one axis adds can be taken out",
            required=True,
        ),
        twin("0, or 1 and up for another configuration of one digest"),
        number(
            "catalogue",
            "Digest of the catalogue of axes and of the lane that read the receipt, signed",
            required=True,
        ),
        words("lane", "run.lane, its first 200 characters", required=True),
        words(
            "anchor",
            "What stands for all that is unstated: the context, else the receipt's own id; null where nothing is",
        ),
        sa.Column(
            "whole",
            sa.LargeBinary(),
            nullable=False,
            comment="16 bytes of SHA-256 over all of it, compared on every hit",
        ),
        sa.Column(
            "members",
            sa.LargeBinary(),
            nullable=False,
            comment="Numbers of its axis values, ascending, as varints of the gaps",
        ),
        sa.UniqueConstraint("digest", "twin", name=op.f("configurations_digest_twin_key")),
        sa.PrimaryKeyConstraint("seq", name=op.f("configurations_pkey")),
        comment="Every combination of axis values, once",
    )


def places() -> None:
    op.create_table(
        "axes",
        sa.Column("value", sa.Integer(), nullable=False, autoincrement=False, comment="The axis value"),
        sa.Column("configuration", sa.Integer(), nullable=False, autoincrement=False, comment="The configuration"),
        number(
            "leave_one_out",
            "The configuration's digest without this axis; null where none can share it, or the value is found by its "
            "sum",
        ),
        sa.PrimaryKeyConstraint("value", "configuration", name=op.f("axes_pkey")),
        comment="One row an axis of a configuration: equal leave-one-out digests are one axis apart",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "placements",
        refers("receipt", "The receipt"),
        sa.Column("configuration", NUMBER, nullable=False, comment="Its configuration"),
        sa.PrimaryKeyConstraint("receipt", name=op.f("placements_pkey")),
        sa.ForeignKeyConstraint(
            ["receipt"], ["receipts.seq"], name=op.f("placements_receipt_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["configuration"], ["configurations.seq"], name=op.f("placements_configuration_fkey")),
        comment="Which configuration a receipt ran",
    )
    op.create_table(
        "signatures",
        refers("receipt", "The receipt"),
        words("signature", "SHA-256 over what decides whether a launch fits, in hex", required=True),
        number("base", "8 bytes of the same without the pressures beside it, signed", required=True),
        words("outcome", "run.outcome: the receipt's own, so that a look-up reads no row of it", required=True),
        number("micro_batch", "batch.micro_batch, sequences"),
        number("sequence_length", "batch.sequence_length, tokens"),
        words("extras", "Features that are on and that the lane calls non-essential, as JSON"),
        sa.PrimaryKeyConstraint("receipt", name=op.f("signatures_pkey")),
        sa.ForeignKeyConstraint(
            ["receipt"], ["receipts.seq"], name=op.f("signatures_receipt_fkey"), ondelete="CASCADE"
        ),
        comment="What a launch is called before it is tried: the same signature failed or worked",
    )


def sealed() -> None:
    op.create_table(
        "seals",
        key("Number in the order in which seals were written or came in"),
        words(
            "store",
            "Id of the store that sealed its rows: this one's, or that of an export that was taken in",
            required=True,
        ),
        words("what", "Table of the rows: receipts, verdicts, supersessions, …", required=True),
        number("first", "Number of the first row, in the store that sealed it", required=True),
        number("last", "Number of the last row", required=True),
        sa.Column("held", sa.Integer(), nullable=False, comment="How many rows it holds"),
        words("root", "Merkle root over the rows' digests, SHA-256 in hex", required=True),
        sa.Column("at", MOMENT, nullable=False, comment="When it was sealed"),
        sa.UniqueConstraint("store", "what", "first", "root", name=op.f("seals_store_what_first_root_key")),
        sa.PrimaryKeyConstraint("seq", name=op.f("seals_pkey")),
        comment="Merkle roots: a row that was changed or taken away since is found",
    )
    op.create_table(
        "origins",
        words("store", "Id of the store that it came from", required=True),
        words("what", "Table of the row: receipts, verdicts, supersessions, …", required=True),
        number("number", "Its number there", required=True),
        number("here", "The row's number here", required=True),
        sa.PrimaryKeyConstraint("store", "what", "number", name=op.f("origins_pkey")),
        comment="Rows that another store sealed: they came from it, or both hold the same receipt",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "erased",
        key("Number in the order in which rows were erased"),
        words("store", "Id of the store that sealed the row", required=True),
        words("what", "Table of the row: receipts, verdicts, supersessions, …", required=True),
        number("number", "Its number in that store", required=True),
        words("receipt", "Id of the receipt with whose tombstone it went", required=True),
        words("leaf", "Digest of the row as the seal holds it, SHA-256 in hex", required=True),
        words("seal", "Root of the seal that holds it", required=True),
        sa.PrimaryKeyConstraint("seq", name=op.f("erased_pkey")),
        comment="What a purge took out from under a seal: the digest stays, so that the seal still holds",
    )


def indexes() -> None:
    early, stated = sa.text("early = 1"), sa.text("leave_one_out IS NOT NULL")
    op.create_index("axis_values_early", "axis_values", ["axis"], sqlite_where=early, postgresql_where=early)
    op.create_index(
        "axes_leave_one_out",
        "axes",
        ["leave_one_out", "configuration"],
        sqlite_where=stated,
        postgresql_where=stated,
    )
    op.create_index("configurations_lane", "configurations", ["lane", "catalogue"])
    op.create_index("placements_configuration", "placements", ["configuration", "receipt"])
    op.create_index("signatures_signature", "signatures", ["signature", "outcome"])
    op.create_index("signatures_base", "signatures", ["base", "outcome", "micro_batch", "sequence_length"])
    op.create_index("origins_here", "origins", ["what", "here"])


# Keys under which `INSERT OR REPLACE` would push an older row out.
TAKEN = {
    "seals": (
        "EXISTS (SELECT 1 FROM seals WHERE seq = NEW.seq "
        "OR (store = NEW.store AND what = NEW.what AND first = NEW.first AND root = NEW.root))"
    ),
    "origins": ("EXISTS (SELECT 1 FROM origins WHERE store = NEW.store AND what = NEW.what AND number = NEW.number)"),
    "erased": "EXISTS (SELECT 1 FROM erased WHERE seq = NEW.seq)",
}


def sqlite() -> Iterator[str]:
    for table in TAKEN:
        yield (
            f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} BEGIN "
            f"SELECT RAISE(ABORT, '{table} is append-only: update refused'); END"
        )
        yield (
            f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} BEGIN "
            f"SELECT RAISE(ABORT, '{table} is append-only: delete refused'); END"
        )
        yield (
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {TAKEN[table]} BEGIN "
            f"SELECT RAISE(ABORT, '{table} is append-only: replace refused'); END"
        )


def postgresql() -> Iterator[str]:
    for table in TAKEN:
        for event, each in (("update", "ROW"), ("truncate", "STATEMENT"), ("delete", "ROW")):
            yield (
                f"CREATE TRIGGER {table}_no_{event} BEFORE {event.upper()} ON {table} "
                f"FOR EACH {each} EXECUTE FUNCTION receipts_refuse()"
            )
