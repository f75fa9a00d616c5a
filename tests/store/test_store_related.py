"""What a store is asked about receipts that come in: together it answers as of each alone, and by look-ups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import IntegrityError

from receipts.receipt import Document, Parsed
from receipts.store import Store, open_store
from receipts.store.database import reading, write
from receipts.store.sql import engine_of
from receipts.store.sql.statement import SqlStatement, run
from receipts.store.tables import receipts
from receipts.workflows.submit import submit
from store_receipts import RULEBOOK, parsed, raw, ready


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as made:
        yield made


def put(store: Store, **leaves: Any) -> str:
    return store.submit(*ready(**leaves)).id


def test_facts_of_many_are_those_of_each(store: Store) -> None:
    witnesses = [put(store, run__kind="profile", run__witness_for=name) for name in ("one", "one", "two", "nobody")]
    failed = [put(store, run__outcome="oom", batch__micro_batch=size) for size in (8, 8, 16)]
    target = put(store, run__launch="target")
    group = [
        parsed(run__started="2026-03-02T09:01:00+00:00", run__launch="one"),
        parsed(run__started="2026-03-02T09:02:00+00:00", run__launch="two", batch__micro_batch=16),
        parsed(run__started="2026-03-02T09:03:00+00:00", run__launch="none", batch__micro_batch=32),
        parsed(run__started="2026-03-02T09:04:00+00:00", run__kind="profile", run__witness_for="target"),
        parsed(run__started="2026-03-02T09:05:00+00:00", run__launch="three", batch__micro_batch=None),
    ]
    found = store.query.facts_of_new(group)
    for one, facts in zip(group, found, strict=True):
        assert facts == store.query.facts_of_new([one])[0]
    assert [[item.id for item in facts.witnesses] for facts in found] == [witnesses[1::-1], witnesses[2:3], [], [], []]
    assert [[item.id for item in facts.witnessed] for facts in found] == [[], [], [], [target], []]
    assert [[item.id for item in facts.failures] for facts in found] == [failed[1::-1], failed[2:], [], [], []]


def test_a_document_that_comes_twice_has_each_failure_once(store: Store) -> None:
    failed = put(store, run__outcome="oom", batch__micro_batch=8)
    one = parsed(batch__micro_batch=8)
    for facts in store.query.facts_of_new([one, one]):
        assert [item.id for item in facts.failures] == [failed]


@pytest.mark.parametrize(("kind", "path"), [("training", "launch"), ("profile", "witness_for"), ("training", "lane")])
def test_a_sign_that_postgresql_does_not_hold_keeps_no_receipt_from_its_kin(store: Store, kind: str, path: str) -> None:
    one = parsed(**{"run__kind": kind, f"run__{path}": "a\0b"})
    (outcome,) = submit([Document(one.raw, "t")], store, RULEBOOK)
    assert outcome.stored, outcome.error
    witness = put(store, run__kind="profile", run__witness_for="a\0b")
    seen = [[item.id for item in facts.witnesses] for facts in store.query.facts_of_new([one])]
    assert seen == [[witness] if path == "launch" else []]


def test_the_newest_witnesses_are_taken_where_there_are_many(store: Store) -> None:
    names = ["one", "two"] * 25
    documents = [Document(raw(run__kind="profile", run__witness_for=name), "t") for name in names]
    stored = [item.submitted.id for item in submit(documents, store, RULEBOOK) if item.submitted is not None]
    found = store.query.facts_of_new([parsed(run__launch="one"), parsed(run__launch="two")])
    assert [item.id for item in found[0].witnesses] == stored[0::2][:-21:-1]
    assert [item.id for item in found[1].witnesses] == stored[1::2][:-21:-1]


def test_a_server_looks_up_what_a_submit_asks_by_plans_that_know_no_value(postgres_store: str) -> None:
    one = parsed()
    with open_store(postgres_store) as store:
        seen = _asked_of(store.database.engine, store, one)
    assert len(seen) >= 6
    for name, plan in seen.items():
        assert "Seq Scan" not in plan, name
        assert "Backward using receipts_pkey" not in plan, name
        assert "Backward using signatures_pkey" not in plan, name


def _asked_of(engine: Engine, store: Store, one: Parsed) -> dict[str, str]:
    """The plans of what a submit prepares on its connection, made without its parameters' values."""
    for number in range(6):  # psycopg prepares what it is asked for the sixth time
        assert submit_one(store, number)
    with reading(engine) as connection:
        run(connection, "SET LOCAL plan_cache_mode = force_generic_plan")
        run(connection, "SET LOCAL enable_seqscan = off")  # a table of six rows is read sooner than looked up
        asked = run(connection, "SELECT name, statement, cardinality(parameter_types) FROM pg_prepared_statements")
        found = {}
        for name, sql, count in asked.fetchall():
            if "SELECT" in sql and count:
                nothing = ", ".join(["NULL"] * count)
                plan = run(connection, f"EXPLAIN EXECUTE {name}({nothing})").fetchall()
                found[sql] = "\n".join(row[0] for row in plan)
        return found


def submit_one(store: Store, number: int) -> bool:
    (outcome,) = submit([Document(raw(run__label=str(number)), "t")], store, RULEBOOK)
    return outcome.stored


NASTY = ("", "NULL", '"', "\\", '\\"', "{a,b}", "a\nb\tc", "é ☃ 𝄞", "'; --", " ", "\\x41")


def test_a_set_of_values_has_what_each_of_them_says(store: Store) -> None:
    ids = {text: put(store, run__label=text or None) for text in NASTY}
    with reading(store.database.engine) as connection:
        for column, wanted in ((receipts.c.label, list(NASTY[1:])), (receipts.c.id, list(ids.values()))):
            query = select(column).where(engine_of(connection).among(column, wanted))
            assert sorted(connection.execute(query).scalars()) == sorted(wanted)


def test_nothing_stays_of_a_transaction_at_once_that_fails(store: Store) -> None:
    kept = put(store)
    rows = SqlStatement(receipts.select())

    def broken(connection: Connection) -> None:
        engine_of(connection).together(connection, [(rows, {})])  # with which it begins on PostgreSQL
        run(connection, f"INSERT INTO purges VALUES ('{kept}', 'why', '2026-01-01', NULL)")
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        write(store.database.engine, broken, together=True)
    with reading(store.database.engine) as connection:
        assert run(connection, "SELECT count(*) FROM purges").fetchall() == [(0,)]
        assert len(rows.all(connection, {})) == 1


def test_an_error_in_one_round_trip_is_raised_and_not_logged_beside(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """Several writers meet, and who comes second tries again: nobody wants to read of what followed."""
    kept = put(store)
    torn = SqlStatement(receipts.insert().from_select(list(receipts.c.keys()), select(receipts)))
    asks = [(torn, {}), *[(SqlStatement(receipts.select()), {})] * 400]
    with pytest.raises(IntegrityError), reading(store.database.engine) as connection:
        engine_of(connection).together(connection, asks)
    assert caplog.records == []
    assert store.parsed(kept).id == kept
