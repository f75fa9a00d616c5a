"""Triggers that hold the store append-only, on both engines.

Nothing is ever updated. Nothing is deleted, but for what belongs to a receipt with a tombstone in `purges`; and
tombstones stay. What is refused is refused to every client, and not to this program alone.

On SQLite `INSERT OR REPLACE` deletes without firing delete triggers, so that inserting a key again is refused too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from sqlalchemy import UniqueConstraint

from receipts.store.tables import metadata, rules_of

# What a row must belong to before it may be deleted. OLD is the row; every condition asks for a tombstone.
DELETABLE: Final = {
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
    "claim_verdicts": (
        "EXISTS (SELECT 1 FROM purges JOIN claim_subjects ON claim_subjects.receipt = purges.receipt "
        "WHERE claim_subjects.verdict = OLD.seq)"
    ),
    "claim_subjects": "NOT EXISTS (SELECT 1 FROM claim_verdicts WHERE claim_verdicts.seq = OLD.verdict)",
    # A reason may quote the document that had to go.
    "supersessions": "EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.successor)",
}
# Every table but those that are rebuilt.
TABLES: Final = tuple(name for name, table in metadata.tables.items() if not rules_of(table).rebuilt)

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


def by_name(statements: Iterable[str]) -> dict[str, str]:
    """The statement that makes each trigger, of some DDL."""
    return {text.split()[2]: text for text in statements if text.startswith("CREATE TRIGGER")}


def bodies(statements: Iterable[str]) -> dict[str, str]:
    """The body of each function, of some DDL of PostgreSQL."""
    return {
        text.split()[2].removesuffix("()"): text.split("$$")[1]
        for text in statements
        if text.startswith("CREATE FUNCTION")
    }


def _taken(name: str) -> str:
    """The condition under which `INSERT OR REPLACE` would push an older row out, or a purged receipt come back."""
    table = metadata.tables[name]
    unique = (item for item in table.constraints if isinstance(item, UniqueConstraint))
    keys = [list(item.columns) for item in (table.primary_key, *sorted(unique, key=lambda item: len(item.columns)))]
    equal = [" AND ".join(f"{column.name} = NEW.{column.name}" for column in key) for key in keys]
    if len(keys) > 1:
        equal = [f"({text})" if len(key) > 1 else text for text, key in zip(equal, keys, strict=True)]
    return _TAKEN.get(name, "{keys}").format(keys=f"EXISTS (SELECT 1 FROM {name} WHERE {' OR '.join(equal)})")


def sqlite() -> Iterator[str]:
    """The DDL of SQLite, in the order to run it in."""
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
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {_taken(table)} BEGIN "
            f"SELECT RAISE(ABORT, '{table} is append-only: replace refused'); END"
        )


def postgresql() -> Iterator[str]:
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
    for name, packed in metadata.tables.items():
        if "codec" in packed.c:
            yield f"ALTER TABLE {name} ALTER COLUMN body SET STORAGE EXTERNAL"
