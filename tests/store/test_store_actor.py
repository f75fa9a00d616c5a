"""Who caused a row: recorded with what a person causes, on both engines, and carried to another store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest

from command_line import Shell
from receipts.base.environment import Actor, this_process
from receipts.base.errors import ConflictError, StoreError
from receipts.store import Submitted, open_store, prepare
from receipts.store.query import condition
from receipts.store.query.lists import Filters
from store_receipts import judged, parsed, ready

MALLORY, ANA = Actor("token", "mallory"), Actor("token", "ana")


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
    assert lead == "actor"


def test_a_document_replaces_no_receipt_of_another_actor_and_a_person_who_decides_does(tmp_path: Path) -> None:
    url = str(tmp_path / "a.sqlite")
    with open_store(url, actor=ANA) as store:
        first = store.submit(*ready(run__launch="one")).id
    later = prepare(*ready(run__launch="one", run__supersedes={"target": "one", "reason": "faster"}))
    with open_store(url, actor=MALLORY) as store:
        (refused,) = store.write([later])
        assert isinstance(refused, ConflictError)
        assert "token:ana submitted, and not token:mallory" in str(refused)
        assert store.entry(first).stands
        (decided,) = store.write([later], decides=True)
        assert isinstance(decided, Submitted)
        assert decided.superseded == (first,)


def test_a_receipt_that_squats_on_the_id_of_another_actor_does_not_replace_it(tmp_path: Path) -> None:
    url, own = str(tmp_path / "a.sqlite"), parsed(run__launch="one")
    squat = {"run__launch": "one", "run__supersedes": {"target": own.id, "reason": "mine"}}
    with open_store(url, actor=MALLORY) as store:
        squatter = store.submit(*ready(**squat)).id
    with open_store(url, actor=ANA) as store:
        with pytest.raises(ConflictError, match=f"{squatter[:12]}, which token:mallory submitted"):
            store.submit(*judged(own))
        store.retract(squatter, "squats on a launch of ana")
        assert store.submit(*judged(own)).stands


def test_a_run_of_the_same_user_in_ci_replaces_its_own_receipts(tmp_path: Path) -> None:
    url, runs = str(tmp_path / "a.sqlite"), [Actor("ci", f"github lab/train {run}", "user:ana") for run in (1, 2)]
    with open_store(url, actor=runs[0]) as store:
        first = store.submit(*ready(run__launch="one")).id
    with open_store(url, actor=runs[1]) as store:
        later = store.submit(*ready(run__launch="one", run__supersedes={"target": "one", "reason": "again"}))
    assert later.superseded == (first,)


def test_a_witness_of_another_actor_is_known_as_a_stranger_from_both_ends(made_url: str) -> None:
    with open_store(made_url, actor=ANA) as store:
        measured = store.get(store.submit(*ready(run__launch="one")).id)
        own = store.submit(*ready(run__kind="profile", run__witness_for="one")).id
    with open_store(made_url, actor=MALLORY) as store:
        profile = parsed(run__kind="profile", run__witness_for="one")
        (coming,) = store.query.facts_of_new([profile])
        assert coming.strangers == {profile.id}
        store.submit(*judged(profile))
        facts = store.query.facts(measured)
        assert {item.id for item in facts.witnesses} == {own, profile.id}
        assert facts.strangers == {profile.id}
        assert store.query.facts_of_new([measured])[0].strangers == {profile.id}
