"""Least-privilege roles on PostgreSQL, as SQL that is made of the tables and can be run again after an upgrade.

A reader reads. A submitter, such as a node of a cluster, also adds what a submit and a recorded comparison write. It
withdraws a receipt only by a later one of the same launch, which a trigger sees to (`triggers`), and moves no pin. A
decider adds every other row that a person causes. The owner of the tables is the administrator: it migrates, purges,
imports and restores. Nothing that the others may do changes or takes away what is there; triggers refuse that to all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import Table

from receipts.base.errors import UsageError
from receipts.store.tables import metadata, rules_of, version


def statements(submitter: str, decider: str, reader: str, schema: str = "public") -> Iterator[str]:
    """The SQL, one statement each, to be run by the owner of the tables. Raises UsageError for an empty name."""
    for name in (submitter, decider, reader, schema):
        if not name or "\0" in name:
            raise UsageError("a role or schema needs a name, such as receipts_submitter")
    every = metadata.sorted_tables
    roles = (submitter, decider, reader)
    place, everybody = quoted(schema), ", ".join(map(quoted, roles))
    for role in roles:
        yield (
            f"DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = {_literal(role)}) "
            f"THEN CREATE ROLE {quoted(role)} NOLOGIN; END IF; END $$"
        )
    yield f"REVOKE CREATE ON SCHEMA {place} FROM PUBLIC"
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {place} FROM PUBLIC, {everybody}"
    yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {place} FROM PUBLIC, {everybody}"
    yield f"GRANT USAGE ON SCHEMA {place} TO {everybody}"
    yield f"GRANT SELECT ON {_listed([*every, version], place)} TO {everybody}"
    for role, adders in ((submitter, ("submitter",)), (decider, ("submitter", "decider"))):
        tables = [table for table in every if rules_of(table).added_by in adders]
        yield f"GRANT INSERT ON {_listed(tables, place)} TO {quoted(role)}"
        counted = ", ".join(f"{place}.{quoted(f'{table.name}_seq_seq')}" for table in tables if "seq" in table.c)
        yield f"GRANT USAGE ON SEQUENCE {counted} TO {quoted(role)}"


def _listed(tables: Sequence[Table], schema: str) -> str:
    return ", ".join(f"{schema}.{quoted(table.name)}" for table in tables)


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
