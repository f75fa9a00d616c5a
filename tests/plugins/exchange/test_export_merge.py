"""Copying a store into another: what both hold is one, and where they contradict each other nothing is copied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

import rule_cases as cases
from export_stores import fill, put, take, write
from receipts.axes.configuration import configuration
from receipts.base.errors import InputError
from receipts.plugins.exchange.export import ExportOptions, Format
from receipts.plugins.exchange.store_import import ImportedStore
from receipts.receipt import Document, Parsed
from receipts.store import Filters, Store, open_store
from receipts.store.tables import metadata
from receipts.workflows.audit import audit
from receipts.workflows.submit import submit
from store_receipts import RULEBOOK, claim_verdict, new_claim

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


def refused(there: Store, here: Store, folder: Path) -> str:
    """Why the one is not copied into the other, which it leaves as it is."""
    before = _everything(here)
    with pytest.raises(InputError) as error:
        merge(there, here, folder)
    assert _everything(here) == before
    text = str(error.value)
    assert "nothing was imported" in text
    return text


def _everything(store: Store) -> dict[str, int]:
    with store.database.reading() as connection:
        return {
            name: connection.scalar(select(func.count()).select_from(table)) or 0
            for name, table in metadata.tables.items()
        }


def whole(store: Store) -> bool:
    """Whether an audit finds nothing."""
    return audit(store, cases.rulebook()).faults == ()


def test_a_receipt_that_both_hold_is_one_with_the_verdicts_of_both(here: Store, there: Store, tmp_path: Path) -> None:
    shared, own = launch("shared"), launch("own")
    (name,) = put(here, [shared])
    put(there, [own, shared])
    taken = here.entry(name).submitted_at
    done = merge(there, here, tmp_path)
    assert (done.new["receipts"], done.known["receipts"]) == (1, 1)
    assert here.entry(name).submitted_at == taken
    assert len(here.verdicts(name)) == 2
    assert len(list(here.find(EVERY))) == 2
    assert whole(here)


def test_a_launch_with_other_bytes_here_refuses_the_export_until_one_is_retracted(
    here: Store, there: Store, tmp_path: Path
) -> None:
    mine = put(here, [launch("one", batch__micro_batch=2), launch("two", batch__micro_batch=2)])
    theirs = put(there, [launch("one"), launch("two"), launch("three")])
    there.pin("golden", theirs[0])
    text = refused(there, here, tmp_path)
    for name, (ours, other) in {"one": (mine[0], theirs[0]), "two": (mine[1], theirs[1])}.items():
        assert (
            f"launch {name}: it has a receipt with other bytes here, {ours[:12]}, and one there, {other[:12]}" in text
        )
        assert f"receipts retract {ours[:12]}" in text
    for item in mine:
        here.retract(item, "the other one is right")
    assert merge(there, here, tmp_path).new["receipts"] == 3
    assert here.entry(theirs[0]).stands
    assert set(here.pins()) == {"golden"}
    assert whole(here)


def test_history_of_a_launch_comes_in_whatever_its_order(here: Store, there: Store, tmp_path: Path) -> None:
    first = launch("one", run__started="2026-03-20T09:00:00+00:00", run__finished="2026-03-20T09:04:00+00:00")
    (old,) = put(there, [first])
    second = launch("one", batch__micro_batch=4, run__supersedes=supersede(old))
    (middle,) = put(there, [second])
    there.retract(middle, "the clock was wrong")
    (new,) = put(there, [launch("one", batch__micro_batch=2)])
    done = merge(there, here, tmp_path)
    assert done.new["receipts"] == 3
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
    merge(there, here, tmp_path)
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


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_a_successor_that_comes_with_a_later_part_is_its_successor(
    there: Store, here: Store, tmp_path: Path, form: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("export", "source"):
        monkeypatch.setattr(f"receipts.plugins.exchange.{module}._CHUNK", 1)
    old = launch("old")
    new = launch("old", run__label="new", run__supersedes=supersede(old.id))
    put(there, [old, launch("between"), new])
    write(there, tmp_path / "out", form, ExportOptions(since=datetime(2000, 1, 1, tzinfo=UTC)))
    take(tmp_path / "out", here)
    assert here.entry(old.id).superseded_by == new.id
    assert [item.reason for item in here.supersessions()] == ["a better clock"]
    assert whole(here)


def test_two_successors_of_one_receipt_are_a_conflict(here: Store, there: Store, tmp_path: Path) -> None:
    old = launch("old")
    put(there, [old, launch("old", run__label="a", run__supersedes=supersede(old.id))])
    put(here, [old, launch("old", run__label="b", run__supersedes=supersede(old.id))])
    text = refused(there, here, tmp_path)
    assert f"receipt {old.id[:12]}: successor is" in text
    assert "launch old: it has a receipt with other bytes here" in text


def test_what_was_purged_here_does_not_come_back(here: Store, there: Store, tmp_path: Path) -> None:
    secret = launch("secret", run__command="train --say hunter2")
    after = launch("secret", run__label="after", run__supersedes=supersede(secret.id, "it held hunter2"))
    for store in (here, there):
        put(store, [secret, after])
    here.purge(secret.id, "a token")
    done = merge(there, here, tmp_path)
    assert done.purged == 1
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
    assert any(kept.id[:12] in text and "receipts purge" in text for text in done.notes)
    assert here.document(kept.id) == kept.raw
    (outcome,) = submit([Document(gone.raw, "again")], here, cases.rulebook())
    assert "was purged" in str(outcome.error)
    assert whole(here)


def test_a_pin_that_points_elsewhere_is_a_conflict_until_both_agree(here: Store, there: Store, tmp_path: Path) -> None:
    mine, theirs = launch("mine"), launch("theirs")
    put(here, [mine])
    put(there, [mine, theirs])
    here.pin("golden", mine.id)
    there.pin("golden", theirs.id)
    there.pin("only", theirs.id)
    text = refused(there, here, tmp_path)
    assert f"@golden: receipt is {mine.id[:12]} here and {theirs.id[:12]} there (" in text
    assert "@only" not in text
    there.pin("golden", mine.id)
    merge(there, here, tmp_path)
    assert {name: pin.receipt for name, pin in here.pins().items()} == {"golden": mine.id, "only": theirs.id}
    assert [pin.receipt for pin in here.pin_history("golden")] == [mine.id]
    assert sum(merge(there, here, tmp_path).new.values()) == 0


def test_a_pin_that_moved_on_there_moves_on_here(here: Store, there: Store, tmp_path: Path) -> None:
    one, two = put(there, [launch("one"), launch("two")])
    there.pin("golden", one)
    merge(there, here, tmp_path)
    there.pin("golden", two)
    assert merge(there, here, tmp_path).new["pins"] == 1
    assert [pin.receipt for pin in here.pin_history("golden")] == [one, two]
    # What is said here since is not taken back by an export from before.
    here.pin("golden", one)
    assert sum(merge(there, here, tmp_path).new.values()) == 0
    assert here.pins()["golden"].receipt == one


def test_decisions_that_differ_are_a_conflict(here: Store, there: Store, tmp_path: Path) -> None:
    one, two = launch("one"), launch("two")
    for store in (here, there):
        put(store, [one, two])
        store.published.decide(two.id, "drop", "alike")
    here.published.decide(one.id, "hold", "first")
    there.published.decide(one.id, "ship", "second")
    text = refused(there, here, tmp_path)
    assert f"decision on {one.id[:12]}: decision is hold here and ship there" in text
    assert two.id[:12] not in text
    here.published.decide(one.id, "ship", "as there")
    merge(there, here, tmp_path)
    assert [item.reason for item in here.published.decisions([one.id])] == ["first", "as there"]


def test_claims_of_one_name_are_one_or_a_conflict(here: Store, there: Store, tmp_path: Path) -> None:
    one = launch("one")
    for store in (here, there):
        put(store, [one])
    here.published.add_claims([new_claim("same", one.id)])
    there.published.add_claims([new_claim("same", one.id), new_claim("new", one.id)])
    there.published.record_claims([claim_verdict("same", one.id, "refuted"), claim_verdict("new", one.id)])
    merge(there, here, tmp_path)
    assert {item.id for item in here.published.claims()} == {"same", "new"}
    last = here.published.last_claim_verdict("same")
    assert last is not None
    assert last.status == "refuted"
    here.published.add_claims([new_claim("other", one.id)])
    there.published.add_claims([new_claim("other", "0" * 64)])
    assert "claim other: body is" in refused(there, here, tmp_path)


def test_a_claim_that_both_judged_keeps_the_verdicts_of_this_store(here: Store, there: Store, tmp_path: Path) -> None:
    one = launch("one")
    for store, status in ((here, "supported"), (there, "refuted")):
        put(store, [one])
        store.published.add_claims([new_claim("same", one.id)])
        store.published.record_claims([claim_verdict("same", one.id, status)])
    done = merge(there, here, tmp_path)
    assert done.notes == ["verdicts on claim same: this store has others, which stay"]
    last = here.published.last_claim_verdict("same")
    assert last is not None
    assert last.status == "supported"


def test_claims_that_two_stores_replaced_by_others_are_a_conflict(here: Store, there: Store, tmp_path: Path) -> None:
    one = launch("one")
    for store, name in ((here, "mine"), (there, "theirs")):
        put(store, [one])
        store.published.add_claims([new_claim("old", one.id), new_claim(name, one.id, supersedes="old")])
    assert "claim old: successor is mine here and theirs there" in refused(there, here, tmp_path)


# Seals


def test_the_seals_of_the_other_store_are_a_file_and_never_rows(here: Store, tmp_path: Path) -> None:
    with fill(str(tmp_path / "there.sqlite")) as there:
        with there.inspect() as inspection:
            roots = [item.seal.root for item in inspection.seals()]  # type: ignore[union-attr]  # none is damaged
        done = merge(there, here, tmp_path)
        other = there.id
    with here.inspect() as inspection:
        stores = {item.seal.store for item in inspection.seals()}  # type: ignore[union-attr]  # none is damaged
    assert stores == {here.id}
    assert whole(here)
    beside = here.database.address.file
    if beside is None:
        assert done.seals is None
        return
    assert done.seals == str(beside.with_name(f"{beside.name}.seals") / f"{other}.jsonl")
    rows = [json.loads(line) for line in Path(done.seals).read_text(encoding="utf-8").splitlines()]
    assert [row["root"] for row in rows if row["in"] == "seals"] == roots
    assert any(row["in"] == "erased" for row in rows)


def test_a_store_that_a_copy_was_put_in_can_be_copied_back(here: Store, there: Store, tmp_path: Path) -> None:
    put(there, [launch("one"), launch("two")])
    with open_store(str(tmp_path / "between.sqlite")) as between:
        put(between, [launch("three")])
        merge(there, between, tmp_path, "first")
        merge(between, here, tmp_path, "second")
        back = merge(here, there, tmp_path, "third")
    assert (back.new["receipts"], back.known["receipts"]) == (1, 2)
    assert whole(here)
    assert whole(there)


def test_a_copy_of_this_very_store_brings_nothing_but_what_is_new(here: Store, tmp_path: Path) -> None:
    put(here, [launch("one")])
    write(here, tmp_path / "out", "parquet")
    put(here, [launch("two")])
    done = take(tmp_path / "out", here)
    assert (sum(done.new.values()), done.seals) == (0, None)


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
