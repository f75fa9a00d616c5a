"""Least-privilege roles on PostgreSQL, as SQL that is made of the tables and can be run again after an upgrade.

The owner of the tables migrates, purges, imports and restores. A submitter reads everything and adds rows; nothing
that it may do changes or takes away what is there, and triggers refuse that to everybody else as well. A reader reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import Table

from receipts.base.errors import UsageError
from receipts.store.tables import erased, metadata, purges, stores, version

# What only the owner writes: tombstones with what they took out from under seals, and the store's own identity.
OWNERS: Final = (purges, erased, stores)


def statements(submitter: str, reader: str, schema: str = "public") -> Iterator[str]:
    """The SQL, one statement each, to be run by the owner of the tables. Raises UsageError for an empty name."""
    for name in (submitter, reader, schema):
        if not name or "\0" in name:
            raise UsageError("a role or schema needs a name, such as receipts_submitter")
    every = metadata.sorted_tables
    added = [table for table in every if table not in OWNERS]
    place, both = quoted(schema), f"{quoted(submitter)}, {quoted(reader)}"
    for role in (submitter, reader):
        yield (
            f"DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = {_literal(role)}) "
            f"THEN CREATE ROLE {quoted(role)} NOLOGIN; END IF; END $$"
        )
    yield f"REVOKE CREATE ON SCHEMA {place} FROM PUBLIC"
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {place} FROM PUBLIC, {both}"
    yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {place} FROM PUBLIC, {both}"
    yield f"GRANT USAGE ON SCHEMA {place} TO {both}"
    yield f"GRANT SELECT ON {_listed([*every, version], place)} TO {both}"
    yield f"GRANT INSERT ON {_listed(added, place)} TO {quoted(submitter)}"
    counted = ", ".join(f"{place}.{quoted(f'{table.name}_seq_seq')}" for table in added if "seq" in table.c)
    yield f"GRANT USAGE ON SEQUENCE {counted} TO {quoted(submitter)}"


def _listed(tables: Sequence[Table], schema: str) -> str:
    return ", ".join(f"{schema}.{quoted(table.name)}" for table in tables)


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
