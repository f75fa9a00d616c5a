"""What a database refuses by itself: triggers that hold the store append-only, and roles with the fewest rights.

Triggers, on both engines: nothing is ever updated. Nothing is deleted, except what belongs to a receipt with a
tombstone in `purges`; and tombstones stay. What is refused is refused to every client, and not to this program alone.
On SQLite `INSERT OR REPLACE` deletes without firing delete triggers, so inserting a key again is refused too.

Roles, on PostgreSQL, as SQL that is derived from the tables and can be run again after an upgrade. A reader reads. A
submitter, such as a node of a cluster, also adds what a submit and a recorded comparison write. It withdraws a
receipt only by a later one of the same launch, which a trigger checks, and moves no pin. A decider adds every other
row that a person causes. The owner of the tables is the administrator: it migrates, purges, imports and restores.
Nothing that the others may do changes or takes away what is there; triggers refuse that to all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sqlalchemy import Table, UniqueConstraint

from receipts.base.errors import UsageError
from receipts.store.tables import metadata, rules_of, version

# What a row must belong to before it may be deleted. OLD is the row; every condition asks for a tombstone.
_OF_PURGED: Final = (
    "EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt WHERE receipts.seq = OLD.receipt)"
)
DELETABLE: Final = {
    "receipts": "EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.id)",
    "documents": _OF_PURGED,
    "extracts": _OF_PURGED,
    "verdicts": (
        "EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt "
        "JOIN subjects ON subjects.receipt = receipts.seq WHERE subjects.verdict = OLD.seq)"
    ),
    # Subjects go with their verdict, by cascade, and never before it.
    "subjects": "NOT EXISTS (SELECT 1 FROM verdicts WHERE verdicts.seq = OLD.verdict)",
    "claim_verdicts": (
        "EXISTS (SELECT 1 FROM purges JOIN claim_subjects ON claim_subjects.receipt = purges.receipt "
        "WHERE claim_subjects.verdict = OLD.seq)"
    ),
    "claim_subjects": "NOT EXISTS (SELECT 1 FROM claim_verdicts WHERE claim_verdicts.seq = OLD.verdict)",
    # A reason may quote the document that had to go.
    "supersessions": "EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.successor)",
}
# Every table but those that are rebuilt.
APPEND_ONLY: Final = tuple(name for name, table in metadata.tables.items() if not rules_of(table).rebuilt)

# When an insert is refused, where that is not only that a key is there.
_TAKEN: Final = {
    "receipts": "{keys} OR EXISTS (SELECT 1 FROM purges WHERE purges.receipt = NEW.id)",
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

# A role that may set pins may withdraw receipts; any other its own by a later receipt of the launch.
# With the schema's name, because a session may have temporary tables of the same names.
_WITHDRAWN = """\
CREATE FUNCTION receipts_withdrawn() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    replaced boolean;
BEGIN
    IF has_table_privilege(current_user, format('%I.pins', TG_TABLE_SCHEMA), 'INSERT') THEN
        RETURN NEW;
    END IF;
    EXECUTE format(
        'SELECT EXISTS (SELECT 1 FROM %1$I.receipts AS earlier JOIN %1$I.receipts AS later '
        'ON later.launch = earlier.launch AND later.id <> earlier.id WHERE earlier.id = $1 AND later.id = $2 '
        'AND later.supersedes IN (earlier.id, earlier.launch) AND (earlier.actor IS NULL '
        'OR split_part(later.actor, '' via '', 1) = split_part(earlier.actor, '' via '', 1)))', TG_TABLE_SCHEMA
    ) INTO replaced USING NEW.receipt, NEW.successor;
    IF NOT replaced THEN
        RAISE EXCEPTION 'permission denied to withdraw %', NEW.receipt USING ERRCODE = 'insufficient_privilege';
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


def triggers_by_name(statements: Iterable[str]) -> dict[str, str]:
    """The statement that makes each trigger, of some DDL."""
    return {text.split()[2]: text for text in statements if text.startswith("CREATE TRIGGER")}


def function_bodies(statements: Iterable[str]) -> dict[str, str]:
    """The body of each function, of some DDL of PostgreSQL."""
    return {
        text.split()[2].removesuffix("()"): text.split("$$")[1]
        for text in statements
        if text.startswith("CREATE FUNCTION")
    }


def sqlite_triggers() -> Iterator[str]:
    """The DDL of SQLite, in the order to run it in."""
    for table in APPEND_ONLY:
        yield (
            f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} BEGIN "
            f"SELECT RAISE(ABORT, '{table} is append-only: update refused'); END"
        )
        allowed = f" WHEN NOT ({DELETABLE[table]})" if table in DELETABLE else ""
        yield (
            f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table}{allowed} BEGIN "
            f"SELECT RAISE(ABORT, '{table} is append-only: delete refused'); END"
        )
        # When `INSERT OR REPLACE` would push an older row out, or a purged receipt come back.
        constraints = metadata.tables[table].constraints
        unique = sorted((item for item in constraints if isinstance(item, UniqueConstraint)), key=len)
        keys = [list(item.columns) for item in (metadata.tables[table].primary_key, *unique)]
        equal = [" AND ".join(f"{column.name} = NEW.{column.name}" for column in key) for key in keys]
        if len(keys) > 1:
            equal = [f"({text})" if len(key) > 1 else text for text, key in zip(equal, keys, strict=True)]
        held = f"EXISTS (SELECT 1 FROM {table} WHERE {' OR '.join(equal)})"
        taken = _TAKEN.get(table, "{keys}").format(keys=held)
        yield (
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {taken} BEGIN "
            f"SELECT RAISE(ABORT, '{table} is append-only: replace refused'); END"
        )


def postgres_triggers() -> Iterator[str]:
    """The DDL of PostgreSQL, in the order to run it in."""
    yield _FUNCTION
    yield _ERASED
    yield (
        "CREATE TRIGGER receipts_no_replace BEFORE INSERT ON receipts FOR EACH ROW EXECUTE FUNCTION receipts_erased()"
    )
    yield _WITHDRAWN
    yield (
        "CREATE TRIGGER supersessions_of_launch BEFORE INSERT ON supersessions "
        "FOR EACH ROW EXECUTE FUNCTION receipts_withdrawn()"
    )
    for table in APPEND_ONLY:
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
    for name, packed in metadata.tables.items():
        if "codec" in packed.c:
            yield f"ALTER TABLE {name} ALTER COLUMN body SET STORAGE EXTERNAL"


def role_statements(submitter: str, decider: str, reader: str, schema: str = "public") -> Iterator[str]:
    """The SQL, one statement each, to be run by the owner of the tables. Raises UsageError for an empty name."""
    for name in (submitter, decider, reader, schema):
        if not name or "\0" in name:
            raise UsageError("a role or schema needs a name, such as receipts_submitter")
    every = metadata.sorted_tables
    roles = (submitter, decider, reader)
    place, everybody = quoted_name(schema), ", ".join(map(quoted_name, roles))
    for role in roles:
        literal = role.replace("'", "''")
        yield (
            f"DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '{literal}') "
            f"THEN CREATE ROLE {quoted_name(role)} NOLOGIN; END IF; END $$"
        )
    yield f"REVOKE CREATE ON SCHEMA {place} FROM PUBLIC"
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {place} FROM PUBLIC, {everybody}"
    yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {place} FROM PUBLIC, {everybody}"
    yield f"GRANT USAGE ON SCHEMA {place} TO {everybody}"
    yield f"GRANT SELECT ON {_listed([*every, version], place)} TO {everybody}"
    for role, adders in ((submitter, ("submitter",)), (decider, ("submitter", "decider"))):
        tables = [table for table in every if rules_of(table).added_by in adders]
        yield f"GRANT INSERT ON {_listed(tables, place)} TO {quoted_name(role)}"
        counted = ", ".join(f"{place}.{quoted_name(f'{table.name}_seq_seq')}" for table in tables if "seq" in table.c)
        yield f"GRANT USAGE ON SEQUENCE {counted} TO {quoted_name(role)}"


def _listed(tables: Sequence[Table], schema: str) -> str:
    return ", ".join(f"{schema}.{quoted_name(table.name)}" for table in tables)


def quoted_name(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'
