"""Indexes that can be rebuilt from the documents (`receipts db reindex`): axes, and signatures of launches.

Receipts of one configuration, which state the same of every axis, share its rows: a launch that is repeated five times
is looked up once. Digests that are added have 8 bytes; what they find is compared by SHA-256.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Table, UniqueConstraint

from receipts.store.tables.columns import Number, key, metadata, number, part_of, words
from receipts.store.tables.rules import TableRules

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
    number(
        "leave_one_out",
        "The configuration's digest without this axis; null where none can share it",
    ),
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
