"""What receipts are listed by beside their axes: facets, and the time, host, context and commit with each placement.

What is placed already is filled in, from its row and, for the commit, from its document. A migration is frozen: it
repeats what `receipts/store/tables/` and `receipts/store/listed.py` said on its day.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
ADDED = (
    ("at", sa.BigInteger(), "run.started, in microseconds since 1970"),
    ("facet", sa.BigInteger(), "What came of it, by its digest in facets"),
    ("host", WORDS, "run.host, its first 200 characters"),
    ("context", WORDS, "run.context, its first 200 characters"),
    ("revision", WORDS, "code.commit, its first 200 characters"),
)
FACET = (
    *("lane", "kind", "outcome", "provenance", "status", "path_answer", "schema_version", "accelerator"),
    *("rate_source", "failure_phase", "failure_class"),
)
SAYS = "Which configuration a receipt ran, and what it is listed by"
MOMENT = sa.DateTime(timezone=True)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CHUNK = 500  # documents, of at most 16 MiB each and mostly of some 10 kB packed
MOST_BYTES = 1 << 26


def upgrade() -> None:
    op.create_table(
        "facets",
        sa.Column(
            "digest",
            sa.BigInteger(),
            nullable=False,
            autoincrement=False,
            comment="First 8 bytes of the value's SHA-256, signed",
        ),
        sa.Column(
            "value",
            WORDS,
            nullable=False,
            comment="JSON list of lane, kind, outcome, provenance, status, path_answer, schema_version, accelerator, "
            "rate_source, failure_phase, failure_class",
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("facets_pkey")),
        comment="Every combination of what came of receipts, once",
    )
    op.drop_index("placements_configuration", "placements")
    if op.get_bind().dialect.name == "sqlite":
        again()
    else:
        for name, kind, says in ADDED:
            op.add_column("placements", sa.Column(name, kind, nullable=True, comment=says))
        op.create_table_comment("placements", SAYS, existing_comment="Which configuration a receipt ran")
        fill(
            "UPDATE placements SET at = :at, facet = :facet, host = :host, context = :context, revision = :revision "
            "WHERE receipt = :receipt"
        )
    op.create_index("placements_configuration", "placements", ["configuration", "receipt", "facet", "at"])
    op.create_index("placements_facet", "placements", ["facet", "at", "receipt"])
    for name in ("host", "context", "revision"):
        op.create_index(f"placements_{name}", "placements", [name, "at", "receipt", "facet"])


def again() -> None:
    """Make the table anew: SQLite keeps a column's comment in the table's own text alone."""
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.rename_table("placements", "placements_before")
    op.create_table(
        "placements",
        sa.Column("receipt", number, nullable=False, autoincrement=False, comment="The receipt"),
        sa.Column("configuration", number, nullable=False, comment="Its configuration"),
        *(sa.Column(name, kind, nullable=True, comment=says) for name, kind, says in ADDED),
        sa.PrimaryKeyConstraint("receipt", name=op.f("placements_pkey")),
        sa.ForeignKeyConstraint(
            ["receipt"], ["receipts.seq"], name=op.f("placements_receipt_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["configuration"], ["configurations.seq"], name=op.f("placements_configuration_fkey")),
        comment=SAYS,
    )
    fill(
        "INSERT INTO placements (receipt, configuration, at, facet, host, context, revision) "
        "VALUES (:receipt, :configuration, :at, :facet, :host, :context, :revision)",
        "placements_before",
    )
    op.drop_table("placements_before")


def fill(statement: str, source: str = "placements") -> None:
    """Run the statement for each receipt that is placed, with what it is listed by, and write the facets."""
    connection = op.get_bind()
    facets: dict[int, str] = {}
    for rows in placed(connection, source):
        made = []
        for row in rows:
            digest, value = facet([row[name] for name in FACET])
            facets[digest] = value
            made.append(
                {
                    "receipt": row["receipt"],
                    "configuration": row["configuration"],
                    "at": instant(row["started"]),
                    "facet": digest,
                    "host": cut(row["host"]),
                    "context": cut(row["context"]),
                    "revision": cut(commit(row["body"])),
                }
            )
        connection.execute(sa.text(statement), made)
    if facets:
        insert = sa.text("INSERT INTO facets (digest, value) VALUES (:digest, :value)")
        connection.execute(insert, [{"digest": digest, "value": value} for digest, value in facets.items()])


def placed(connection: sa.Connection, source: str) -> Iterator[Sequence[sa.RowMapping]]:
    columns = ", ".join(f"receipts.{name}" for name in ("started", "host", "context", *FACET))
    query = sa.text(
        f"SELECT placed.receipt, placed.configuration, {columns}, documents.body FROM {source} placed "
        "JOIN receipts ON receipts.seq = placed.receipt LEFT JOIN documents ON documents.receipt = placed.receipt "
        "WHERE placed.receipt > :after ORDER BY placed.receipt LIMIT :most"
    ).columns(started=MOMENT)
    after = -1
    while rows := connection.execute(query, {"after": after, "most": CHUNK}).mappings().all():
        yield rows
        after = rows[-1]["receipt"]


def instant(started: datetime) -> int:
    moment = started.replace(tzinfo=UTC) if started.tzinfo is None else started
    return (moment - EPOCH) // timedelta(microseconds=1)


def facet(values: list[str | None]) -> tuple[int, str]:
    text = json.dumps(values, separators=(",", ":"))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True), text


def cut(text: str | None) -> str | None:
    return None if text is None else text[:200]


def commit(body: Any) -> str | None:
    """`code.commit` of a packed document."""
    try:
        found = json.loads(zlib.decompressobj().decompress(bytes(body), MOST_BYTES))["code"]["commit"]
    except (zlib.error, ValueError, LookupError, TypeError):
        return None  # not stated, or damaged: whoever reads the receipt is told, and the others are upgraded
    # PostgreSQL holds every character but one.
    return found.replace("\0", "\\u0000") if isinstance(found, str) else None
