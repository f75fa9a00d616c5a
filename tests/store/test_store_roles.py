"""What a submitter and a reader may do on PostgreSQL by the grants that the program prints, and what they may not."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import ProgrammingError

import rule_cases as cases
from command_line import Shell
from receipts.base.errors import StoreError
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import open_store
from receipts.store.sql.guards import quoted_name, role_statements
from receipts.store.tables import metadata, rules_of
from receipts.workflows.submit import submit
from store_receipts import publish, raw

pytestmark = pytest.mark.slow

RULEBOOK = Rulebook()


class Urls(NamedTuple):
    """One store, as each role reaches it."""

    owner: str
    submitter: str
    decider: str
    reader: str


@pytest.fixture
def urls(postgres_store: str) -> Iterator[Urls]:
    """A store whose roles may log in; they are dropped afterwards, because a server's databases share them."""
    open_store(postgres_store).close()
    names = [f"{name}{uuid.uuid4().hex[:8]}" for name in ("jobs ", "people_", "dashboards_")]
    engine = create_engine(postgres_store)
    for _ in range(2):  # they can be run again
        with engine.begin() as connection:
            for statement in role_statements(*names):
                connection.exec_driver_sql(statement)
    with engine.begin() as connection:
        for name in names:
            connection.exec_driver_sql(f"ALTER ROLE {quoted_name(name)} LOGIN")
    yield Urls(postgres_store, *(postgres_store.replace("receipts@", f"{name.replace(' ', '%20')}@") for name in names))
    with engine.begin() as connection:
        for name in names:
            connection.exec_driver_sql(f"DROP OWNED BY {quoted_name(name)}")
            connection.exec_driver_sql(f"DROP ROLE {quoted_name(name)}")
    engine.dispose()


def test_a_submitter_submits_compares_lists_and_records(urls: Urls, shell: Shell) -> None:
    a, b = shell.write("one"), shell.write("two", batch__micro_batch=4)
    for words in (
        ["submit", a, b],
        ["list"],
        ["show", "one"],
        ["compare", "one", "two", "--record"],
    ):
        assert shell("--store", urls.submitter, *words).code in (0, 1, 3), words
    assert shell("--store", urls.submitter, "db", "check").code == 0
    many = shell.folder / "many"
    many.mkdir()
    for number in range(150):
        (many / f"{number}.json").write_bytes(raw())
    assert shell("--store", urls.submitter, "submit", "many").code == 0
    supersedes = {"target": "again", "reason": "a longer window"}
    for extra in ({}, {"run__supersedes": supersedes}):
        path = shell.write("again", run__launch="again", run__label=f"again {len(extra)}", **extra)
        assert shell("--store", urls.submitter, "submit", path).code == 0
    with open_store(urls.submitter, create=False) as store:
        assert len(store.supersessions()) == 1


def test_a_credential_of_a_node_withdraws_nothing_and_moves_no_pin(urls: Urls, shell: Shell) -> None:
    assert shell("--store", urls.submitter, "submit", shell.write("one"), shell.write("two")).code == 0
    with open_store(urls.decider, create=False) as store:
        one, two = store.resolve("one"), store.resolve("two")
        store.pin("@golden", one)
    with open_store(urls.submitter, create=False) as store:
        for forbidden in (
            lambda: store.pin("@golden", two),
            lambda: store.pin("@golden", None),
            lambda: store.retract(one, "never mind"),
            lambda: store.published.decide(one, "drop", "never mind"),
            lambda: publish(store, two),
            lambda: store.published.quote("README.md", [(two, "the best")]),
        ):
            with pytest.raises(StoreError, match="the role may not do this"):
                forbidden()
        assert store.resolve("@golden") == one
        assert store.entry(one).stands
    engine = create_engine(urls.submitter)
    row = "INSERT INTO supersessions (receipt, successor, reason, at) VALUES (:one, :two, 'x', now())"
    with pytest.raises(ProgrammingError, match="permission denied to withdraw"), engine.begin() as connection:
        connection.execute(text(row), {"one": one, "two": two})
    path = shell.write("whole", run__launch="whole", run__supersedes={"target": "whole", "reason": "itself"})
    assert shell("--store", urls.submitter, "submit", path).code == 0
    with open_store(urls.decider, create=False) as store:
        store.retract(shell.made["whole"], "never ran")
    again = {"one": shell.made["whole"], "two": shell.made["whole"]}
    with pytest.raises(ProgrammingError, match="permission denied to withdraw"), engine.begin() as connection:
        connection.execute(text(row), again)
    engine.dispose()


def test_a_decider_pins_retracts_decides_publishes_and_seals(urls: Urls, shell: Shell) -> None:
    assert shell("--store", urls.decider, "submit", shell.write("one"), shell.write("two")).code == 0
    with open_store(urls.decider, create=False) as store:
        one = store.resolve("one")
        publish(store, one)
        store.pin("@golden", one)
        store.published.decide(one, "ship", "fastest")
        store.retract(store.resolve("two"), "a wrong clock")
        assert store.seal()
    assert shell("--store", urls.decider, "audit").code == 0


@pytest.mark.parametrize("role", ["submitter", "decider", "reader"])
def test_no_role_but_the_owner_changes_or_takes_away_anything(urls: Urls, role: str) -> None:
    with open_store(urls.owner) as store:
        every = [Document(item.raw, item.source) for item in cases.group(cases.build({}), "a", 1)]
        (made,) = submit(every, store, RULEBOOK)
        assert made.submitted is not None
        with pytest.raises(StoreError, match="the role may not do this"), open_store(getattr(urls, role)) as other:
            other.purge(made.submitted.id, "never mind")
    engine = create_engine(getattr(urls, role))
    for table in metadata.sorted_tables:
        column = next(iter(table.columns)).name
        forbidden = [
            f"UPDATE {table.name} SET {column} = {column}",
            f"DELETE FROM {table.name}",
            f"TRUNCATE {table.name} CASCADE",
            f"DROP TABLE {table.name} CASCADE",
            f"ALTER TABLE {table.name} DISABLE TRIGGER ALL",
        ]
        permitted = {"reader": (), "submitter": ("submitter",), "decider": ("submitter", "decider")}
        if rules_of(table).added_by not in permitted[role]:
            names = ", ".join(item.name for item in table.columns)
            forbidden.append(f"INSERT INTO {table.name} ({names}) SELECT {names} FROM {table.name}")
        for statement in forbidden:
            with pytest.raises(ProgrammingError) as refused, engine.begin() as connection:
                connection.execute(text(statement))
            assert refused.value.orig is not None
            assert getattr(refused.value.orig, "sqlstate", "") == "42501", statement
    for statement in (
        "CREATE TABLE mine (id int)",
        "UPDATE alembic_version SET version_num = '9'",
        "DROP FUNCTION receipts_refuse() CASCADE",
    ):
        with pytest.raises(ProgrammingError), engine.begin() as connection:
            connection.execute(text(statement))
    engine.dispose()


def test_a_reader_lists_compares_and_audits_and_stores_nothing(urls: Urls, shell: Shell, tmp_path: Path) -> None:
    path, other = shell.write("one"), shell.write("two", batch__micro_batch=4)
    assert shell("--store", urls.owner, "submit", path).code == 0
    for words in (
        ["list"],
        ["show", "one"],
        ["compare", "one", other],
        ["audit"],
        ["backup", str(tmp_path / "b.sqlite")],
    ):
        assert shell("--store", urls.reader, *words).code in (0, 1, 3), words
    refused = shell("--store", urls.reader, "submit", other)
    assert refused.code == 4
    assert "the role may not do this" in refused.err
    assert "kept" not in refused.err  # who may not write is no server that does not answer


def test_the_driver_logs_nothing_on_standard_error_beside_what_a_server_refused(postgres_store: str) -> None:
    # Which errors it logs depends on when the answers come. A process of its own: here pytest takes the log.
    says = "import logging; from receipts.store import open_store; open_store({!r}); {}"
    call = [sys.executable, "-c", says.format(postgres_store, "logging.getLogger('psycopg').warning('aborted')")]
    told = subprocess.run(call, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")


def test_the_command_prints_sql_that_names_every_table(shell: Shell) -> None:
    said = shell("db", "roles", "--reader", "it's")
    assert said.code == 0
    assert all(f'"public"."{table.name}"' in said.out for table in metadata.sorted_tables)
    assert "rolname = 'it''s'" in said.out
    assert all(line.endswith(";") for line in said.lines)
    assert shell("db", "roles", "--json").json == list(
        role_statements("receipts_submitter", "receipts_decider", "receipts_reader")
    )
    assert shell("db", "roles", "--reader", "").code == 2
