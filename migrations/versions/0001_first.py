"""The first schema: receipts with their documents, verdicts, and what happened to receipts later.

A migration is frozen: it repeats what `receipts/store/tables.py` and `triggers.py` said on its day.
"""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

MOMENT = sa.DateTime(timezone=True)
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    tables()
    indexes()
    triggers()


def tables() -> None:
    op.create_table(
        "pins",
        sa.Column(
            "seq",
            NUMBER,
            nullable=False,
            autoincrement=True,
            comment="Number in the order in which pins were set; the last one of a name counts",
        ),
        sa.Column("name", WORDS, nullable=False, comment="Name without the @"),
        sa.Column("receipt", WORDS, nullable=True, comment="Id of the receipt; null where the pin was taken away"),
        sa.Column("note", WORDS, nullable=True, comment="Why it was set"),
        sa.Column("at", MOMENT, nullable=False, comment="When it was set"),
        sa.PrimaryKeyConstraint("seq", name=op.f("pins_pkey")),
        comment="Named references with their history",
    )
    op.create_table(
        "purges",
        sa.Column("receipt", WORDS, nullable=False, comment="Id of the receipt that was erased"),
        sa.Column("reason", WORDS, nullable=False, comment="Why"),
        sa.Column("at", MOMENT, nullable=False, comment="When it was erased"),
        sa.PrimaryKeyConstraint("receipt", name=op.f("purges_pkey")),
        comment="Tombstones: a row here, and it alone, lets a receipt be deleted",
    )
    op.create_table(
        "receipts",
        sa.Column(
            "seq",
            NUMBER,
            nullable=False,
            autoincrement=True,
            comment="Number in the order in which the store took receipts in",
        ),
        sa.Column("id", WORDS, nullable=False, comment="SHA-256 of the document as it came, in hex"),
        sa.Column("launch", WORDS, nullable=False, comment="run.launch, the unit of replication"),
        sa.Column(
            "generation",
            sa.SmallInteger(),
            nullable=False,
            comment="0 for a launch's first receipt here, 1 for the one after it; two writers cannot both take one",
        ),
        sa.Column("lane", WORDS, nullable=False, comment="run.lane, its first 200 characters"),
        sa.Column("kind", WORDS, nullable=False, comment="run.kind: training, microbench, profile, serving"),
        sa.Column("outcome", WORDS, nullable=False, comment="run.outcome: ok, oom, crash, hang, nan, preempted"),
        sa.Column(
            "provenance", WORDS, nullable=False, comment="run.provenance: measured, quoted, projected, illustrative"
        ),
        sa.Column("status", WORDS, nullable=False, comment="Status when it was submitted: valid, unwitnessed, invalid"),
        sa.Column(
            "path_answer", WORDS, nullable=False, comment="Path when it was submitted: witnessed, unwitnessed, left"
        ),
        sa.Column("schema_version", WORDS, nullable=False, comment="Version of the document"),
        sa.Column("started", MOMENT, nullable=False, comment="run.started"),
        sa.Column("finished", MOMENT, nullable=True, comment="run.finished"),
        sa.Column("submitted_at", MOMENT, nullable=False, comment="When the store took it in"),
        sa.Column("label", WORDS, nullable=True, comment="run.label"),
        sa.Column("context", WORDS, nullable=True, comment="run.context, the base configuration"),
        sa.Column("host", WORDS, nullable=True, comment="run.host"),
        sa.Column(
            "supersedes", WORDS, nullable=True, comment="run.supersedes.target, the launch or id that it replaces"
        ),
        sa.Column("supersedes_reason", WORDS, nullable=True, comment="run.supersedes.reason"),
        sa.Column(
            "accelerator",
            WORDS,
            nullable=True,
            comment="hardware.accelerator, by its name in the registry, else its first 200 characters",
        ),
        sa.Column("chips", sa.BigInteger(), nullable=True, comment="hardware.chips"),
        sa.Column("sequence_length", sa.BigInteger(), nullable=True, comment="batch.sequence_length, tokens"),
        sa.Column("micro_batch", sa.BigInteger(), nullable=True, comment="batch.micro_batch, sequences"),
        sa.Column("global_batch", sa.BigInteger(), nullable=True, comment="batch.global_batch, sequences"),
        sa.Column("depth", sa.BigInteger(), nullable=True, comment="model.depth, blocks"),
        sa.Column("model", WORDS, nullable=True, comment="model.name"),
        sa.Column("family", WORDS, nullable=True, comment="model.family"),
        sa.Column("tokens_per_second", sa.Double(), nullable=True, comment="Tokens a second over all chips"),
        sa.Column("tokens_per_second_per_chip", sa.Double(), nullable=True, comment="Tokens a second a chip"),
        sa.Column(
            "step_seconds", sa.Double(), nullable=True, comment="Median steady step, or the time stated; seconds"
        ),
        sa.Column("tflops_per_second_per_chip", sa.Double(), nullable=True, comment="TFLOP/s a chip"),
        sa.Column("mfu", sa.Double(), nullable=True, comment="Model FLOPs utilisation, a fraction"),
        sa.Column(
            "rate_source", WORDS, nullable=True, comment="Where tokens_per_second came from: steps, stated, derived"
        ),
        sa.Column("peak_bytes", sa.Double(), nullable=True, comment="Highest live peak of a chip, bytes"),
        sa.Column("peak_reserved_bytes", sa.Double(), nullable=True, comment="Highest pool of a chip, bytes"),
        sa.Column("compile_seconds", sa.Double(), nullable=True, comment="Compile time, seconds"),
        sa.Column("failure_phase", WORDS, nullable=True, comment="failure.phase"),
        sa.Column("failure_class", WORDS, nullable=True, comment="failure.class"),
        sa.UniqueConstraint("id", name=op.f("receipts_id_key")),
        sa.UniqueConstraint("launch", "generation", name=op.f("receipts_launch_generation_key")),
        sa.PrimaryKeyConstraint("seq", name=op.f("receipts_pkey")),
        comment="One row a receipt: what lists, reports and rules look it up by",
    )
    op.create_table(
        "stores",
        sa.Column("id", WORDS, nullable=False, comment="UUID of this store"),
        sa.Column("created_at", MOMENT, nullable=False, comment="When it was made"),
        sa.Column("made_by", WORDS, nullable=False, comment="Version of the program that made it"),
        sa.PrimaryKeyConstraint("id", name=op.f("stores_pkey")),
        comment="The store's own identity, one row",
    )
    op.create_table(
        "supersessions",
        sa.Column(
            "seq", NUMBER, nullable=False, autoincrement=True, comment="Number in the order in which they were said"
        ),
        sa.Column("receipt", WORDS, nullable=False, comment="Id of the receipt that no longer stands"),
        sa.Column(
            "successor", WORDS, nullable=True, comment="Id of the receipt that replaces it; null where it was retracted"
        ),
        sa.Column("reason", WORDS, nullable=False, comment="Why"),
        sa.Column("at", MOMENT, nullable=False, comment="When it was said"),
        sa.PrimaryKeyConstraint("seq", name=op.f("supersessions_pkey")),
        comment="Receipts that no longer stand",
    )
    op.create_table(
        "verdicts",
        sa.Column(
            "seq",
            NUMBER,
            nullable=False,
            autoincrement=True,
            comment="Number in the order in which verdicts were given",
        ),
        sa.Column("kind", WORDS, nullable=False, comment="What was judged: receipt, comparison"),
        sa.Column(
            "status", WORDS, nullable=False, comment="valid, unwitnessed, invalid; accepted, rejected, inconclusive"
        ),
        sa.Column("metric", WORDS, nullable=True, comment="The metric asked for, in a comparison"),
        sa.Column("rules", WORDS, nullable=False, comment="Digest of the rule set"),
        sa.Column("judge", WORDS, nullable=False, comment="Version of the judge"),
        sa.Column("judged_at", MOMENT, nullable=False, comment="When it was judged"),
        sa.Column("codec", WORDS, nullable=False, comment="How body is packed: zlib"),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="The verdict as JSON, packed"),
        sa.PrimaryKeyConstraint("seq", name=op.f("verdicts_pkey")),
        comment="What the rules said, and under which rule set; a later verdict stands beside an earlier one",
    )
    op.create_table(
        "documents",
        sa.Column("receipt", NUMBER, nullable=False, autoincrement=False, comment="The receipt, by its number"),
        sa.Column("codec", WORDS, nullable=False, comment="How body is packed: zlib"),
        sa.Column("size", sa.Integer(), nullable=False, comment="Bytes of the document as it came"),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="The document as it came, packed"),
        sa.PrimaryKeyConstraint("receipt", name=op.f("documents_pkey")),
        sa.ForeignKeyConstraint(["receipt"], ["receipts.seq"], name=op.f("documents_receipt_fkey")),
        comment="The bytes of each receipt, never changed",
    )
    op.create_table(
        "subjects",
        sa.Column("verdict", NUMBER, nullable=False, autoincrement=False, comment="The verdict"),
        sa.Column(
            "position", sa.SmallInteger(), nullable=False, autoincrement=False, comment="0, 1, 2 in the verdict's order"
        ),
        sa.Column("side", WORDS, nullable=False, comment="receipt, or a and b in a comparison"),
        sa.Column("receipt", NUMBER, nullable=False, comment="The receipt, by its number"),
        sa.PrimaryKeyConstraint("verdict", "position", name=op.f("subjects_pkey")),
        sa.ForeignKeyConstraint(["verdict"], ["verdicts.seq"], name=op.f("subjects_verdict_fkey"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["receipt"], ["receipts.seq"], name=op.f("subjects_receipt_fkey")),
        comment="Which receipts a verdict speaks of",
        sqlite_with_rowid=False,
    )


def indexes() -> None:
    op.create_index("pins_name", "pins", ["name"])
    op.create_index("receipts_label", "receipts", ["label"])
    op.create_index(
        "receipts_shape",
        "receipts",
        [
            "lane",
            "kind",
            "outcome",
            "chips",
            "sequence_length",
            "micro_batch",
            "depth",
            "accelerator",
            "global_batch",
            "provenance",
            "status",
            "path_answer",
            "started",
            "tokens_per_second",
            "step_seconds",
            "mfu",
            "peak_bytes",
            "id",
        ],
    )
    op.create_index("receipts_started", "receipts", ["started"])
    op.create_index(
        "receipts_supersedes",
        "receipts",
        ["supersedes"],
        sqlite_where=sa.text("supersedes IS NOT NULL"),
        postgresql_where=sa.text("supersedes IS NOT NULL"),
    )
    op.create_index("supersessions_receipt", "supersessions", ["receipt"])
    op.create_index("supersessions_successor", "supersessions", ["successor"])
    op.create_index("subjects_receipt", "subjects", ["receipt"])


def triggers() -> None:
    made = sqlite() if op.get_bind().dialect.name == "sqlite" else postgresql()
    for statement in made:
        op.execute(statement)


# What a row must belong to before it may be deleted. OLD is the row; every condition asks for a tombstone.
DELETABLE = {
    "receipts": "EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.id)",
    "documents": (
        "EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt WHERE receipts.seq = OLD.receipt)"
    ),
    "verdicts": (
        "EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt "
        "JOIN subjects ON subjects.receipt = receipts.seq WHERE subjects.verdict = OLD.seq)"
    ),
    # Subjects go with their verdict, by cascade, and never before it.
    "subjects": "NOT EXISTS (SELECT 1 FROM verdicts WHERE verdicts.seq = OLD.verdict)",
    # A reason may quote the document that had to go.
    "supersessions": "EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.successor)",
}
KEPT = ("pins", "purges", "stores")
TABLES = (*DELETABLE, *KEPT)

# Keys under which `INSERT OR REPLACE` would push an older row out, and receipts that were erased for good.
TAKEN = {
    "receipts": (
        "EXISTS (SELECT 1 FROM receipts WHERE seq = NEW.seq OR id = NEW.id "
        "OR (launch = NEW.launch AND generation = NEW.generation)) "
        "OR EXISTS (SELECT 1 FROM purges WHERE purges.receipt = NEW.id)"
    ),
    "documents": "EXISTS (SELECT 1 FROM documents WHERE receipt = NEW.receipt)",
    "verdicts": "EXISTS (SELECT 1 FROM verdicts WHERE seq = NEW.seq)",
    "subjects": "EXISTS (SELECT 1 FROM subjects WHERE verdict = NEW.verdict AND position = NEW.position)",
    "supersessions": "EXISTS (SELECT 1 FROM supersessions WHERE seq = NEW.seq)",
    "pins": "EXISTS (SELECT 1 FROM pins WHERE seq = NEW.seq)",
    "purges": "EXISTS (SELECT 1 FROM purges WHERE receipt = NEW.receipt)",
    "stores": "EXISTS (SELECT 1 FROM stores)",
}

_FUNCTION = """\
CREATE FUNCTION receipts_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, lower(TG_OP);
END
$$"""

_ERASED = """\
CREATE FUNCTION receipts_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM purges WHERE purges.receipt = NEW.id) THEN
        RAISE EXCEPTION 'receipts: insert refused: % was purged', NEW.id;
    END IF;
    RETURN NEW;
END
$$"""

_DELETE = """\
CREATE FUNCTION {table}_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF {condition} THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '{table} is append-only: delete refused';
END
$$"""


def sqlite() -> Iterator[str]:
    for table in TABLES:
        yield (
            f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} BEGIN "
            f"SELECT RAISE(ABORT, '{table} is append-only: update refused'); END"
        )
        allowed = f" WHEN NOT ({DELETABLE[table]})" if table in DELETABLE else ""
        yield (
            f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}{allowed} BEGIN "
            f"SELECT RAISE(ABORT, '{table} is append-only: delete refused'); END"
        )
        yield (
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {TAKEN[table]} BEGIN "
            f"SELECT RAISE(ABORT, '{table} is append-only: replace refused'); END"
        )


def postgresql() -> Iterator[str]:
    yield _FUNCTION
    yield _ERASED
    yield (
        "CREATE TRIGGER receipts_no_replace BEFORE INSERT ON receipts FOR EACH ROW EXECUTE FUNCTION receipts_erased()"
    )
    for table in TABLES:
        yield (
            f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION receipts_refuse()"
        )
        yield (
            f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()"
        )
        refuse = "receipts_refuse"
        if table in DELETABLE:
            refuse = f"{table}_delete"
            yield _DELETE.format(table=table, condition=DELETABLE[table])
        yield (f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {refuse}()")
    # The bytes come packed: PostgreSQL would spend time on packing them again, for nothing.
    yield "ALTER TABLE documents ALTER COLUMN body SET STORAGE EXTERNAL"
    yield "ALTER TABLE verdicts ALTER COLUMN body SET STORAGE EXTERNAL"
