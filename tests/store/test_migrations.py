"""A store that a command makes and one that the migrations make have the same schema."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, inspect, text

from receipts.base.environment import bundled_folder
from receipts.base.errors import StoreError
from receipts.store import open_store, schema
from receipts.store.address import address
from receipts.store.database import connect
from receipts.store.tables import HEAD, metadata

pytestmark = pytest.mark.slow


def empty(url: str) -> str:
    """SQLite's upgrade works on a file that is there, as PostgreSQL's on a database that is."""
    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).touch()
    return url


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _described(url: str) -> dict[str, str]:
    """Everything that the engine knows of its schema, in its own words, by name."""
    engine = connect(address(url))
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                rows: Iterable[Any] = connection.exec_driver_sql("SELECT type || ' ' || name, sql FROM sqlite_master")
                return {row[0]: _flat(row[1] or "") for row in rows}
            return dict(_postgresql(connection))
    finally:
        engine.dispose()


def _postgresql(connection: Connection) -> Iterable[tuple[str, str]]:
    here = "current_schema()::regnamespace"
    queries = (
        f"SELECT 'trigger ' || tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid "
        f"WHERE NOT tgisinternal AND relnamespace = {here}",
        f"SELECT 'function ' || proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = {here}",
        f"SELECT 'constraint ' || conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = {here}",
        "SELECT 'index ' || indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()",
        f"SELECT 'column ' || relname || '.' || attname, concat_ws(' ', attnum, format_type(atttypid, atttypmod), "
        f"attnotnull, attstorage, attcollation::regcollation, attidentity, "
        f"pg_get_expr(adbin, adrelid), col_description(c.oid, attnum)) FROM pg_attribute a JOIN pg_class c "
        f"ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = c.oid AND adnum = attnum "
        f"WHERE relnamespace = {here} AND relkind = 'r' AND attnum > 0",
        f"SELECT 'table ' || relname, obj_description(oid, 'pg_class') FROM pg_class "
        f"WHERE relnamespace = {here} AND relkind = 'r'",
    )
    for query in queries:
        for row in connection.execute(text(query.replace(":", "\\:"))):
            yield row[0], _flat(row[1] or "")


def test_the_migrations_and_a_new_store_give_the_same_schema(store_url: str, request: pytest.FixtureRequest) -> None:
    upgraded = schema.upgrade(address(empty(store_url)))
    assert (upgraded.found, upgraded.wanted) == ("", HEAD)
    migrated = _described(store_url)
    if store_url.startswith("sqlite"):
        fresh_url = store_url + ".new"
    else:
        engine = create_engine(store_url)
        with engine.begin() as connection:
            for statement in ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public"):
                connection.execute(text(statement))
        engine.dispose()
        fresh_url = store_url
    open_store(fresh_url).close()
    fresh = _described(fresh_url)
    assert len(fresh) > 40
    assert migrated == fresh


def test_alembic_finds_nothing_to_migrate(store_url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    schema.upgrade(address(empty(store_url)))
    engine = connect(address(store_url))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_every_table_and_column_says_what_it_holds(store_url: str) -> None:
    for table in metadata.sorted_tables:
        assert table.comment, table.name
        assert all(column.comment for column in table.columns), table.name
    open_store(store_url).close()
    engine = connect(address(store_url))
    with engine.connect() as connection:
        for table in metadata.sorted_tables:
            if engine.dialect.name == "sqlite":
                query = text("SELECT sql FROM sqlite_master WHERE name = :name")
                made = connection.execute(query, {"name": table.name}).scalar_one()
                assert all(f"/* {column.comment} */" in made for column in table.columns)
                assert f"/* {table.comment} */" in made
            else:
                found = inspect(connection)
                assert found.get_table_comment(table.name)["text"] == table.comment
                assert all(column["comment"] for column in found.get_columns(table.name))
    engine.dispose()


def test_the_programs_revision_is_the_last_migration() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(bundled_folder("migrations")))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_current_head() == HEAD


def test_an_upgrade_that_has_nothing_to_do_changes_nothing(store_url: str) -> None:
    open_store(store_url).close()
    before = _described(store_url)
    done = schema.upgrade(address(store_url))
    assert done.found == done.wanted == HEAD
    assert _described(store_url) == before


def test_a_store_from_before_extracts_is_upgraded(store_url: str) -> None:
    open_store(store_url).close()
    before = _described(store_url)
    engine = connect(address(store_url))
    with engine.begin() as connection:
        for statement in (
            "DROP TABLE extracts",
            "UPDATE alembic_version SET version_num = '0001'",
            *(["DROP FUNCTION extracts_delete"] if engine.dialect.name == "postgresql" else []),
        ):
            connection.exec_driver_sql(statement)
    engine.dispose()
    if store_url.startswith("postgresql"):
        with pytest.raises(StoreError, match="receipts db upgrade"):
            open_store(store_url)
        schema.upgrade(address(store_url))
    open_store(store_url).close()
    assert _described(store_url) == before


def test_an_upgrade_of_no_store_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        schema.upgrade(address(str(tmp_path / "none.sqlite")))


def test_an_upgrade_that_fails_leaves_the_store_as_it_was(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import command

    open_store(store_url).close()
    before = _described(store_url)

    def half(config: Any, _target: str) -> None:
        connection = config.attributes["connection"]
        connection.exec_driver_sql("CREATE TABLE half (id INTEGER)")
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "upgrade", half)
    with pytest.raises(KeyboardInterrupt):
        schema.upgrade(address(store_url))
    assert _described(store_url) == before


def test_two_migrators_at_once_make_one_store(store_url: str) -> None:
    empty(store_url)
    failed: list[BaseException] = []

    def migrate() -> None:
        try:
            open_store(store_url).close()
            schema.check(address(store_url))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with open_store(store_url, create=False) as store:
        assert len(store.id) == 36
