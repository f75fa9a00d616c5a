"""Many receipts at once: batches that share a transaction, resumed by digest, by several processes, on both engines."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import postgres_proxy
from command_line import Shell
from receipts.base.errors import ConflictError, InputError
from receipts.receipt import Document
from receipts.receipt.load import MAX_BYTES, documents
from receipts.store import Store, open_store
from receipts.store.sql.postgres import COPIED
from receipts.workflows.submit import BATCH, Submission, submit
from receipts.workflows.workers import AHEAD
from store_receipts import RULEBOOK, raw
from thorough import unless_thorough

pytestmark = pytest.mark.slow

MANY = COPIED + 5  # so that PostgreSQL takes them by COPY


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as opened:
        yield opened


def lines(*bodies: bytes) -> bytes:
    return b"".join(body + b"\n" for body in bodies)


def read(words: list[str], stdin: bytes = b"") -> list[Any]:
    return list(documents(words, io.BytesIO(stdin)))


def put(store: Store, *bodies: bytes, **how: Any) -> list[Submission]:
    return list(submit([Document(body, str(n)) for n, body in enumerate(bodies)], store, RULEBOOK, **how))


# Where documents lie


def test_a_folder_stands_for_the_files_in_it_by_name_and_hidden_ones_and_pipes_are_left_out(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "c.txt", ".d.json", "below/e.json", ".git/f.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    (tmp_path / "z.jsonl").write_bytes(b'{"a": 1}\n')
    os.mkfifo(tmp_path / "pipe.json")
    found = read([str(tmp_path)])
    names = [item if isinstance(item, str) else item.source for item in found]
    assert names == [str(tmp_path / name) for name in ("a.json", "b.json", "z.jsonl:1", "below/e.json")]


def test_a_line_is_a_document_without_its_end_and_is_told_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_bytes(b'{"a": 1}\r\n\n  \n{"b": 2}')
    assert read([str(tmp_path / "runs.jsonl")]) == [
        Document(b'{"a": 1}', f"{tmp_path}/runs.jsonl:1"),
        Document(b'{"b": 2}', f"{tmp_path}/runs.jsonl:4"),
    ]


@pytest.mark.parametrize("single", [b'{"a": 1}', b'{"a": 1}\n', b'{"a": 1}\n\n', b'{\n "a": 1\n}\n', b"no json\n{}\n"])
def test_a_single_document_on_standard_input_keeps_every_byte(single: bytes) -> None:
    assert read(["-"], single) == [Document(single, "standard input")]


def test_standard_input_is_one_document_a_line_where_the_first_line_is_one_and_more_follows() -> None:
    found = read(["-"], b'{"a": 1}\n\n[2]\n')
    assert found == [Document(b'{"a": 1}', "standard input:1"), Document(b"[2]", "standard input:3")]


def test_a_line_that_no_document_may_be_as_long_as_is_refused_and_the_next_one_is_read(
    tmp_path: Path, store: Store
) -> None:
    good = raw()
    (tmp_path / "runs.jsonl").write_bytes(lines(b'{"a": "' + b"x" * (2 * MAX_BYTES) + b'"}', good))
    long, last = submit(read([str(tmp_path / "runs.jsonl")]), store, RULEBOOK)
    assert "larger than 16 MiB" in str(long.error)
    assert last.stored
    assert last.source.endswith("runs.jsonl:2")


def test_a_stream_that_is_not_there_is_told_and_the_others_go_in(tmp_path: Path, store: Store) -> None:
    (tmp_path / "a.json").write_bytes(raw())
    missing, found = submit(read([str(tmp_path / "no.jsonl"), str(tmp_path / "a.json")]), store, RULEBOOK)
    assert isinstance(missing.error, InputError)
    assert "there is no such file" in str(missing.error)
    assert found.stored


# What becomes of them


def test_a_batch_of_many_comes_in_whole_with_its_verdicts_and_indexes(store: Store) -> None:
    bodies = [raw(run__label=str(number), batch__micro_batch=2 + number % 3) for number in range(MANY)]
    told = put(store, *bodies)
    assert [item.submitted.new for item in told if item.submitted] == [True] * MANY
    assert [entry.label for entry in reversed(list(store.find()))] == [str(number) for number in range(MANY)]
    for item, body in zip(told, bodies, strict=True):
        assert item.submitted is not None
        assert store.document(item.submitted.id) == body
        (verdict,) = store.verdicts(item.submitted.id)
        assert verdict.document["receipt"] == item.submitted.id
        assert verdict.status == item.status


def _eventful() -> list[bytes]:
    """Documents among which some conflict, replace one another, stand twice, or replace what comes only later."""
    first = raw(run__launch="one")
    again = raw(run__launch="one", run__label="again")
    later = raw(run__launch="later")
    reason = {"target": Document(first, "").id, "reason": "a wrong label"}
    return [
        first,
        again,
        raw(run__launch="one", run__label="next", run__supersedes=reason),
        first,
        raw(
            run__launch="later", run__label="b", run__supersedes={"target": Document(later, "").id, "reason": "a label"}
        ),
        later,
        raw(run__launch="later", run__label="other"),
        b"[]",
        *(raw(run__launch=f"plain-{number}") for number in range(MANY)),
    ]


def test_a_batch_decides_as_the_same_documents_one_by_one(store: Store, tmp_path: Path) -> None:
    bodies = _eventful()
    together = put(store, *bodies)
    with open_store(str(tmp_path / "one.sqlite")) as other:
        apart = [put(other, body)[0] for body in bodies]
        assert [(item.receipt, item.successor, item.reason) for item in store.supersessions()] == [
            (item.receipt, item.successor, item.reason) for item in other.supersessions()
        ]
    says = [
        [
            (item.submitted.new, item.submitted.stands, item.submitted.superseded)
            if item.submitted
            else type(item.error)
            for item in items
        ]
        for items in (together, apart)
    ]
    assert says[0] == says[1]
    assert [type(item.error) for item in together if item.error] == [ConflictError, ConflictError, InputError]


def test_what_was_purged_does_not_come_back_with_a_batch(store: Store) -> None:
    leak, *others = [raw() for _ in range(MANY)]
    (stored,) = put(store, leak)
    assert stored.submitted is not None
    store.purge(stored.submitted.id, "a token")
    refused, *told = put(store, leak, *others)
    assert "was purged" in str(refused.error)
    assert all(item.stored for item in told)


# Going on


def test_what_is_stored_is_known_without_being_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = [raw(run__label=f"run {number}") for number in range(3)]
    put(store, *bodies)

    def refuse(_document: Document) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr("receipts.workflows.submit.parse", refuse)
    told = put(store, *bodies, resume=True)
    assert [(item.name, item.status) for item in told] == [(f"run {number}", "valid") for number in range(3)]
    assert all(item.submitted is not None and not item.submitted.new for item in told)


def test_who_is_interrupted_goes_on_where_it_was(store: Store) -> None:
    bodies = [raw(run__label=str(number)) for number in range(BATCH + 5)]
    interrupted = submit([Document(body, "run") for body in bodies], store, RULEBOOK)
    next(interrupted)
    interrupted.close()  # type: ignore[attr-defined]  # it is a generator
    assert len(list(store.find())) == BATCH
    told = put(store, *bodies, resume=True)
    assert [item.submitted.new for item in told if item.submitted] == [False] * BATCH + [True] * 5
    assert len(list(store.find())) == BATCH + 5


def test_other_processes_judge_to_the_same_end_in_the_same_order(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("receipts.judging.grade.LAST_BY_START", date(2026, 11, 28))  # as the other processes do
    bodies = [
        b"[1]",
        *(raw(run__label=str(number), parallelism__tensor=1 + number % 2) for number in range(BATCH + 20)),
    ]
    told = put(store, *bodies, jobs=2)
    with open_store(str(tmp_path / "one.sqlite")) as other:
        alone = put(other, *bodies)
        for ours, theirs in zip(told, alone, strict=True):
            assert (ours.source, ours.name, ours.status) == (theirs.source, theirs.name, theirs.status)
            if ours.submitted and theirs.submitted:
                receipt = ours.submitted.id
                assert receipt == theirs.submitted.id
                assert [item.document for item in store.verdicts(receipt)] == [
                    item.document for item in other.verdicts(receipt)
                ]
    assert isinstance(told[0].error, InputError)
    assert {item.status for item in told[1:]} == {"open", "invalid"}


# Round trips


def test_processes_that_judge_for_one_that_is_killed_end_with_it(store: Store) -> None:
    call = [sys.executable, "-m", "receipts", "--store", store.database.full_url, "submit", "-", "--jobs", "2"]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        writer.stdin.write(lines(*(raw() for _ in range(2 * AHEAD * 2 * BATCH))))
        writer.stdin.flush()
        while not list(store.find()):
            assert writer.poll() is None
            time.sleep(0.05)
        writer.kill()
        # They hold its output: what reads that would wait for ever with them.
        writer.communicate(timeout=60)


def test_a_warm_submit_to_a_server_takes_three_round_trips(postgres_store: str) -> None:
    with postgres_proxy.before(postgres_store) as (proxy, url), open_store(url) as store:
        for _ in range(8):  # until the driver has prepared every statement
            put(store, raw())
        before = proxy.trips
        (told,) = put(store, raw())
        assert told.submitted is not None
        assert told.submitted.new
        assert proxy.trips - before == 3


# The command


def test_a_folder_and_a_stream_are_told_in_a_line_and_sealed(shell: Shell) -> None:
    folder = shell.folder / "runs"
    folder.mkdir()
    (folder / "a.json").write_bytes(raw())
    (folder / "b.jsonl").write_bytes(lines(raw(), b'{"schema_version": "1.0"}', raw()))
    said = shell("submit", "runs")
    assert said.code == 2
    assert said.out == "3 stored: 3 valid; 1 refused\n"
    assert "runs/b.jsonl:2: run" in said.err
    again = shell("submit", "runs", "--json")
    assert [row.get("new") for row in again.json] == [False, False, None, False]
    audit = shell("audit", "--json")
    assert audit.code == 0, audit.out


def test_a_stream_on_standard_input_is_many_documents(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines(raw(), raw()))))
    said = shell("submit", "-", "--json")
    assert [row["source"] for row in said.json] == ["standard input:1", "standard input:2"]
    assert len(shell("list", "--json").json) == 2


# Several at once


def test_processes_that_bring_some_of_the_same_receipts_lose_none_and_store_none_twice(
    store_url: str, tmp_path: Path
) -> None:
    bodies = [raw() for _ in range(unless_thorough(2, 4) * MANY)]
    shared = bodies[::5]
    for number in range(4):
        mine = [*bodies[number::4], *shared]
        (tmp_path / f"{number}.jsonl").write_bytes(lines(*(mine if number % 2 else reversed(mine))))
    calls = [
        subprocess.Popen(
            [sys.executable, "-m", "receipts", "--store", store_url, "submit", f"{number}.jsonl", "--json"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for number in range(4)
    ]
    said = [call.communicate(timeout=120) for call in calls]
    assert [(call.returncode, err) for call, (_, err) in zip(calls, said, strict=True)] == [(0, b"")] * 4
    rows = [row for out, _ in said for row in json.loads(out)]
    assert len(rows) == len(bodies) + 4 * len(shared)
    with open_store(store_url) as store:
        stored = {entry.id for entry in store.find()}
        assert stored == {Document(body, "").id for body in bodies}
        assert sorted(row["id"] for row in rows if row["new"]) == sorted(stored)
        for name in stored:
            assert len(store.verdicts(name)) == 1
