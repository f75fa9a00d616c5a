"""A store made new and one that was upgraded have the same schema, and every released revision can be upgraded.

``tests/stores/<revision>.sqlite`` is a store as that revision wrote it, with receipts, a supersession, a retraction,
a pin and a tombstone in it, since 0002 claims with a verdict, a decision and a quote, and since 0003 a witness. A new
revision adds its file: python tests/stores/make.py
"""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shutil
import sqlite3
import threading
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, MetaData, create_engine, insert, inspect, select, text
from sqlalchemy.exc import DatabaseError

from receipts.axes.shape import shape_key
from receipts.errors import StoreError
from receipts.resources import folder
from receipts.rulebook import Rulebook
from receipts.store import Filters, open_store, schema
from receipts.store.address import address
from receipts.store.engine import connect
from receipts.store.reindex import reindex
from receipts.store.rows import promoted
from receipts.store.tables import HEAD, facets, metadata, placements
from store_receipts import ready

pytestmark = pytest.mark.slow

STORES = sorted((Path(__file__).parent / "stores").glob("*.sqlite"))


def _empty(url: str) -> str:
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
    upgraded = schema.upgrade(address(_empty(store_url)))
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

    schema.upgrade(address(_empty(store_url)))
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


def test_the_programs_revision_is_the_last_migration_and_each_has_a_store() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(folder("migrations")))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_current_head() == HEAD
    assert sorted(script.revision for script in scripts.walk_revisions()) == [path.stem for path in STORES]


def _read_whole(url: str) -> None:
    """What every file in tests/stores/ holds, read through the program."""
    with open_store(url, create=False) as store:
        entries = {str(entry.label): entry for entry in store.find()}
        witnesses = [item.witness_for for item in entries.values() if item.witness_for is not None]
        assert set(entries) == {"kept", "second", *(["profiled"] if witnesses else [])}
        assert witnesses in ([], ["kept"])  # none before revision 0003
        assert all(store.document(entry.id) for entry in entries.values())
        assert [item.status for item in store.verdicts(entries["kept"].id)] == ["valid"]
        assert store.resolve("@golden") == entries["kept"].id
        said = store.supersessions()
        assert [item.reason for item in said] == ["a better window", "the clock was wrong"]
        assert said[0].successor == entries["second"].id
        assert len(store.id) == 36
        assert [item.id for item in store.claims()] in ([], ["second"])  # none before revision 0002
        for claim in store.claims():
            assert store.last_claim_verdict(claim.id) is not None
            assert store.claims_on(entries["kept"].id) == [claim.id]
            assert [item.decision for item in store.decisions([entries["kept"].id])] == ["hold"]
            assert [item.document for item in store.quotes(entries["kept"].id)] == ["README.md"]
        assert store.submit(*ready()).new
    assert schema.check(address(url)).problems == ()


@pytest.mark.parametrize("old", STORES, ids=lambda path: path.stem)
def test_a_store_of_every_revision_is_upgraded_and_read(old: Path, store_url: str, tmp_path: Path) -> None:
    file = tmp_path / "old.sqlite"
    shutil.copy(old, file)
    if store_url.startswith("sqlite"):
        url = str(file)
    else:
        url = store_url
        schema.upgrade(address(url), old.stem)
        _copy(file, url)
    assert schema.upgrade(address(url)).wanted == HEAD
    _read_whole(url)


@pytest.mark.parametrize("revision", ["0001", "0002"])
def test_what_stored_receipts_witness_is_filled_in_and_nothing_can_be_changed_afterwards(
    revision: str, store_url: str, tmp_path: Path
) -> None:
    """The column of 0003 comes from the documents, however their keys are written, and the triggers stay."""
    file = tmp_path / "old.sqlite"
    shutil.copy(next(path for path in STORES if path.stem == revision), file)
    _write_witnesses(file)
    url = str(file)
    if not store_url.startswith("sqlite"):
        url = store_url
        schema.upgrade(address(url), revision)
        _copy(file, url)
    schema.upgrade(address(url))
    assert schema.check(address(url)).problems == ()
    with open_store(url, create=False) as store:
        named = {entry.label: entry.witness_for for entry in store.find()}
    assert named == {"kept": None, "second": None, "plain": "kept", "escaped": "kept", "damaged": None}
    engine = connect(address(url))
    with engine.begin() as connection, pytest.raises(DatabaseError, match="append-only"):
        connection.execute(text("UPDATE receipts SET witness_for = NULL"))
    engine.dispose()


def test_what_stored_receipts_are_listed_by_is_filled_in_as_a_submit_lists_them(store_url: str, tmp_path: Path) -> None:
    """The columns of 0005 come from rows and documents; a damaged document leaves its commit unsaid."""
    file = tmp_path / "old.sqlite"
    shutil.copy(next(path for path in STORES if path.stem == "0004"), file)
    connection = sqlite3.connect(file)
    connection.execute("DROP TRIGGER documents_no_update")
    (damaged,) = connection.execute("SELECT max(receipt) FROM documents").fetchone()
    connection.execute("UPDATE documents SET body = substr(body, 1, 40) WHERE receipt = ?", (damaged,))
    connection.commit()
    connection.close()
    url = str(file)
    if not store_url.startswith("sqlite"):
        url = store_url
        schema.upgrade(address(url), "0004")
        _copy(file, url)
    schema.upgrade(address(url))
    engine = connect(address(url))
    query = select(placements.c.receipt, placements.c.revision, placements.c.at, placements.c.facet)
    with engine.connect() as reader:
        listed = {row.receipt: row for row in reader.execute(query)}
        assert {row.facet for row in listed.values()} == set(reader.execute(select(facets.c.digest)).scalars())
    assert len(listed) > 1
    assert [number for number, row in listed.items() if row.revision is None] == [damaged]
    assert all(row.at for row in listed.values())
    again = reindex(address(url), Rulebook().lanes, everything=True)
    assert len(again.damaged) == 1
    with engine.connect() as reader:
        assert {row.receipt: row for row in reader.execute(query)} == listed
    engine.dispose()


def _write_witnesses(file: Path) -> None:
    """Put witnesses into an older store as its own program would have: as documents, with no column for them."""
    connection = sqlite3.connect(file)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(receipts)")]
    row = dict(zip(columns, connection.execute("SELECT * FROM receipts WHERE label = 'kept'").fetchone(), strict=True))
    tree = json.loads(zlib.decompress(connection.execute("SELECT body FROM documents").fetchone()[0]))
    tree["run"]["witness_for"] = "kept"
    plain = json.dumps(tree).encode()
    bodies = {"plain": plain, "escaped": plain.replace(b"witness_for", b"witness\\u005ffor"), "damaged": plain}
    for number, (label, raw) in enumerate(bodies.items(), 100):
        named = {"seq": number, "id": hashlib.sha256(label.encode()).hexdigest(), "launch": label, "label": label}
        marks = ", ".join("?" * len(columns))
        connection.execute(f"INSERT INTO receipts VALUES ({marks})", list({**row, **named}.values()))
        body = zlib.compress(raw)[: 40 if label == "damaged" else None]
        connection.execute("INSERT INTO documents VALUES (?, 'zlib', ?, ?)", (number, len(raw), body))
    connection.commit()
    connection.close()


def _copy(file: Path, url: str) -> None:
    """Copy the rows of a SQLite store into the same revision on PostgreSQL."""
    source, target = connect(address(str(file))), connect(address(url))
    held = MetaData()
    with source.connect() as old, target.begin() as new:
        held.reflect(new)
        new.execute(text("DELETE FROM alembic_version"))
        new.execute(text("ALTER TABLE stores DISABLE TRIGGER USER"))
        new.execute(text("DELETE FROM stores"))
        new.execute(text("ALTER TABLE stores ENABLE TRIGGER USER"))
        # Tombstones last: a receipt that has one may not come in, and none that has one is there.
        for table in held.sorted_tables:
            known = metadata.tables.get(table.name, table)  # as the program reads it, without what came later
            columns = [known.c[column.name] for column in table.c]
            rows = [dict(row) for row in old.execute(select(*columns)).mappings()]
            if rows:
                new.execute(insert(table), rows)
            if "seq" in table.c and rows:
                last = max(row["seq"] for row in rows)
                new.execute(text(f"SELECT setval(pg_get_serial_sequence('{table.name}', 'seq'), {last})"))
    source.dispose()
    target.dispose()


def test_an_upgrade_that_has_nothing_to_do_changes_nothing(store_url: str) -> None:
    open_store(store_url).close()
    before = _described(store_url)
    done = schema.upgrade(address(store_url))
    assert done.found == done.wanted == HEAD
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
    _empty(store_url)
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


@pytest.mark.parametrize("path", [path for path in STORES if path.stem < "0008"], ids=lambda path: path.stem)
def test_shapes_of_stored_receipts_are_filled_in_as_a_submit_writes_them(path: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "store.sqlite")
    shutil.copy(path, url)
    schema.upgrade(address(url))
    with open_store(url) as store:
        rows = list(store.find(Filters((), superseded=True)))
        assert rows
        for row in rows:
            assert (row.geometry, row.layout) == tuple(shape_key(store.parsed(row.id)))
    with sqlite3.connect(url) as connection, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute("UPDATE receipts SET geometry = 0")


def test_the_frozen_shapes_are_those_of_the_program() -> None:
    migration = runpy.run_path(str(folder("migrations") / "versions" / "0008_shapes.py"))
    leaves: list[dict[str, Any]] = [
        {},
        {"model__pattern": "AEMEAEMEAEMR" * 2, "model__depth": 52, "model__alphabet": "nam"},
        {"model__experts": 8, "model__top_k": 2, "model__capacity_factor": 1.0, "parallelism__expert": 4},
        {"parallelism__tensor": 2, "parallelism__sequence": True, "parallelism__pipeline": 4},
        {"model__depth": None, "model__sparse_attention": "dsa", "model__attention_kinds": "9 DSA + 4 MLA"},
        {"model": None, "parallelism": None, "hardware__accelerator": "H200 SXM"},
    ]
    for item in leaves:
        launch, verdict = ready(**item)
        row = promoted(launch, verdict, datetime(2026, 3, 9, tzinfo=UTC))
        tree = json.loads(launch.parsed.raw)
        model = migration["stated"](tree, "model", (*migration["MODEL"], "depth"))
        cut = migration["stated"](tree, "parallelism", migration["PARALLELISM"])
        migration["switched_off"](model, cut)
        geometry = {f"model.{name}": value for name, value in model.items()}
        geometry["hardware.accelerator"] = row["accelerator"]
        assert migration["digest"](geometry) == row["geometry"]
        assert migration["digest"]({f"parallelism.{name}": value for name, value in cut.items()}) == row["layout"]
