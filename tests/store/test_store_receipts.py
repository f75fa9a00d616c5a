"""Receipts go in once, come back as they were, and are replaced only by saying so; on both engines."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine, insert, text
from sqlalchemy.exc import DBAPIError

from receipts.base.errors import ConflictError, InputError, NotFound, UsageError
from receipts.store import Store, Submitted, open_store, prepare
from receipts.store.address import address
from receipts.store.credentials import Tokens
from receipts.store.database import connect, writing
from receipts.store.entries import Extract
from receipts.store.sql import guards
from receipts.store.tables import erased, seals
from store_receipts import judged, parsed, publish, ready, sign


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as opened:
        yield opened


def put(store: Store, **leaves: object) -> Submitted:
    return store.submit(*ready(**leaves))


def test_the_bytes_come_back_as_they_were_and_the_id_is_their_digest(store: Store) -> None:
    one = parsed(run__label="first")
    made = store.submit(*judged(one))
    assert made.new
    assert made.id == hashlib.sha256(one.raw).hexdigest()
    assert store.document(made.id) == one.raw
    assert store.get(made.id).receipt == one.receipt


def test_the_same_bytes_again_are_harmless_and_say_so(store: Store) -> None:
    one = parsed()
    first, again = store.submit(*judged(one)), store.submit(*judged(one))
    assert (first.new, again.new) == (True, False)
    assert (again.id, again.at, again.status, again.stands) == (first.id, first.at, "valid", True)
    assert len(list(store.find())) == 1
    assert len(store.verdicts(first.id)) == 1


def test_a_launch_with_other_bytes_is_a_conflict_that_names_the_way_to_supersede(store: Store) -> None:
    first = put(store, run__launch="one")
    with pytest.raises(ConflictError, match=r'"supersedes": \{"target": "' + first.id) as refused:
        put(store, run__launch="one", run__label="other")
    assert refused.value.exit_code == 2
    assert [entry.id for entry in store.find()] == [first.id]


@pytest.mark.parametrize("by", ["launch", "id"])
def test_a_receipt_that_supersedes_by_launch_or_id_takes_the_place_of_the_earlier_one(store: Store, by: str) -> None:
    first = put(store, run__launch="one")
    target = first.id if by == "id" else "one"
    second = put(store, run__launch="one", run__supersedes={"target": target, "reason": "wrong window"})
    assert second.superseded == (first.id,)
    assert [entry.id for entry in store.find()] == [second.id]
    (said,) = store.supersessions()
    assert (said.receipt, said.successor, said.reason) == (first.id, second.id, "wrong window")
    old = store.entry(first.id)
    assert (old.stands, old.superseded_by) == (False, second.id)
    assert store.document(first.id)
    third = put(store, run__launch="one", run__supersedes={"target": "one", "reason": "again"})
    assert third.superseded == (second.id,)
    assert [store.entry(item.id).generation for item in (first, second, third)] == [0, 1, 2]


@pytest.mark.parametrize("by", ["launch", "id"])
def test_a_receipt_supersedes_none_of_another_launch(store: Store, by: str) -> None:
    first = put(store, run__launch="one")
    target = {"launch": "one", "id": first.id}[by]
    second = put(store, run__launch="two", run__supersedes={"target": target, "reason": "run again"})
    assert (second.superseded, second.undecided) == ((), (first.id,))
    assert {entry.launch for entry in store.find()} == {"one", "two"}
    assert not store.query.facts(store.parsed(first.id)).superseded


def test_a_receipt_that_was_superseded_before_it_came_never_stands(store: Store) -> None:
    late = parsed(run__launch="one")
    by_id = put(store, run__launch="one", run__label="b", run__supersedes={"target": late.id, "reason": "spoilt"})
    made = store.submit(*judged(late))
    assert made.new
    assert not made.stands
    assert store.entry(late.id).superseded_by == by_id.id
    assert [entry.label for entry in store.find()] == ["b"]


def test_one_refused_receipt_leaves_the_others_of_its_batch_alone(store: Store) -> None:
    put(store, run__launch="taken")
    good, twice = ready(), ready()
    with pytest.raises(InputError):
        prepare(*ready(run__started="0001-01-01T00:00:00+05:00"))
    judged = (good, ready(run__launch="taken", run__label="x"), twice, twice)
    results = store.write([prepare(*item) for item in judged])
    kinds = [type(result) for result in results]
    assert kinds == [Submitted, ConflictError, Submitted, Submitted]
    assert [result.new for result in results if isinstance(result, Submitted)] == [True, True, False]
    assert len(list(store.find())) == 3


def test_a_retracted_receipt_stands_no_longer_and_frees_its_launch(store: Store) -> None:
    first = put(store, run__launch="one")
    store.retract(first.id, "the clock was wrong")
    assert not store.entry(first.id).stands
    assert store.entry(first.id).superseded_by == ""
    with pytest.raises(ConflictError, match=r"retracted on .* already: the clock was wrong"):
        store.retract(first.id, "again")
    with pytest.raises(NotFound):
        store.retract("f" * 64, "nothing")
    assert put(store, run__launch="one", run__label="better").new


def test_a_retraction_that_was_withdrawn_counts_no_more_wherever_a_store_asks_who_stands(store: Store) -> None:
    launch, verdict = ready()
    one = launch.parsed
    receipt = store.submit(launch, verdict).id
    store.retract(receipt, "the clock was wrong")
    store.reinstate(receipt, "it was right")
    assert store.entry(receipt).stands
    assert [entry.id for entry in store.find()] == [receipt]
    assert store.fallen() == {}
    assert store.query.facts(one).superseded == {}
    assert [row.launches for row in store.query.reached("cpu-torch")] == [1]
    assert [shape.launches for shape in store.query.facts(one).shapes] == [1]
    assert [item.successor for item in store.supersessions()] == [None, receipt]
    store.retract(receipt, "no, it was wrong")
    assert not store.entry(receipt).stands
    store.reinstate(receipt, "right after all")
    store.purge(receipt, "a token in it")
    assert [item.successor for item in store.supersessions()] == [None, None]


def test_retracting_and_purging_ask_for_a_reason(store: Store) -> None:
    first = put(store)
    for act in (store.retract, store.purge):
        with pytest.raises(UsageError, match="say why"):
            act(first.id, "  ")
    assert store.entry(first.id).stands


def test_a_purge_erases_bytes_verdicts_and_quotes_and_leaves_a_tombstone(store: Store, made_url: str) -> None:
    secret = "hunter2-very-secret"
    old = put(store, run__launch="one")
    leaked = parsed(run__launch="one", run__label=secret, run__supersedes={"target": "one", "reason": f"with {secret}"})
    made = store.submit(*judged(leaked))
    store.pin("@best", made.id)
    store.purge(made.id, "it held a password")
    with pytest.raises(NotFound, match="it held a password"):
        store.resolve(made.id)
    with pytest.raises(NotFound, match="it held a password"):
        store.resolve("@best")
    with pytest.raises(NotFound):
        store.document(made.id)
    assert list(store.find()) == []
    (said,) = store.supersessions()
    assert (said.receipt, said.successor, secret in said.reason) == (old.id, made.id, False)
    with pytest.raises(ConflictError, match="was purged"):
        store.submit(*judged(leaked))
    assert put(store, run__launch="one", run__label="clean", run__supersedes={"target": old.id, "reason": "x"}).new
    if made_url.startswith("sqlite"):
        file = Path(made_url.removeprefix("sqlite:///"))
        parts = [part.read_bytes() for part in file.parent.glob(f"{file.name}*")]
        assert not any(secret.encode() in part for part in parts)


def _refused(url: str, statement: str) -> str:
    engine = create_engine(url)
    try:
        with pytest.raises(DBAPIError) as refused, engine.begin() as connection:
            connection.execute(text(statement))
    finally:
        engine.dispose()
    return str(refused.value.orig)


def _seal(url: str) -> None:
    """A row in each of the tables that no submit writes."""
    engine = connect(address(url))
    with writing(engine) as connection:
        of = {"store": "this one", "what": "receipts"}
        connection.execute(
            insert(seals), {**of, "first": 1, "last": 2, "held": 2, "root": "00", "at": datetime.now(UTC)}
        )
        erasure = {"what": "receipts", "number": 8, "receipt": "gone", "leaf": "00", "seal": "00"}
        connection.execute(insert(erased), erasure)
    engine.dispose()


def _a_row_in_each_table(url: str) -> None:
    with open_store(url) as store:
        first = put(store, run__launch="one")
        put(store, run__launch="one", run__label="b", run__supersedes={"target": "one", "reason": "x"})
        store.pin("@golden", first.id)
        store.purge(put(store).id, "for the tombstone")
        store.keep_extracts(first.id, [Extract("00" * 32, "of-a-test", b"{}")])
        publish(store, first.id)
        sign(store, first.id)
        Tokens(store.database).add("ci", ["read"], None)
    _seal(url)


@pytest.mark.parametrize("table", guards.APPEND_ONLY)
def test_no_client_changes_or_deletes_a_row(copied: Callable[..., str], table: str) -> None:
    url = copied("a row in each table", _a_row_in_each_table)
    column = {"receipts": "label", "purges": "reason", "stores": "made_by", "subjects": "side"}.get(table)
    column = column or {
        "documents": "codec",
        "extracts": "codec",
        "verdicts": "status",
        "pins": "name",
        "supersessions": "reason",
    }.get(table)
    column = column or {"claims": "body", "claim_verdicts": "status", "claim_subjects": "side"}.get(table, "reason")
    column = {"quotes": "says", "seals": "root", "erased": "leaf"}.get(table, column)
    column = {"tokens": "name", "trusted_keys": "name", "envelopes": "signature"}.get(table, column)
    assert "append-only" in _refused(url, f"UPDATE {table} SET {column} = 'x'")
    assert "append-only" in _refused(url, f"DELETE FROM {table}")
    if url.startswith("sqlite"):
        assert "append-only" in _refused(url, f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")
    else:
        assert "append-only" in _refused(url, f"TRUNCATE {table} CASCADE")


def test_the_tombstone_of_one_receipt_lets_no_other_go(store: Store, made_url: str) -> None:
    kept = put(store)
    store.purge(put(store).id, "gone")
    for table, column in (("receipts", "seq"), ("documents", "receipt"), ("subjects", "receipt")):
        number = store.entry(kept.id).seq
        assert "append-only" in _refused(made_url, f"DELETE FROM {table} WHERE {column} = {number}")
    assert store.document(kept.id)


def test_times_are_kept_in_utc_whatever_zone_they_came_in(store: Store) -> None:
    made = put(store, run__started="2026-03-01T23:30:00-05:00", run__finished="2026-03-02T04:45:00Z")
    entry = store.entry(made.id)
    assert entry.started == datetime(2026, 3, 2, 4, 30, tzinfo=UTC)
    assert entry.finished == datetime(2026, 3, 2, 4, 45, tzinfo=UTC)
    assert entry.started.utcoffset() == entry.submitted_at.utcoffset() == UTC.utcoffset(None)


def test_what_the_document_does_not_state_is_null_and_no_default(store: Store) -> None:
    made = put(store, run__label=None, run__context=None, hardware=None, batch=None, measurement=None, memory=None)
    entry = store.entry(made.id)
    unstated = (entry.label, entry.context, entry.chips, entry.micro_batch, entry.tokens_per_second, entry.peak_bytes)
    assert unstated == (None,) * 6
    assert entry.rate_source is None


def test_every_text_that_a_receipt_can_hold_fits_the_store(store: Store) -> None:
    label = "nul \0 and \U0001f600" * 20
    made = put(store, run__label=label, run__lane="\U0001f600" * 500, hardware__accelerator="\U0001f600" * 500)
    assert store.entry(made.id).lane == "\U0001f600" * 200
    assert store.get(made.id).receipt.run.label == label


def test_a_verdict_is_kept_beside_earlier_ones_and_only_for_stored_receipts(store: Store) -> None:
    launch, verdict = ready()
    made = store.submit(launch, verdict)
    store.record(verdict)
    first, second = store.verdicts(made.id)
    assert (first.kind, first.status, first.rules, first.judge) == ("receipt", "valid", "0" * 64, "1")
    assert second.seq > first.seq
    assert second.document["receipt"] == made.id
    with pytest.raises(NotFound, match=r"submit .* first"):
        store.record(ready()[1])


def test_a_store_has_an_id_of_its_own_that_it_keeps(store: Store, made_url: str) -> None:
    with open_store(made_url) as again:
        assert again.id == store.id
        assert len(again.id) == 36


def test_bytes_that_were_changed_in_the_store_are_not_handed_out(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    with open_store(str(file)) as store:
        made = put(store)
    with closing(sqlite3.connect(file)) as raw, raw:
        raw.execute("DROP TRIGGER documents_no_update")
        raw.execute("UPDATE documents SET body = (SELECT body FROM documents LIMIT 1) || x'00'")
        raw.execute("UPDATE documents SET body = x'789c030000000001'")
    raw.close()
    from receipts.base.errors import StoreError

    with open_store(str(file)) as store, pytest.raises(StoreError, match="changed in the store"):
        store.document(made.id)
