"""Which launch a receipt witnesses, as a column that is looked up by: `receipts.witness_for`.

What is stored already tells it in its document, and is filled in from there. A migration is frozen: it repeats what
`receipts/store/tables.py` and `triggers.py` said on its day.
"""

import json
import zlib
from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
SAYS = "run.witness_for, the launch or id whose path it witnesses"
KEY = b"witness_for"
CHUNK = 200  # documents, of at most 16 MiB each and mostly of some 10 kB packed
MOST_BYTES = 1 << 26


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    if sqlite:
        # Added in place: making the table again would cost a copy of every row. The comment stays in its text.
        op.execute(f"ALTER TABLE receipts ADD COLUMN witness_for VARCHAR /* {SAYS} */")
    else:
        op.add_column("receipts", sa.Column("witness_for", WORDS, nullable=True, comment=SAYS))
    fill(sqlite)
    op.create_index(
        "receipts_witness_for",
        "receipts",
        ["witness_for"],
        sqlite_where=sa.text("witness_for IS NOT NULL"),
        postgresql_where=sa.text("witness_for IS NOT NULL"),
    )


def fill(sqlite: bool) -> None:
    """Write the column of the rows that are there. The trigger that refuses updates is lifted for it alone."""
    connection = op.get_bind()
    found = [{"at": seq, "name": name} for seq, name in witnesses(connection)]
    if not found:
        return
    lift, hold = trigger(connection) if sqlite else table()
    connection.execute(sa.text(lift))
    connection.execute(sa.text("UPDATE receipts SET witness_for = :name WHERE seq = :at"), found)
    connection.execute(sa.text(hold))


def trigger(connection: sa.Connection) -> tuple[str, str]:
    made = connection.execute(
        sa.text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = 'receipts_no_update'")
    ).scalar_one()
    return "DROP TRIGGER receipts_no_update", made


def table() -> tuple[str, str]:
    change = "ALTER TABLE receipts {} TRIGGER receipts_no_update"
    return change.format("DISABLE"), change.format("ENABLE")


def witnesses(connection: sa.Connection) -> Iterator[tuple[int, str]]:
    """Number and `run.witness_for` of every stored receipt that states it."""
    after = -1
    while rows := connection.execute(
        sa.text("SELECT receipt, body FROM documents WHERE receipt > :after ORDER BY receipt LIMIT :most"),
        {"after": after, "most": CHUNK},
    ).all():
        for seq, body in rows:
            named = witness_for(bytes(body))
            if named is not None:
                yield seq, named
        after = rows[-1].receipt


def witness_for(body: bytes) -> str | None:
    try:
        raw = zlib.decompressobj().decompress(body, MOST_BYTES)
        # A key is written as it is or with escapes; most documents have neither, and need not be read.
        if KEY not in raw and b"\\u" not in raw:
            return None
        named = json.loads(raw)["run"].get("witness_for")
    except (zlib.error, ValueError, LookupError):
        return None  # damaged: whoever reads the receipt is told, and the others are upgraded
    # PostgreSQL holds every character but one.
    return named.replace("\0", "\\u0000") if isinstance(named, str) else None
