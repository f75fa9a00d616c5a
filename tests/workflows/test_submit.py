"""Submitting documents: every good one is stored, every bad one told, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from receipts.base.errors import ConflictError, InputError
from receipts.judging.judge import judge_receipt
from receipts.receipt import Document
from receipts.store import Store, open_store
from receipts.workflows.submit import BATCH, Submission, exit_code, submit
from store_receipts import RULEBOOK, raw


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.sqlite")) as opened:
        yield opened


def put(store: Store, *documents: Document | str) -> list[Submission]:
    return list(submit(documents, store, RULEBOOK))


def test_a_document_is_judged_and_stored_with_its_verdict(store: Store) -> None:
    document = Document(raw(), "run.json")
    (outcome,) = put(store, document)
    assert outcome.stored
    assert outcome.submitted is not None
    assert outcome.parsed is not None
    assert outcome.submitted.id == document.id
    assert store.document(document.id) == document.raw
    lane = RULEBOOK.lanes.of(outcome.parsed.receipt.run.lane)
    alone = judge_receipt(outcome.parsed, lane, RULEBOOK.rules, store.query.facts(outcome.parsed))
    assert outcome.verdict is not None
    assert outcome.verdict.status == alone.status
    (kept,) = store.verdicts(document.id)
    assert (kept.status, kept.rules) == (outcome.verdict.status, RULEBOOK.rules.digest)
    assert len(kept.document["findings"]) == len(outcome.verdict.findings)
    assert store.entry(document.id).status == outcome.verdict.status


def test_every_good_file_is_stored_and_every_bad_one_told_with_all_its_errors(store: Store, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_bytes(raw())
    bad.write_bytes(raw(run__started="2026-01-01T00:00:00", batch__micro_batch=-1))
    first, broken, missing, last = put(
        store, str(good), str(bad), str(tmp_path / "none.json"), Document(raw(), "standard input")
    )
    assert [item.stored for item in (first, broken, missing, last)] == [True, False, False, True]
    assert (first.source, last.source) == (str(good), "standard input")
    assert isinstance(broken.error, InputError)
    assert {problem.at for problem in broken.error.problems} == {"run.started", "batch.micro_batch"}
    assert "there is no such file" in str(missing.error)
    assert len(list(store.find())) == 2
    assert exit_code([first, broken, missing, last]) == 2


def test_a_document_that_is_no_receipt_writes_nothing(store: Store) -> None:
    before = Path(store.url).read_bytes()
    refused = put(store, Document(b"", "empty"), Document(b"[1]", "list"), Document(b'{"a": NaN}', "nan"))
    assert [item.stored for item in refused] == [False, False, False]
    assert list(store.find(None)) == []
    assert Path(store.url).read_bytes() == before


def test_a_document_twice_in_one_call_is_stored_once(store: Store) -> None:
    document = Document(raw(), "run.json")
    first, again = put(store, document, document)
    assert first.submitted is not None
    assert again.submitted is not None
    assert (first.submitted.new, again.submitted.new) == (True, False)
    assert exit_code([first, again]) == 0


def test_a_conflict_is_told_and_the_rest_is_stored(store: Store) -> None:
    first, other, third = put(
        store,
        Document(raw(run__launch="one"), "a"),
        Document(raw(run__launch="one", run__label="b"), "b"),
        Document(raw(), "c"),
    )
    assert first.stored
    assert third.stored
    assert isinstance(other.error, ConflictError)
    assert str(other.error).startswith("b: launch one has a receipt with other bytes")


def test_an_invalid_receipt_is_stored_all_the_same_and_requiring_more_sets_the_code(store: Store) -> None:
    (invalid,) = put(store, Document(raw(parallelism__tensor=3), "run.json"))
    assert invalid.verdict is not None
    assert invalid.verdict.status == "invalid"
    assert invalid.stored
    codes = [exit_code([invalid], require) for require in (None, "invalid", "open", "valid")]  # type: ignore[arg-type]
    assert codes == [0, 0, 1, 1]


def test_a_receipt_without_evidence_falls_short_of_valid_alone(store: Store) -> None:
    (open_one,) = put(store, Document(raw(run__lane="of nobody"), "run.json"))
    assert open_one.verdict is not None
    assert open_one.verdict.status == "open"
    codes = [exit_code([open_one], require) for require in (None, "open", "valid")]  # type: ignore[arg-type]
    assert codes == [0, 0, 3]


def test_more_documents_than_a_batch_come_in_their_order(store: Store) -> None:
    documents = [Document(raw(run__label=str(number)), str(number)) for number in range(BATCH + 3)]
    outcomes = submit(iter(documents), store, RULEBOOK)
    assert next(outcomes).source == "0"
    assert len(list(store.find())) == BATCH
    assert [item.source for item in outcomes] == [str(number) for number in range(1, BATCH + 3)]
    assert [entry.label for entry in reversed(list(store.find()))] == [str(number) for number in range(BATCH + 3)]
