"""The tables, each with what it is for and each column with what it holds.

They hold what happened and nothing that can change: a receipt is superseded, withdrawn, pinned or purged by a row
that is added. Receipts are numbered in the order that the store took them in (`seq`), and parts of one receipt refer
to that number; what has to outlive a purge, or to mean the same in another store, refers to the receipt's id.

Schema, one line a revision (``migrations/versions/``):

    0001   receipts, documents, verdicts, subjects, supersessions, pins, purges, stores
    0002   claims, claim_supersessions, claim_verdicts, claim_subjects, decisions, quotes
    0003   receipts.witness_for
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
    event,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateColumn, CreateTable

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Dialect

HEAD: Final = "0003"


class Utc(TypeDecorator[datetime]):
    """A moment with its zone: `timestamptz` on PostgreSQL, ISO text in UTC on SQLite; always read back in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        moment: datetime = value
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


# Byte order on both engines, so that prefixes are ranges and lists come in one order whatever the server's locale.
Words = String().with_variant(String(collation="C"), "postgresql")
Number = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    }
)


def _key(says: str) -> Column[int]:
    return Column("seq", Number, primary_key=True, autoincrement=True, comment=says)


def _words(name: str, says: str, *, required: bool = False) -> Column[str]:
    return Column(name, Words, nullable=not required, comment=says)


def _number(name: str, says: str, *, required: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=not required, comment=says)


def _measure(name: str, says: str) -> Column[float]:
    return Column(name, Double, nullable=True, comment=says)


def _moment(name: str, says: str, *, required: bool = True) -> Column[datetime]:
    return Column(name, Utc, nullable=not required, comment=says)


receipts = Table(
    "receipts",
    metadata,
    _key("Number in the order in which the store took receipts in"),
    _words("id", "SHA-256 of the document as it came, in hex", required=True),
    _words("launch", "run.launch, the unit of replication", required=True),
    Column(
        "generation",
        SmallInteger,
        nullable=False,
        comment="0 for a launch's first receipt here, 1 for the one after it; two writers cannot both take one",
    ),
    _words("lane", "run.lane, its first 200 characters", required=True),
    _words("kind", "run.kind: training, microbench, profile, serving", required=True),
    _words("outcome", "run.outcome: ok, oom, crash, hang, nan, preempted", required=True),
    _words("provenance", "run.provenance: measured, quoted, projected, illustrative", required=True),
    _words("status", "Status when it was submitted: valid, unwitnessed, invalid", required=True),
    _words("path_answer", "Path when it was submitted: witnessed, unwitnessed, left", required=True),
    _words("schema_version", "Version of the document", required=True),
    _moment("started", "run.started"),
    _moment("finished", "run.finished", required=False),
    _moment("submitted_at", "When the store took it in"),
    _words("label", "run.label"),
    _words("context", "run.context, the base configuration"),
    _words("host", "run.host"),
    _words("supersedes", "run.supersedes.target, the launch or id that it replaces"),
    _words("supersedes_reason", "run.supersedes.reason"),
    _words(
        "accelerator",
        "hardware.accelerator, by its name in the registry, else its first 200 characters",
    ),
    _number("chips", "hardware.chips"),
    _number("sequence_length", "batch.sequence_length, tokens"),
    _number("micro_batch", "batch.micro_batch, sequences"),
    _number("global_batch", "batch.global_batch, sequences"),
    _number("depth", "model.depth, blocks"),
    _words("model", "model.name"),
    _words("family", "model.family"),
    _measure("tokens_per_second", "Tokens a second over all chips"),
    _measure("tokens_per_second_per_chip", "Tokens a second a chip"),
    _measure("step_seconds", "Median steady step, or the time stated; seconds"),
    _measure("tflops_per_second_per_chip", "TFLOP/s a chip"),
    _measure("mfu", "Model FLOPs utilisation, a fraction"),
    _words("rate_source", "Where tokens_per_second came from: steps, stated, derived"),
    _measure("peak_bytes", "Highest live peak of a chip, bytes"),
    _measure("peak_reserved_bytes", "Highest pool of a chip, bytes"),
    _measure("compile_seconds", "Compile time, seconds"),
    _words("failure_phase", "failure.phase"),
    _words("failure_class", "failure.class"),
    _words("witness_for", "run.witness_for, the launch or id whose path it witnesses"),
    UniqueConstraint("id"),
    UniqueConstraint("launch", "generation"),
    comment="One row a receipt: what lists, reports and rules look it up by",
)

documents = Table(
    "documents",
    metadata,
    Column(
        "receipt",
        Number,
        ForeignKey("receipts.seq"),
        primary_key=True,
        autoincrement=False,
        comment="The receipt, by its number",
    ),
    _words("codec", "How body is packed: zlib", required=True),
    Column("size", Integer, nullable=False, comment="Bytes of the document as it came"),
    Column("body", LargeBinary, nullable=False, comment="The document as it came, packed"),
    comment="The bytes of each receipt, never changed",
)

verdicts = Table(
    "verdicts",
    metadata,
    _key("Number in the order in which verdicts were given"),
    _words("kind", "What was judged: receipt, comparison", required=True),
    _words("status", "valid, unwitnessed, invalid; accepted, rejected, inconclusive", required=True),
    _words("metric", "The metric asked for, in a comparison"),
    _words("rules", "Digest of the rule set", required=True),
    _words("judge", "Version of the judge", required=True),
    _moment("judged_at", "When it was judged"),
    _words("codec", "How body is packed: zlib", required=True),
    Column("body", LargeBinary, nullable=False, comment="The verdict as JSON, packed"),
    comment="What the rules said, and under which rule set; a later verdict stands beside an earlier one",
)

subjects = Table(
    "subjects",
    metadata,
    Column(
        "verdict",
        Number,
        ForeignKey("verdicts.seq", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="The verdict",
    ),
    Column("position", SmallInteger, primary_key=True, autoincrement=False, comment="0, 1, 2 in the verdict's order"),
    _words("side", "receipt, or a and b in a comparison", required=True),
    Column("receipt", Number, ForeignKey("receipts.seq"), nullable=False, comment="The receipt, by its number"),
    comment="Which receipts a verdict speaks of",
    sqlite_with_rowid=False,
)

supersessions = Table(
    "supersessions",
    metadata,
    _key("Number in the order in which they were said"),
    _words("receipt", "Id of the receipt that no longer stands", required=True),
    _words("successor", "Id of the receipt that replaces it; null where it was retracted"),
    _words("reason", "Why", required=True),
    _moment("at", "When it was said"),
    comment="Receipts that no longer stand",
)

pins = Table(
    "pins",
    metadata,
    _key("Number in the order in which pins were set; the last one of a name counts"),
    _words("name", "Name without the @", required=True),
    _words("receipt", "Id of the receipt; null where the pin was taken away"),
    _words("note", "Why it was set"),
    _moment("at", "When it was set"),
    comment="Named references with their history",
)

purges = Table(
    "purges",
    metadata,
    Column("receipt", Words, primary_key=True, comment="Id of the receipt that was erased"),
    _words("reason", "Why", required=True),
    _moment("at", "When it was erased"),
    comment="Tombstones: a row here, and it alone, lets a receipt be deleted",
)

stores = Table(
    "stores",
    metadata,
    Column("id", Words, primary_key=True, comment="UUID of this store"),
    _moment("created_at", "When it was made"),
    _words("made_by", "Version of the program that made it", required=True),
    comment="The store's own identity, one row",
)

claims = Table(
    "claims",
    metadata,
    _key("Number in the order in which claims were added"),
    _words("id", "Name of the claim, given by its author", required=True),
    _words("kind", "speedup, equivalence, ceiling, mfu, memory, does-not-fit", required=True),
    _words("body", "The claim as JSON (schema/claims-1.schema.json)", required=True),
    _words("origin", "File that it was added from", required=True),
    _moment("at", "When it was added"),
    UniqueConstraint("id"),
    comment="Sentences about performance, never edited: one that changes is superseded by another",
)

claim_supersessions = Table(
    "claim_supersessions",
    metadata,
    _key("Number in the order in which they were said"),
    _words("claim", "Id of the claim that no longer stands", required=True),
    _words("successor", "Id of the claim that replaces it; null where it was withdrawn"),
    _words("reason", "Why", required=True),
    _moment("at", "When it was said"),
    comment="Claims that no longer stand",
)

claim_verdicts = Table(
    "claim_verdicts",
    metadata,
    _key("Number in the order in which verdicts were given"),
    _words("claim", "Id of the claim", required=True),
    _words("status", "supported, refuted, unproven, stale", required=True),
    _words("rules", "Digest of the rule set", required=True),
    _words("judge", "Version of the judge", required=True),
    _moment("at", "When it was judged"),
    _words("codec", "How body is packed: zlib", required=True),
    Column("body", LargeBinary, nullable=False, comment="The verdict as JSON, packed"),
    comment="What was said of claims, and under which rule set; the last one of a claim counts",
)

claim_subjects = Table(
    "claim_subjects",
    metadata,
    Column(
        "verdict",
        Number,
        ForeignKey("claim_verdicts.seq", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="The verdict",
    ),
    Column("position", SmallInteger, primary_key=True, autoincrement=False, comment="0, 1, 2 in the verdict's order"),
    _words("side", "baseline, candidate", required=True),
    _words("receipt", "Id of the receipt, stored or not", required=True),
    comment="Which receipts a claim stood on when it was judged",
    sqlite_with_rowid=False,
)

decisions = Table(
    "decisions",
    metadata,
    _key("Number in the order in which they were made; the last one of a receipt counts"),
    _words("receipt", "Id of the receipt", required=True),
    _words("decision", "ship, hold, drop", required=True),
    _words("reason", "Why", required=True),
    _moment("at", "When it was made"),
    comment="What was decided on a receipt, shown wherever it is quoted",
)

quotes = Table(
    "quotes",
    metadata,
    _key("Number in the order in which they were found"),
    _words("document", "Path or URL of the document that quotes it", required=True),
    _words("receipt", "Id of the receipt; null where the document was read and quotes none"),
    _words("says", "What the document says of it"),
    _moment("at", "When the document was read; its last reading counts"),
    comment="Reports and other documents that quote receipts",
)

# Alembic's own table, as Alembic makes it.
version = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32)),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

Index("receipts_label", receipts.c.label)
# Few receipts replace another or witness one, and the others then write nothing here.
_PARTIAL: Final = {
    column: Index(f"receipts_{column.name}", column, sqlite_where=column.is_not(None))
    for column in (receipts.c.supersedes, receipts.c.witness_for)
}


@event.listens_for(receipts, "before_create")
def _partial_on_postgresql(_table: Table, connection: Connection, **_options: Any) -> None:
    # Said only when the table is made: to name the dialect is to import it, 18 ms of every command.
    if connection.dialect.name == "postgresql":
        for column, index in _PARTIAL.items():
            index.dialect_options["postgresql"]["where"] = column.is_not(None)


Index("receipts_started", receipts.c.started)
# Covers what the envelope, earlier failures and a lane's frontier ask, so that none of them reads a row of the table.
# Names that may be long stay out of it: PostgreSQL takes at most 2,704 bytes an entry. One index and not two, because
# each costs every submit one more page to write.
Index(
    "receipts_shape",
    *(
        receipts.c[name]
        for name in (
            *("lane", "kind", "outcome", "chips", "sequence_length", "micro_batch", "depth", "accelerator"),
            *("global_batch", "provenance", "status", "path_answer", "started", "tokens_per_second", "step_seconds"),
            *("mfu", "peak_bytes", "id"),
        )
    ),
)
Index("subjects_receipt", subjects.c.receipt)
Index("supersessions_receipt", supersessions.c.receipt)
Index("supersessions_successor", supersessions.c.successor)
Index("pins_name", pins.c.name)
Index("claim_supersessions_claim", claim_supersessions.c.claim)
Index("claim_verdicts_claim", claim_verdicts.c.claim)
Index("claim_subjects_receipt", claim_subjects.c.receipt)
Index("decisions_receipt", decisions.c.receipt)
Index("quotes_document", quotes.c.document)
Index("quotes_receipt", quotes.c.receipt)


@compiles(CreateColumn, "sqlite")
def _column_with_comment(element: Any, compiler: Any, **kw: Any) -> str:
    """SQLite keeps no comments but the text of CREATE TABLE, so that `.schema` shows them there."""
    made: str = compiler.visit_create_column(element, **kw)
    says = element.element.comment
    return f"{made} /* {says} */" if made and says else made


@compiles(CreateTable, "sqlite")
def _table_with_comment(element: Any, compiler: Any, **kw: Any) -> str:
    made: str = compiler.visit_create_table(element, **kw)
    says = element.element.comment
    return made.replace("(", f"( /* {says} */", 1) if says else made
