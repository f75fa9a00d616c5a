"""Claims with their verdicts, decisions on receipts, and the documents that quote them.

A migration is frozen: it repeats what `receipts/store/tables.py` and `triggers.py` said on its day.
"""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

MOMENT = sa.DateTime(timezone=True)
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    tables()
    indexes()
    made = sqlite() if op.get_bind().dialect.name == "sqlite" else postgresql()
    for statement in made:
        op.execute(statement)


def key(says: str) -> sa.Column:
    return sa.Column("seq", NUMBER, nullable=False, autoincrement=True, comment=says)


def words(name: str, says: str, *, required: bool = False) -> sa.Column:
    return sa.Column(name, WORDS, nullable=not required, comment=says)


def moment(says: str) -> sa.Column:
    return sa.Column("at", MOMENT, nullable=False, comment=says)


def tables() -> None:
    op.create_table(
        "claims",
        key("Number in the order in which claims were added"),
        words("id", "Name of the claim, given by its author", required=True),
        words("kind", "speedup, equivalence, ceiling, mfu, memory, does-not-fit", required=True),
        words("body", "The claim as JSON (schema/claims-1.schema.json)", required=True),
        words("origin", "File that it was added from", required=True),
        moment("When it was added"),
        sa.UniqueConstraint("id", name=op.f("claims_id_key")),
        sa.PrimaryKeyConstraint("seq", name=op.f("claims_pkey")),
        comment="Sentences about performance, never edited: one that changes is superseded by another",
    )
    op.create_table(
        "claim_supersessions",
        key("Number in the order in which they were said"),
        words("claim", "Id of the claim that no longer stands", required=True),
        words("successor", "Id of the claim that replaces it; null where it was withdrawn"),
        words("reason", "Why", required=True),
        moment("When it was said"),
        sa.PrimaryKeyConstraint("seq", name=op.f("claim_supersessions_pkey")),
        comment="Claims that no longer stand",
    )
    op.create_table(
        "claim_verdicts",
        key("Number in the order in which verdicts were given"),
        words("claim", "Id of the claim", required=True),
        words("status", "supported, refuted, unproven, stale", required=True),
        words("rules", "Digest of the rule set", required=True),
        words("judge", "Version of the judge", required=True),
        moment("When it was judged"),
        words("codec", "How body is packed: zlib", required=True),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="The verdict as JSON, packed"),
        sa.PrimaryKeyConstraint("seq", name=op.f("claim_verdicts_pkey")),
        comment="What was said of claims, and under which rule set; the last one of a claim counts",
    )
    op.create_table(
        "claim_subjects",
        sa.Column("verdict", NUMBER, nullable=False, autoincrement=False, comment="The verdict"),
        sa.Column(
            "position", sa.SmallInteger(), nullable=False, autoincrement=False, comment="0, 1, 2 in the verdict's order"
        ),
        words("side", "baseline, candidate", required=True),
        words("receipt", "Id of the receipt, stored or not", required=True),
        sa.PrimaryKeyConstraint("verdict", "position", name=op.f("claim_subjects_pkey")),
        sa.ForeignKeyConstraint(
            ["verdict"], ["claim_verdicts.seq"], name=op.f("claim_subjects_verdict_fkey"), ondelete="CASCADE"
        ),
        comment="Which receipts a claim stood on when it was judged",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "decisions",
        key("Number in the order in which they were made; the last one of a receipt counts"),
        words("receipt", "Id of the receipt", required=True),
        words("decision", "ship, hold, drop", required=True),
        words("reason", "Why", required=True),
        moment("When it was made"),
        sa.PrimaryKeyConstraint("seq", name=op.f("decisions_pkey")),
        comment="What was decided on a receipt, shown wherever it is quoted",
    )
    op.create_table(
        "quotes",
        key("Number in the order in which they were found"),
        words("document", "Path or URL of the document that quotes it", required=True),
        words("receipt", "Id of the receipt; null where the document was read and quotes none"),
        words("says", "What the document says of it"),
        moment("When the document was read; its last reading counts"),
        sa.PrimaryKeyConstraint("seq", name=op.f("quotes_pkey")),
        comment="Reports and other documents that quote receipts",
    )


def indexes() -> None:
    op.create_index("claim_supersessions_claim", "claim_supersessions", ["claim"])
    op.create_index("claim_verdicts_claim", "claim_verdicts", ["claim"])
    op.create_index("claim_subjects_receipt", "claim_subjects", ["receipt"])
    op.create_index("decisions_receipt", "decisions", ["receipt"])
    op.create_index("quotes_document", "quotes", ["document"])
    op.create_index("quotes_receipt", "quotes", ["receipt"])


# What a row must belong to before it may be deleted. OLD is the row; every condition asks for a tombstone.
DELETABLE = {
    "claim_verdicts": (
        "EXISTS (SELECT 1 FROM purges JOIN claim_subjects ON claim_subjects.receipt = purges.receipt "
        "WHERE claim_subjects.verdict = OLD.seq)"
    ),
    "claim_subjects": "NOT EXISTS (SELECT 1 FROM claim_verdicts WHERE claim_verdicts.seq = OLD.verdict)",
}
TABLES = (*DELETABLE, "claims", "claim_supersessions", "decisions", "quotes")

# Keys under which `INSERT OR REPLACE` would push an older row out.
TAKEN = {
    "claims": "EXISTS (SELECT 1 FROM claims WHERE seq = NEW.seq OR id = NEW.id)",
    "claim_supersessions": "EXISTS (SELECT 1 FROM claim_supersessions WHERE seq = NEW.seq)",
    "claim_verdicts": "EXISTS (SELECT 1 FROM claim_verdicts WHERE seq = NEW.seq)",
    "claim_subjects": "EXISTS (SELECT 1 FROM claim_subjects WHERE verdict = NEW.verdict AND position = NEW.position)",
    "decisions": "EXISTS (SELECT 1 FROM decisions WHERE seq = NEW.seq)",
    "quotes": "EXISTS (SELECT 1 FROM quotes WHERE seq = NEW.seq)",
}

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
        yield f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {refuse}()"
    # The bytes come packed: PostgreSQL would spend time on packing them again, for nothing.
    yield "ALTER TABLE claim_verdicts ALTER COLUMN body SET STORAGE EXTERNAL"
