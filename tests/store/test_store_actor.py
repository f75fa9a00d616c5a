"""Who caused a row: recorded with what a person causes, on both engines, and carried to another store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest

from command_line import Shell
from receipts.base.actor import Actor, this_process
from receipts.base.errors import StoreError
from receipts.store import open_store
from receipts.store.query.lists import Filters, condition
from store_receipts import ready


def _caused(url: str, actor: Actor | None) -> set[str | None]:
    """The actors of rows that a submit, a pin, a decision, a retraction cause."""
    with open_store(url, actor=actor) as store:
        one = store.submit(*ready()).id
        store.pin("golden", one)
        store.published.decide(one, "ship", "fastest")
        store.retract(one, "a wrong clock")
    with open_store(url) as store:
        decided = store.published.decisions([one])
        return {
            store.entry(one).actor,
            *(item.actor for item in store.pin_history("golden")),
            *(item.actor for item in decided),
            *(item.actor for item in store.supersessions()),
        }


def test_rows_record_who_a_server_writes_for(tmp_path: Path) -> None:
    assert _caused(str(tmp_path / "a.sqlite"), Actor("token", "bench-1")) == {"token:bench-1"}


def test_rows_of_a_file_record_the_user_of_the_process(tmp_path: Path) -> None:
    assert _caused(str(tmp_path / "a.sqlite"), None) == {str(this_process())}


@pytest.mark.slow
def test_rows_of_a_server_record_the_user_that_logged_in(postgres_store: str) -> None:
    assert _caused(postgres_store, None) == {f"database:receipts via {this_process()}"}


def test_a_ci_run_is_named_with_its_user_and_no_setting_names_an_actor() -> None:
    user = this_process({"USER": "mallory", "LOGNAME": "mallory", "RECEIPTS_ACTOR": "user:mallory"})
    assert user.kind == "user"
    assert "mallory" not in str(user)
    run = this_process({"GITHUB_REPOSITORY": "lab/train", "GITHUB_RUN_ID": "123"})
    assert str(run) == f"ci:github lab/train 123 via {user}"
    assert str(Actor("token", "a\nb\0c")) == "token:a b c"


def test_commands_show_who(shell: Shell) -> None:
    assert shell("submit", shell.write("one")).code == 0
    actor = str(this_process())
    assert f"submitted by {actor}" in shell("show", "one").out
    assert actor in shell("list", "--by").out
    assert shell("list", f"actor={actor}", "--json").json[0]["actor"] == actor
    assert shell("list", "actor=token:nobody", "--json").json == []
    assert shell("pin", "@golden", "one", "--json").json[0]["actor"] == actor


def test_a_store_without_the_column_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    open_store(str(path)).close()
    with sqlite3.connect(path) as file:
        file.executescript("DROP INDEX receipts_actor; ALTER TABLE receipts DROP COLUMN actor")
    with open_store(str(path)) as store, pytest.raises(StoreError, match=r"receipts export all\.jsonl"):
        store.submit(*ready())


@pytest.mark.slow
def test_a_store_on_a_server_without_the_column_says_what_to_do(postgres_store: str) -> None:
    open_store(postgres_store).close()
    with psycopg.connect(postgres_store.replace("+psycopg", ""), autocommit=True) as server:
        server.execute("ALTER TABLE receipts DROP COLUMN actor")
    with open_store(postgres_store) as store, pytest.raises(StoreError, match=r"receipts export all\.jsonl"):
        store.submit(*ready())


def test_a_list_by_actor_asks_an_index(tmp_path: Path) -> None:
    url = str(tmp_path / "a.sqlite")
    with open_store(url, actor=Actor("token", "bench-1")) as store:
        store.submit(*ready())
        lead = store.plan(Filters((condition("actor=token:nobody"),))).lead
    assert lead == ("name", "actor")
