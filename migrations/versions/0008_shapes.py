"""Shapes by axes: digests of geometry and layout beside every receipt, and first in the index of shapes.

They are filled in from the documents, as a submit of this version reads them; of a document that no longer reads they
stay null.
"""

import zlib
from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

from receipts.axes.shape import shape_key
from receipts.errors import InputError
from receipts.receipt import Document, parse_again

revision = "0008"
down_revision = "0007"

ADDED = {
    "geometry": "Digest of the axes of the model but its depth, and of the accelerator",
    "layout": "Digest of the axes of parallelism",
}
SHAPE = (
    *("lane", "kind", "outcome", "geometry", "layout", "chips", "sequence_length", "micro_batch", "depth"),
    *("provenance", "status", "accelerator", "global_batch", "path_answer", "started", "tokens_per_second"),
    *("step_seconds", "mfu", "peak_bytes", "id"),
)
CHUNK = 200  # documents, of at most 16 MiB each and mostly of some 10 kB packed
MOST_BYTES = 1 << 26


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    for name, says in ADDED.items():
        if sqlite:
            # Added in place: making the table again would cost a copy of every row. The comment stays in its text.
            op.execute(f"ALTER TABLE receipts ADD COLUMN {name} BIGINT /* {says} */")
        else:
            op.add_column("receipts", sa.Column(name, sa.BigInteger(), nullable=True, comment=says))
    op.drop_index("receipts_shape", "receipts")
    fill(sqlite)
    op.create_index("receipts_shape", "receipts", SHAPE)


def fill(sqlite: bool) -> None:
    """Write the columns of the rows that are there. The trigger that refuses updates is lifted for it alone."""
    connection = op.get_bind()
    if connection.execute(sa.text("SELECT 1 FROM receipts LIMIT 1")).first() is None:
        return
    lift, hold = trigger(connection) if sqlite else table()
    connection.execute(sa.text(lift))
    update = sa.text("UPDATE receipts SET geometry = :geometry, layout = :layout WHERE seq = :at")
    for rows in keys(connection):
        connection.execute(update, rows)
    connection.execute(sa.text(hold))


def trigger(connection: sa.Connection) -> tuple[str, str]:
    made = connection.execute(
        sa.text("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = 'receipts_no_update'")
    ).scalar_one()
    return "DROP TRIGGER receipts_no_update", made


def table() -> tuple[str, str]:
    change = "ALTER TABLE receipts {} TRIGGER receipts_no_update"
    return change.format("DISABLE"), change.format("ENABLE")


def keys(connection: sa.Connection) -> Iterator[list[dict[str, int]]]:
    """Number, geometry and layout of stored receipts, some at a time."""
    after = -1
    while rows := connection.execute(
        sa.text("SELECT receipt, body FROM documents WHERE receipt > :after ORDER BY receipt LIMIT :most"),
        {"after": after, "most": CHUNK},
    ).all():
        found = []
        for seq, body in rows:
            try:
                raw = zlib.decompressobj().decompress(bytes(body), MOST_BYTES)
                found.append({"at": seq, **shape_key(parse_again(Document(raw, "stored")))._asdict()})
            except (zlib.error, InputError):
                continue  # damaged: whoever reads the receipt is told, and the others are upgraded
        if found:
            yield found
        after = rows[-1].receipt
