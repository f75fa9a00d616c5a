"""The trace that a receipt names: read by `submit` and `check`, and never left unread where it is not as it was."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import Shell
from receipts.base.errors import InputError
from receipts.emit import Recorder
from receipts.receipt import Document
from receipts.store import Store, open_store
from receipts.store.evidence import kept_files
from receipts.workflows import traces
from receipts.workflows.submit import Submission, submit
from rule_cases import rulebook

ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"


def _trace(folder: Path, name: str = "run.trace.json.gz", step: int = 3, pid: int | None = None) -> Path:
    process = os.getpid() if pid is None else pid
    rows = [(f"ProfilerStep#{step}", 1, 90), (ATTENTION, 2, 5), ("aten::mm", 9, 5)]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": word, "ts": at, "dur": took, "pid": process} for word, at, took in rows
    ]
    path = folder / name
    path.write_bytes(gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": events}).encode(), mtime=0))
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A receipt that names the trace beside it, as the recorder leaves both."""
    folder = tmp_path / "runs"
    folder.mkdir()
    with Recorder("cpu-torch", out=folder / "run.json", probes=False, quiet=True) as rec:
        rec.state("run.processes", [os.getpid()])
        rec.attach(_trace(folder), kind="torch-profiler")
        for _ in range(6):
            with rec.step(tokens=512):
                pass
    return folder / "run.json"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.sqlite")) as opened:
        yield opened


def _submitted(store: Store, item: Path | Document, *, local: bool = True, jobs: int = 1) -> Submission:
    given = [str(item) if isinstance(item, Path) else item]
    (outcome,) = submit(given, store, rulebook(), local=local, jobs=jobs)
    return outcome


def _tree(store: Store, outcome: Submission) -> dict[str, Any]:
    assert outcome.submitted is not None, outcome.error
    tree: dict[str, Any] = json.loads(store.document(outcome.submitted.id))
    return tree


def _moved(run: Path) -> Path:
    """The receipt in another folder, without its trace; where it was there is nothing any more."""
    elsewhere = run.parent.with_name("elsewhere")
    elsewhere.mkdir()
    return run.rename(elsewhere / "run.json")


def test_submit_reads_the_trace_beside_the_receipt_and_the_store_keeps_it(store: Store, run: Path) -> None:
    outcome = _submitted(store, run)
    tree = _tree(store, outcome)
    assert tree["path"]["witnessed"]["attention"] == "sdpa_flash"
    assert "path.witnessed.attention" in tree["evidence"][0]["read"]
    kept = kept_files(store.database.address)
    assert kept is not None
    assert kept.held([tree["evidence"][0]["sha256"]])
    assert "read run.trace.json.gz: " in outcome.notes[0]


def test_the_same_receipt_again_is_known_wherever_it_and_its_trace_are(store: Store, run: Path) -> None:
    first = _submitted(store, run).submitted
    again = _submitted(store, run).submitted
    assert first is not None
    assert again is not None
    assert (again.id, again.new) == (first.id, False)
    (run.parent / "run.trace.json.gz").unlink()
    from_kept = _submitted(store, _moved(run)).submitted
    assert from_kept is not None
    assert (from_kept.id, from_kept.new) == (first.id, False)


def test_a_receipt_and_its_trace_that_moved_together_are_read(store: Store, run: Path) -> None:
    place = _moved(run)
    (run.parent / "run.trace.json.gz").rename(place.parent / "run.trace.json.gz")
    assert _tree(store, _submitted(store, place))["path"]["witnessed"]["attention"] == "sdpa_flash"


def test_a_receipt_that_moved_alone_finds_its_trace_where_it_was(store: Store, run: Path) -> None:
    assert _tree(store, _submitted(store, _moved(run)))["path"]["witnessed"]["attention"] == "sdpa_flash"


def test_a_missing_trace_is_noted_and_the_receipt_is_stored_as_it_is(store: Store, run: Path) -> None:
    (run.parent / "run.trace.json.gz").unlink()
    raw = run.read_bytes()
    outcome = _submitted(store, run)
    assert outcome.submitted is not None
    assert store.document(outcome.submitted.id) == raw
    assert "run.trace.json.gz is not here" in outcome.notes[0]


def test_a_trace_with_another_digest_is_refused_with_both_digests(store: Store, run: Path) -> None:
    _trace(run.parent, step=4)
    outcome = _submitted(store, run)
    assert outcome.submitted is None
    assert isinstance(outcome.error, InputError)
    (problem,) = outcome.error.problems
    assert problem.at == "evidence[0].sha256"
    assert "run.trace.json.gz has the digest" in problem.what
    assert list(store.ids()) == []


def test_a_file_of_that_name_elsewhere_is_not_taken_for_the_trace(store: Store, run: Path) -> None:
    place = _moved(run)
    _trace(run.parent, step=4)
    outcome = _submitted(store, place)
    assert outcome.submitted is not None
    assert "is another file than the receipt names" in outcome.notes[0]


def test_the_trace_of_another_launch_is_refused_though_the_receipt_names_it(store: Store, run: Path) -> None:
    other = _trace(run.parent, pid=os.getpid() + 1)
    tree = json.loads(run.read_bytes())
    tree["evidence"][0]["sha256"] = hashlib.sha256(other.read_bytes()).hexdigest()
    run.write_text(json.dumps(tree))
    outcome = _submitted(store, run)
    assert outcome.submitted is None
    assert "is of another launch: it was taken in process" in str(outcome.error)


def test_a_trace_that_breaks_off_shows_less_and_that_is_noted(store: Store, run: Path) -> None:
    place = run.parent / "run.trace.json.gz"
    place.write_bytes(place.read_bytes()[:-30])
    tree = json.loads(run.read_bytes())
    tree["evidence"][0]["sha256"] = hashlib.sha256(place.read_bytes()).hexdigest()
    run.write_text(json.dumps(tree))
    outcome = _submitted(store, run)
    assert "path" not in _tree(store, outcome) or "posture" not in _tree(store, outcome)["path"]["witnessed"]
    assert "run.trace.json.gz" in outcome.notes[0]


def test_a_document_of_another_machine_names_no_file_of_this_one(store: Store, run: Path) -> None:
    document = Document(run.read_bytes(), "the document")
    assert "path" not in _tree(store, _submitted(store, document, local=False))


def test_a_document_of_another_machine_is_read_with_the_trace_that_was_sent(store: Store, run: Path) -> None:
    kept = kept_files(store.database.address)
    assert kept is not None
    kept.put(run.parent / "run.trace.json.gz")
    outcome = _submitted(store, Document(run.read_bytes(), "the document"), local=False)
    assert _tree(store, outcome)["path"]["witnessed"]["attention"] == "sdpa_flash"
    here = _submitted(store, run).submitted  # the same bytes, by either way
    assert here is not None
    assert not here.new


def test_a_sent_trace_that_unpacks_to_too_much_is_not_read(
    store: Store, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = kept_files(store.database.address)
    assert kept is not None
    kept.put(run.parent / "run.trace.json.gz")
    monkeypatch.setattr(traces, "MAX_STRANGE_UNPACKED", 100)
    assert "path" not in _tree(store, _submitted(store, Document(run.read_bytes(), "the document"), local=False))


def test_a_receipt_that_was_stored_before_its_trace_was_read_stays_known(store: Store, run: Path) -> None:
    trace = run.parent / "run.trace.json.gz"
    content = trace.read_bytes()
    trace.unlink()
    first = _submitted(store, run).submitted
    trace.write_bytes(content)
    again = _submitted(store, run).submitted
    assert first is not None
    assert again is not None
    assert (again.id, again.new) == (first.id, False)


def test_check_reads_the_trace(shell: Shell, run: Path) -> None:
    checked = shell("check", str(run))
    assert "read run.trace.json.gz: " in checked.err
    assert "nothing shows attention" not in checked.out
    _trace(run.parent, step=4)
    assert shell("check", str(run)).code == 2


def test_a_submit_of_a_folder_reads_each_trace(shell: Shell, run: Path) -> None:
    done = shell("submit", str(run.parent))
    assert done.code == 0
    assert "read run.trace.json.gz: " in done.err
