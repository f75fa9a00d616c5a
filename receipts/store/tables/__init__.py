"""The tables, each with what it is for and each column with what it holds.

They hold what happened and nothing that can change: a receipt is superseded, withdrawn, pinned or purged by a row
that is added. Receipts are numbered in the order that the store took them in (`seq`), and parts of one receipt refer
to that number; what has to outlive a purge, or to mean the same in another store, refers to the receipt's id.

A submit and a comparison write those of receipts. The indexes, which can be rebuilt from documents (`receipts db
reindex`), are axes, and signatures of launches. Receipts of one configuration, which state the same of every axis,
share its rows: a launch that is repeated five times is looked up once. Digests that are added have 8 bytes; what they
find is compared by SHA-256.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
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
    UniqueConstraint,
)

from receipts.store.entry import ENTRY
from receipts.store.tables.columns import (
    Number,
    TableRules,
    Utc,
    Words,
    actor,
    content_columns,
    key,
    metadata,
    moment,
    number,
    packed,
    part_of,
    rules_of,
    words,
)
from receipts.store.tables.publication import (
    claim_subjects,
    claim_supersessions,
    claim_verdicts,
    claims,
    decisions,
    envelopes,
    erased,
    incidents,
    quotes,
    seals,
    tokens,
    trusted_keys,
)

__all__ = [
    "EARLIER",
    "HEAD",
    "REBUILT",
    "Number",
    "Utc",
    "Words",
    "axes",
    "axis_values",
    "claim_subjects",
    "claim_supersessions",
    "claim_verdicts",
    "claims",
    "configurations",
    "content_columns",
    "decisions",
    "documents",
    "envelopes",
    "erased",
    "extracts",
    "incidents",
    "metadata",
    "pins",
    "placements",
    "purges",
    "quotes",
    "receipts",
    "rules_of",
    "seals",
    "signatures",
    "stores",
    "subjects",
    "supersessions",
    "tokens",
    "trusted_keys",
    "verdicts",
    "version",
]

axis_values = Table(
    "axis_values",
    metadata,
    key("Number of the value, by which configurations name it"),
    words("axis", "Name of the axis, as `receipts axes` prints it", required=True),
    Column("digest", LargeBinary, nullable=False, comment="SHA-256 of the value"),
    words("value", "The axis' effective leaves as JSON", required=True),
    UniqueConstraint("axis", "digest"),
    comment="Every value that an axis was seen to have, once",
    info=TableRules("submitter", rebuilt=True).info,
)

configurations = Table(
    "configurations",
    metadata,
    key("Number of the configuration"),
    number(
        "digest",
        "Sum of the digests of its parts, modulo 2^64, signed: what one axis adds can be taken out",
        required=True,
    ),
    number("catalogue", "Digest of the catalogue of axes and of the lane that read the receipt, signed", required=True),
    words("lane", "run.lane, its first 200 characters", required=True),
    words("anchor", "What fills all that is unstated: the context, else the receipt's own id; null if all is stated"),
    number("line", "Digest without code, wheels, image and driver; null where what else is unstated is one receipt's"),
    Column("whole", LargeBinary, nullable=False, comment="16 bytes of SHA-256 over all of it, compared on every hit"),
    Column("value_numbers", LargeBinary, nullable=False, comment="Numbers of its axis values, ascending, 4 bytes each"),
    UniqueConstraint("digest", "whole"),
    comment="Every combination of axis values, once",
    info=TableRules("submitter", rebuilt=True).info,
)

# Without foreign keys: seventy checks, each a lock on a row that every writer shares, would cost more than the rows.
axes = Table(
    "axes",
    metadata,
    # Four bytes each on PostgreSQL: there are seventy rows a configuration.
    Column("value", Integer, primary_key=True, autoincrement=False, comment="The axis value"),
    Column("configuration", Integer, primary_key=True, autoincrement=False, comment="The configuration"),
    number("leave_one_out", "The configuration's digest without this axis; null where none can share it"),
    comment="One row an axis of a configuration: equal leave-one-out digests are one axis apart",
    info=TableRules("submitter", rebuilt=True).info,
    sqlite_with_rowid=False,
)

placements = Table(
    "placements",
    metadata,
    part_of("receipt", "receipts", "The receipt", cascade=True),
    Column("configuration", Number, ForeignKey("configurations.seq"), nullable=False, comment="Its configuration"),
    number("at", "run.started, in microseconds since 1970"),
    comment="Which configuration a receipt ran, and when",
    info=TableRules("submitter", rebuilt=True).info,
)

signatures = Table(
    "signatures",
    metadata,
    part_of("receipt", "receipts", "The receipt", cascade=True),
    words("signature", "SHA-256 over what decides whether a launch fits, in hex", required=True),
    Column("base", BigInteger, nullable=False, comment="8 bytes of the same without the pressures beside it, signed"),
    words("outcome", "run.outcome: the receipt's own, so that a look-up reads no row of it", required=True),
    number("micro_batch", "batch.micro_batch, sequences"),
    number("sequence_length", "batch.sequence_length, tokens"),
    words("extras", "Features that are on and that the lane calls non-essential, as JSON"),
    comment="What a launch is called before it is tried: the same signature failed or worked",
    info=TableRules("submitter", rebuilt=True).info,
)

# With what they are read in the order of, so that the newest few are found without the others.
Index("axes_leave_one_out", axes.c.leave_one_out, axes.c.configuration)
# With their numbers, so that PostgreSQL reads those of a lane without their rows.
Index("configurations_lane", *(configurations.c[name] for name in ("lane", "catalogue", "seq")))
Index("configurations_catalogue", configurations.c.catalogue)
Index("configurations_line", configurations.c.line, configurations.c.seq)
# In the order of time: then SQLite reads no more of a configuration than the newest, however many launches it has.
Index("placements_configuration", *(placements.c[name] for name in ("configuration", "at", "receipt")))
# In the order in which launches of a signature are asked for, the newest first.
Index("signatures_signature", *(signatures.c[name] for name in ("signature", "receipt", "outcome")))
Index("signatures_base", *(signatures.c[name] for name in ("base", "outcome", "micro_batch", "sequence_length")))


# Columns that are newer than the first seals, which must stay valid.
_UNSEALED: Final = frozenset(("tainted", "undecided", "revision", "session", "rate_of", "geometry", "layout"))

_TYPES: Final[Mapping[type, Any]] = {str: Words, int: BigInteger, float: Double, datetime: Utc}


def _entry_columns() -> Iterator[Column[Any]]:
    """The columns of `receipts.store.entry.Entry`; its number is the key, and generations are few."""
    for item in ENTRY.values():
        kind = SmallInteger if item.name == "generation" else _TYPES[item.type]
        column = Column(item.name, kind, nullable=not item.required, comment=item.comment)
        yield key(item.comment) if item.name == "seq" else column


receipts = Table(
    "receipts",
    metadata,
    *_entry_columns(),
    UniqueConstraint("id"),
    UniqueConstraint("launch", "generation"),
    comment="One row a receipt: what lists, reports and rules look it up by",
    info=TableRules("submitter", sealed=True, unsealed=_UNSEALED).info,
    sqlite_autoincrement=True,  # the number of a row that a purge erased is not given again
)

documents = Table(
    "documents",
    metadata,
    part_of("receipt", "receipts", "The receipt, by its number"),
    words("codec", "How body is packed: zlib", required=True),
    Column("size", Integer, nullable=False, comment="Bytes of the document as it came"),
    Column("body", LargeBinary, nullable=False, comment="The document as it came, packed"),
    comment="The bytes of each receipt, never changed",
    info=TableRules("submitter").info,
)

extracts = Table(
    "extracts",
    metadata,
    part_of("receipt", "receipts", "The receipt, by its number"),
    Column("digest", Words, primary_key=True, comment="SHA-256 of the file, as the receipt lists it"),
    Column("kind", Words, primary_key=True, comment="What it is and its version, such as time-profile-1"),
    *packed("The extract"),
    comment="What plugins made of files of evidence when a receipt was submitted with them",
    info=TableRules("submitter").info,
    sqlite_with_rowid=False,
)

verdicts = Table(
    "verdicts",
    metadata,
    key("Number in the order in which verdicts were given"),
    words("kind", "What was judged: receipt, comparison", required=True),
    words("status", "valid, open, invalid; accepted, rejected, inconclusive", required=True),
    words("metric", "The metric asked for, in a comparison"),
    words("rules", "Digest of the rule set", required=True),
    words("judge", "Version of the judge", required=True),
    moment("judged_at", "When it was judged"),
    *packed("The verdict as JSON"),
    comment="What the rules said, and under which rule set; a later verdict does not replace an earlier one",
    info=TableRules("submitter", sealed=True).info,
    sqlite_autoincrement=True,  # the number of a row that a purge erased is not given again
)

subjects = Table(
    "subjects",
    metadata,
    part_of("verdict", "verdicts", "The verdict", cascade=True),
    Column("position", SmallInteger, primary_key=True, autoincrement=False, comment="0, 1, 2 in the verdict's order"),
    words("side", "receipt, or a and b in a comparison", required=True),
    Column("receipt", Number, ForeignKey("receipts.seq"), nullable=False, comment="The receipt, by its number"),
    comment="Which receipts a verdict speaks of",
    info=TableRules("submitter").info,
    sqlite_with_rowid=False,
)

supersessions = Table(
    "supersessions",
    metadata,
    key("Number in the order in which they were said"),
    words("receipt", "Id of the receipt that no longer stands", required=True, of="receipts"),
    words(
        "successor",
        "Id of the receipt that replaces it; null where it was retracted, its own where that was withdrawn",
        of="receipts",
    ),
    words("reason", "Why", required=True),
    moment("at", "When it was said"),
    actor(),
    comment="Receipts that no longer stand",
    info=TableRules("submitter", sealed=True).info,
    sqlite_autoincrement=True,  # the number of a row that a purge erased is not given again
)

pins = Table(
    "pins",
    metadata,
    key("Number in the order in which pins were set; the last one of a name counts"),
    words("name", "Name without the @", required=True),
    words("receipt", "Id of the receipt; null where the pin was taken away", of="receipts"),
    words("note", "Why it was set"),
    moment("at", "When it was set"),
    actor(),
    comment="Named references with their history",
    info=TableRules("decider", sealed=True).info,
)

purges = Table(
    "purges",
    metadata,
    Column("receipt", Words, primary_key=True, comment="Id of the receipt that was erased"),
    words("reason", "Why", required=True),
    moment("at", "When it was erased"),
    actor(),
    comment="Tombstones: a row here, and it alone, lets a receipt be deleted",
    info=TableRules("owner").info,
)

stores = Table(
    "stores",
    metadata,
    Column("id", Words, primary_key=True, comment="UUID of this store"),
    moment("created_at", "When it was made"),
    words("made_by", "Version of the program that made it", required=True),
    comment="The store's own identity, one row",
    info=TableRules("owner").info,
)

# Alembic's own table, as Alembic makes it.
version = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32)),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

for _name in ("label", "actor", "supersedes", "witness_for"):
    Index(f"receipts_{_name}", receipts.c[_name])
# With the order of a list, so that the newest of a name are found without the others.
for _name in ("host", "context", "revision", "model"):
    Index(f"receipts_{_name}", *(receipts.c[name] for name in (_name, "started", "seq")))
# What lists are ordered by, and most conditions test: a scan reads no row of the table.
Index(
    "receipts_listed",
    *(
        receipts.c[name]
        for name in (
            *("started", "seq", "lane", "kind", "outcome", "provenance", "status", "path_answer", "tainted"),
            *("accelerator", "chips", "sequence_length", "micro_batch", "global_batch", "depth", "rate_source"),
            *("tokens_per_second", "step_seconds", "mfu", "peak_bytes"),
        )
    ),
)
# Covers what the envelope, earlier failures and a lane's frontier ask, so that none of them reads a row of the table.
# Names that may be long stay out of it: PostgreSQL takes at most 2,704 bytes an entry. One index and not two, because
# each costs every submit one more page to write. What counts as a launch of a shape comes first after the shape.
# A geometry and a layout come before the sizes: an envelope is that of one of each.
Index(
    "receipts_shape",
    *(
        receipts.c[name]
        for name in (
            *("lane", "kind", "outcome", "geometry", "layout", "chips", "sequence_length", "micro_batch", "depth"),
            *("provenance", "tainted", "accelerator", "global_batch", "path_answer", "started", "tokens_per_second"),
            *("step_seconds", "mfu", "peak_bytes", "rate_source", "id"),
        )
    ),
)
Index("subjects_receipt", subjects.c.receipt)
Index("supersessions_receipt", supersessions.c.receipt)
Index("supersessions_successor", supersessions.c.successor)
Index("pins_name", pins.c.name)

HEAD: Final = "0002"
EARLIER: Final = frozenset({"0001"})  # those that the migrations start from
# Rebuilt from the documents at any time; a table that refers to another comes before it.
REBUILT: Final = tuple(table for table in reversed(metadata.tables.values()) if rules_of(table).rebuilt)
