"""``receipts db``."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from command_line import Shell
from tampering import tamper

pytestmark = pytest.mark.slow


def test_a_whole_store_is_whole_in_both_forms(shell: Shell) -> None:
    shell.store("one")
    assert shell("db", "check").lines[-1] == "whole"
    data = shell("db", "check", "--json").json
    assert (data["receipts"], list(data["problems"])) == (1, [])


def test_upgrading_a_store_that_is_up_to_date_changes_nothing(shell: Shell) -> None:
    shell.store("one")
    before = (shell.folder / "store.sqlite").read_bytes()
    said = shell("db", "upgrade")
    assert said.code == 0
    assert "already" in said.out
    data = shell("db", "upgrade", "--json").json
    assert data["found"] == data["wanted"]
    assert (shell.folder / "store.sqlite").read_bytes() == before


def test_a_store_of_another_schema_is_refused_with_what_to_do(shell: Shell) -> None:
    shell.store("one")
    with closing(sqlite3.connect(shell.folder / "store.sqlite")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '0000'")
    for command in (["list"], ["db", "upgrade"]):
        said = shell(*command)
        assert said.code == 4
        assert "at schema 0000" in said.err
        assert "receipts export" in said.err


def test_a_new_store_on_a_server_reminds_of_its_roles(shell: Shell, postgres_store: str) -> None:
    said = shell("db", "upgrade", "--store", postgres_store)
    assert "made at schema" in said.out
    assert "receipts db roles" in said.err
    assert "roles" not in shell("db", "upgrade", "--store", postgres_store).err


def test_the_store_may_be_named_after_the_command(shell: Shell) -> None:
    shell.store("one")
    place = str(shell.folder / "store.sqlite")
    assert shell("db", "check", "--store", place, "--json").json["receipts"] == 1
    assert shell("list", f"--store={place}", "--json").json[0]["label"] == "one"


def test_no_store_is_an_error_that_says_what_to_do(shell: Shell) -> None:
    shell.unmade()
    said = shell("db", "check")
    assert said.code == 4
    assert "store.sqlite" in said.err


def test_a_backup_with_a_changed_verdict_is_not_restored(shell: Shell) -> None:
    shell.store("one")
    assert shell("backup", "kept.sqlite").code == 0
    assert shell("--store", "whole.sqlite", "restore", "kept.sqlite").code == 0
    tamper(str(shell.folder / "kept.sqlite"), "UPDATE verdicts SET status = 'invalid'")
    said = shell("--store", "changed.sqlite", "restore", "kept.sqlite")
    assert said.code == 4
    assert "nothing was restored" in said.err
    assert "the row was edited" in said.err
    assert not (shell.folder / "changed.sqlite").exists()
