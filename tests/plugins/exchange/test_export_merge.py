"""Merging stores: what both hold is one, nothing that is here changes, and what contradicts is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

import rule_cases as cases
from export_stores import fill, put, take, write
from receipts.axes.configuration import configuration
from receipts.plugins.exchange.store_import import ImportedStore
from receipts.receipt import Document, Parsed
from receipts.store import Filters, Store, open_store
from receipts.store.tables import origins, receipts, seals
from receipts.workflows.audit import audit
from receipts.workflows.submit import submit
from store_receipts import RULEBOOK, claim_verdict, new_claim, sign
from tampering import tamper

pytestmark = pytest.mark.slow

EVERY = Filters(superseded=True)


def launch(name: str, **changes: object) -> Parsed:
    """One launch of that name; changes at dotted paths, `__` for the dot."""
    tree = cases.base()
    for path, value in {"run__launch": name, **changes}.items():
        cases.put(tree, path.replace("__", "."), value)
    return cases.parsed(tree)


def supersede(target: str, reason: str = "a better clock") -> dict[str, str]:
    """What `run.supersedes` says."""
    return {"target": target, "reason": reason}


@pytest.fixture
def here(made_url: str) -> Iterator[Store]:
    """The store that takes in, on each engine."""
    with open_store(made_url) as opened:
        yield opened


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Store]:
    """The store that is exported."""
    with open_store(str(tmp_path / "there.sqlite")) as opened:
        yield opened


def merge(there: Store, here: Store, folder: Path, name: str = "out") -> ImportedStore:
    """Export one and import it into the other."""
    write(there, folder / name, "parquet", force=True)
    return take(folder / name, here)


def whole(store: Store) -> bool:
    """Whether an audit finds nothing."""
    return audit(store, cases.rulebook()).faults == ()


def test_a_receipt_that_both_hold_is_one_with_the_verdicts_of_both(here: Store, there: Store, tmp_path: Path) -> None:
    shared, own = launch("shared"), launch("own")
    (name,) = put(here, [shared])
    put(there, [own, shared])
    taken = here.entry(name).submitted_at
    done = merge(there, here, tmp_path)
    assert (done.exit_code, done.new["receipts"], done.known["receipts"]) == (0, 1, 1)
    assert here.entry(name).submitted_at == taken
    assert len(here.verdicts(name)) == 2
    assert len(list(here.find(EVERY))) == 2
    assert whole(here)


def test_a_launch_with_other_bytes_is_told_and_everything_else_comes_in(
    here: Store, there: Store, tmp_path: Path
) -> None:
    mine = put(here, [launch("one", batch__micro_batch=2), launch("two", batch__micro_batch=2)])
    theirs = put(there, [launch("one"), launch("two"), launch("three")])
    there.pin("golden", theirs[0])
    there.published.decide(theirs[1], "ship", "it held")
    done = merge(there, here, tmp_path)
    assert done.exit_code == 2
    told = zip(("one", "two"), done.refused, strict=True)
    assert all(f"launch {name} has a receipt with other bytes here" in text for name, text in told)
    assert {item.id for item in here.find(EVERY)} == {*mine, theirs[2]}
    assert here.pins() == {}
    assert here.published.decisions() == []
    assert whole(here)
    here.retract(mine[0], "the other one is right")
    done = merge(there, here, tmp_path)
    assert (done.new["receipts"], len(done.refused)) == (1, 1)
    assert here.entry(theirs[0]).stands
    assert set(here.pins()) == {"golden"}
    assert whole(here)


def test_a_refused_receipt_leaves_no_row_at_all(here: Store, there: Store, tmp_path: Path) -> None:
    put(here, [launch("one", batch__micro_batch=2)])
    put(there, [launch("one")])
    before = _counts(here)
    merge(there, here, tmp_path)
    assert _counts(here) == before


def _counts(store: Store) -> dict[str, int]:
    with store.inspect() as found:
        return dict(found.counts)


def test_history_of_a_launch_comes_in_whatever_its_order(here: Store, there: Store, tmp_path: Path) -> None:
    first = launch("one", run__started="2026-03-20T09:00:00+00:00", run__finished="2026-03-20T09:04:00+00:00")
    (old,) = put(there, [first])
    second = launch("one", batch__micro_batch=4, run__supersedes=supersede(old))
    (middle,) = put(there, [second])
    there.retract(middle, "the clock was wrong")
    (new,) = put(there, [launch("one", batch__micro_batch=2)])
    done = merge(there, here, tmp_path)
    assert (done.exit_code, done.new["receipts"]) == (0, 3)
    assert [here.entry(name).stands for name in (old, middle, new)] == [False, False, True]
    assert here.entry(old).superseded_by == middle
    assert whole(here)


def test_a_retraction_that_was_withdrawn_comes_over_as_one(here: Store, there: Store, tmp_path: Path) -> None:
    one = launch("one")
    (receipt,) = put(there, [one])
    put(here, [one])
    there.retract(receipt, "the clock was wrong")
    merge(there, here, tmp_path)
    assert not here.entry(receipt).stands
    there.reinstate(receipt, "it was right")
    merge(there, here, tmp_path)
    assert here.entry(receipt).stands
    assert sum(merge(there, here, tmp_path).new.values()) == 0


def test_both_may_say_that_one_receipt_replaces_another(here: Store, there: Store, tmp_path: Path) -> None:
    old = launch("old")
    new = launch("old", run__label="new", run__supersedes=supersede(old.id))
    for store in (here, there):
        put(store, [old, new])
    done = merge(there, here, tmp_path)
    assert done.exit_code == 0
    assert here.entry(old.id).superseded_by == new.id
    assert not here.entry(old.id).stands
    assert here.entry(new.id).stands
    again = merge(there, here, tmp_path)
    assert sum(again.new.values()) == 0


def test_a_receipt_that_comes_replaces_what_it_names_here(here: Store, there: Store, tmp_path: Path) -> None:
    old = launch("old")
    new = launch("old", run__label="new", run__supersedes=supersede("old"))
    put(here, [old])
    put(there, [new])
    merge(there, here, tmp_path)
    assert here.entry(old.id).superseded_by == new.id


def test_a_receipt_that_comes_after_its_successor_does_not_stand(here: Store, there: Store, tmp_path: Path) -> None:
    old = launch("old")
    put(here, [launch("old", run__label="new", run__supersedes=supersede(old.id))])
    put(there, [old])
    merge(there, here, tmp_path)
    assert not here.entry(old.id).stands


def test_the_later_saying_counts_whichever_store_said_it(here: Store, there: Store, tmp_path: Path) -> None:
    old = launch("old")
    later = launch("old", run__label="b", run__supersedes=supersede(old.id))
    put(there, [old, launch("old", run__label="a", run__supersedes=supersede(old.id))])
    put(here, [old, later])
    merge(there, here, tmp_path)
    assert here.entry(old.id).superseded_by == later.id
    assert sum(merge(there, here, tmp_path).new.values()) == 0


def test_what_was_purged_here_does_not_come_back(here: Store, there: Store, tmp_path: Path) -> None:
    secret = launch("secret", run__command="train --say hunter2")
    after = launch("secret", run__label="after", run__supersedes=supersede(secret.id, "it held hunter2"))
    for store in (here, there):
        put(store, [secret, after])
    here.purge(secret.id, "a token")
    done = merge(there, here, tmp_path)
    assert (done.exit_code, done.purged) == (0, 1)
    assert {item.id for item in here.find(EVERY)} == {after.id}
    assert whole(here)


def test_a_purged_successor_leaves_no_word_of_its_document(here: Store, there: Store, tmp_path: Path) -> None:
    old = launch("old")
    secret = launch("old", run__label="secret", run__supersedes=supersede(old.id, "hunter2 was in the other one"))
    for store in (here, there):
        put(store, [old, secret])
    here.purge(secret.id, "a token")
    merge(there, here, tmp_path)
    assert not here.entry(old.id).stands
    assert "hunter2" not in str(here.supersessions())


def test_what_was_purged_there_cannot_come_later_and_what_is_here_is_not_erased(
    here: Store, there: Store, tmp_path: Path
) -> None:
    kept, gone = launch("kept"), launch("gone")
    put(there, [kept, gone])
    for item in (kept, gone):
        there.purge(item.id, "a token")
    put(here, [kept])
    done = merge(there, here, tmp_path)
    assert done.exit_code == 0
    assert any(kept.id[:12] in text and "receipts purge" in text for text in done.notes)
    assert here.document(kept.id) == kept.raw
    (outcome,) = submit([Document(gone.raw, "again")], here, cases.rulebook())
    assert "was purged" in str(outcome.error)
    assert whole(here)


def test_a_pin_stays_where_it_points_and_the_other_is_told(here: Store, there: Store, tmp_path: Path) -> None:
    mine, theirs = launch("mine"), launch("theirs")
    put(here, [mine])
    put(there, [theirs, launch("third")])
    here.pin("golden", mine.id)
    there.pin("golden", theirs.id)
    there.pin("only", theirs.id)
    done = merge(there, here, tmp_path)
    assert [text for text in done.notes if "@golden" in text and theirs.id[:12] in text]
    assert {name: pin.receipt for name, pin in here.pins().items()} == {"golden": mine.id, "only": theirs.id}
    assert [pin.receipt for pin in here.pin_history("golden")] == [mine.id, theirs.id, mine.id]
    assert sum(merge(there, here, tmp_path).new.values()) == 0


def test_of_decisions_the_later_counts(here: Store, there: Store, tmp_path: Path) -> None:
    one, two = launch("one"), launch("two")
    for store in (here, there):
        put(store, [one, two])
    here.published.decide(one.id, "hold", "first")
    there.published.decide(one.id, "ship", "second")
    there.published.decide(two.id, "drop", "first")
    here.published.decide(two.id, "ship", "second")
    merge(there, here, tmp_path)
    assert [[item.decision for item in here.published.decisions([name])][-1] for name in (one.id, two.id)] == [
        "ship",
        "ship",
    ]
    assert {(item.decision, item.reason) for item in here.published.decisions([two.id])} == {
        ("drop", "first"),
        ("ship", "second"),
    }


def test_claims_of_one_name_are_one_or_are_told(here: Store, there: Store, tmp_path: Path) -> None:
    one = launch("one")
    for store in (here, there):
        put(store, [one])
    here.published.add_claims([new_claim("same", one.id), new_claim("other", one.id)])
    there.published.add_claims([new_claim("same", one.id), new_claim("other", "0" * 64), new_claim("new", one.id)])
    there.published.record_claims([claim_verdict("same", one.id, "refuted"), claim_verdict("new", one.id)])
    done = merge(there, here, tmp_path)
    assert done.exit_code == 2
    assert [text.startswith("claim other:") for text in done.refused] == [True]
    assert {item.id for item in here.published.claims()} == {"same", "other", "new"}
    last = here.published.last_claim_verdict("same")
    assert last is not None
    assert last.status == "refuted"


def test_claims_that_two_stores_replaced_by_others_are_told(here: Store, there: Store, tmp_path: Path) -> None:
    one = launch("one")
    for store, name in ((here, "mine"), (there, "theirs")):
        put(store, [one])
        store.published.add_claims([new_claim("old", one.id), new_claim(name, one.id, supersedes="old")])
    done = merge(there, here, tmp_path)
    assert [
        text for text in done.refused if "claim old: superseded by mine here and superseded by theirs there" in text
    ]
    gone = here.published.claim("old").superseded
    assert gone is not None
    assert gone[:3] == ("old", "mine", "a better one")


# Seals and origins


def test_the_other_stores_seals_hold_over_the_rows_here(here: Store, tmp_path: Path) -> None:
    with fill(str(tmp_path / "there.sqlite")) as there:
        put(here, [next(iter(_parsed(there)))])
        done = merge(there, here, tmp_path)
        assert done.new["seals"] > 5
        other = there.id
    with here.inspect() as found:
        mine = [item for item in found.seals() if item.seal.store == other]  # type: ignore[union-attr]  # none is damaged
    assert len(mine) == done.new["seals"]
    assert all(item.whole for item in mine)  # type: ignore[union-attr]  # none is damaged
    assert whole(here)


def _parsed(store: Store) -> Iterator[Parsed]:
    return (store.parsed(item.id) for item in store.find())


@pytest.mark.parametrize(
    ("table", "change"), [("decisions", "decision = 'ship'"), ("envelopes", "fingerprint = 'SHA256:another'")]
)
def test_an_export_that_was_changed_after_it_was_sealed_is_found_by_an_audit(
    here: Store, there: Store, tmp_path: Path, table: str, change: str
) -> None:
    name, _ = put(there, [launch("one"), launch("two")])
    there.published.decide(name, "hold", "the peak is too high")
    sign(there, name)
    there.seal()
    tamper(there.url, f"UPDATE {table} SET {change}")
    done = merge(there, here, tmp_path)
    assert done.exit_code == 2
    (refused,) = done.refused
    assert refused.startswith(f"seal over {table} 1 to 1 of store")
    assert any(item.kind == "seal" and table in item.where for item in audit(here, cases.rulebook()).faults)


def test_a_seal_over_a_row_that_was_refused_is_left_out_until_it_comes(
    here: Store, there: Store, tmp_path: Path
) -> None:
    (mine,) = put(here, [launch("one", batch__micro_batch=2)])
    put(there, [launch("one"), launch("two")])
    there.seal()
    done = merge(there, here, tmp_path)
    assert done.new["seals"] == 0
    assert any("seals hold rows that were not taken in" in text for text in done.notes)
    assert whole(here)
    here.retract(mine, "the other one is right")
    done = merge(there, here, tmp_path)
    assert done.new["seals"] > 0
    assert whole(here)


def test_origins_go_through_a_store_in_between(here: Store, there: Store, tmp_path: Path) -> None:
    names = put(there, [launch("one"), launch("two")])
    there.seal()
    with open_store(str(tmp_path / "between.sqlite")) as between:
        put(between, [launch("three")])
        merge(there, between, tmp_path, "first")
        done = merge(between, here, tmp_path, "second")
        assert done.exit_code == 0
        # What came from this store through another is its own: nothing changes where it goes back.
        back = merge(here, there, tmp_path, "third")
        assert (back.new["receipts"], back.known["receipts"]) == (1, 2)
        stores = {there.id, between.id}
    with here.database.reading() as connection:
        rows = connection.execute(
            select(receipts.c.id, origins.c.store).join(
                origins, (origins.c.here == receipts.c.seq) & (origins.c.what == "receipts")
            )
        ).all()
        kept = set(connection.execute(select(seals.c.store)).scalars())
    assert {store for name, store in rows if name == names[0]} == stores
    assert there.id in kept
    assert whole(here)
    assert whole(there)


def test_a_copy_of_this_very_store_brings_nothing_but_what_is_new(here: Store, tmp_path: Path) -> None:
    put(here, [launch("one")])
    write(here, tmp_path / "out", "parquet")
    put(here, [launch("two")])
    done = take(tmp_path / "out", here)
    assert sum(done.new.values()) == 0
    with here.database.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM origins").scalar() == 0


def test_imported_receipts_are_found_as_submitted_ones_are(here: Store, there: Store, tmp_path: Path) -> None:
    put(there, [launch(f"run-{number}", batch__micro_batch=size) for number, size in enumerate((2, 2, 4))])
    merge(there, here, tmp_path)
    for table in ("placements", "configurations", "axes", "signatures"):
        with here.database.reading() as mine, there.database.reading() as theirs:
            query = f"SELECT count(*) FROM {table}"
            assert mine.exec_driver_sql(query).scalar() == theirs.exec_driver_sql(query).scalar() > 0
    for item in list(there.find()):
        one = there.parsed(item.id)
        ran = configuration(one, RULEBOOK.lanes.of(one.receipt.run.lane))
        candidates = there.query.replicate_candidates(one, ran)
        assert set(here.query.replicate_candidates(one, ran)) == set(candidates)
