"""Documents that are no receipts: exit code 2, every problem with its file and path, no traceback, nothing written."""

from __future__ import annotations

import io
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import malformed
from receipts.base.errors import InputError, Problem
from receipts.cli import main
from receipts.receipt import Document, parse

pytestmark = pytest.mark.slow

EVERY = malformed.every()
CLEAN = malformed.encoded(malformed.tree())


def _refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Standard error of a call that must be refused."""
    code = main(words)
    told = capsys.readouterr()
    assert code == 2, told.err
    assert "Traceback" not in told.err
    assert "Traceback" not in told.out
    return told.err


def _kept(store: Path) -> int:
    """Documents in a store; none where there is no store."""
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store)) as connection, connection:
        counts = [
            connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("receipts", "documents")
        ]
    connection.close()
    return sum(counts)


def test_there_are_a_hundred_and_more() -> None:
    names = [item.name for item in EVERY]
    assert len(names) >= 100
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("item", EVERY, ids=str)
def test_check_refuses_it_with_file_and_path(
    item: malformed.Malformed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(item.make())
    told = _refused(["check", str(path)], capsys)
    assert told.startswith(f"{path}: ")
    assert item.at in told, told[:500]
    assert item.says in told, told[:500]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("item", EVERY[::3], ids=str)
def test_submit_keeps_nothing_of_it(
    item: malformed.Malformed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, store = tmp_path / "run.json", tmp_path / "store.sqlite"
    path.write_bytes(item.make())
    told = _refused(["--store", f"sqlite:///{store}", "submit", str(path)], capsys)
    assert str(path) in told
    assert item.at in told, told[:500]
    assert _kept(store) == 0


def test_the_clean_document_is_a_receipt(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(CLEAN)
    assert main(["check", str(path)]) != 2


@pytest.mark.parametrize("command", ["check", "submit"])
def test_several_bad_files_are_all_told_at_once(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [item for item in EVERY if item.name in ("empty", "gzip", "duplicate key", "without run.launch")]
    paths = [tmp_path / f"{number}.json" for number in range(len(chosen))]
    for path, item in zip(paths, chosen, strict=True):
        path.write_bytes(item.make())
    absent = tmp_path / "absent.json"
    told = _refused(["--store", f"sqlite:///{tmp_path / 's.sqlite'}", command, *map(str, [*paths, absent])], capsys)
    for path, item in zip(paths, chosen, strict=True):
        assert str(path) in told
        assert item.says in told
    assert str(absent) in told
    assert _kept(tmp_path / "s.sqlite") == 0


def test_every_problem_of_one_document_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = malformed.tree()
    document["model"]["hidden"] = "wide"
    document["run"]["kind"] = "train"
    document["batch"]["surprise"] = 1
    del document["run"]["launch"]
    path = tmp_path / "run.json"
    path.write_bytes(malformed.encoded(document))
    told = _refused(["check", str(path)], capsys)
    for at in ("model.hidden", "run.kind", "batch.surprise", "run.launch"):
        assert f"{path}: {at}: " in told


def test_two_faults_of_the_json_itself_are_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"a": [1, NaN], "b": {"c": 1, "c": 2}, "d": 1e999}')
    told = _refused(["check", str(path)], capsys)
    assert [line.split(": ")[1] for line in told.splitlines()] == ["a[1]", "b.c", "d"]


def test_a_thousand_problems_are_told_as_fifty_and_a_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = malformed.tree()
    document["measurement"]["step_durations_seconds"] = ["x"] * 1000
    path = tmp_path / "run.json"
    path.write_bytes(malformed.encoded(document))
    told = _refused(["check", str(path)], capsys).splitlines()
    assert len(told) == 51
    assert "and 950 more problems" in told[-1]


@pytest.mark.parametrize("command", ["check", "submit"])
def test_a_folder_is_refused(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = _refused(["--store", f"sqlite:///{tmp_path / 's.sqlite'}", command, str(tmp_path)], capsys)
    assert f"{tmp_path}: this is a folder" in told


def test_an_absent_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no such file" in _refused(["check", str(tmp_path / "absent.json")], capsys)


@pytest.mark.parametrize(
    ("error", "says"),
    [(PermissionError(13, "Permission denied"), "may not be read"), (OSError(5, "Input/output error"), "Input/output")],
    ids=["without permission", "on a failing disk"],
)
def test_an_unreadable_file_is_refused(
    error: OSError, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    path.write_text("{}")
    opened = Path.open

    def refuse(self: Path, *arguments: object, **options: object) -> object:
        if self == path:
            raise error
        return opened(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "open", refuse)
    assert says in _refused(["check", str(path)], capsys)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_file_without_permission_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    path.write_text("{}")
    path.chmod(0)
    assert "may not be read" in _refused(["check", str(path)], capsys)


def test_a_hundred_megabytes_are_not_read_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    with path.open("wb") as stream:
        stream.truncate(100 * malformed.MEBIBYTE)
    from receipts.receipt import read
    from receipts.receipt.load import MAX_BYTES

    assert len(read(path).raw) == MAX_BYTES + 1
    assert "larger than 16 MiB" in _refused(["check", str(path)], capsys)


def test_standard_input_is_named_in_the_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"schema_version": "1.0"')))
    assert "standard input: line 1, column 25" in _refused(["check", "-"], capsys)


def test_a_key_cannot_write_to_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = malformed.tree()
    document["\x1b[31mred\u202e"] = 1
    path = tmp_path / "run.json"
    path.write_bytes(malformed.encoded(document))
    told = _refused(["check", str(path)], capsys)
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "\\x1b[31mred" in told


PIECES = st.sampled_from([b"{", b"]", b'"', b"\\", b"\\ud800", b"NaN", b"1e999", b",", b"\0", b"9" * 30, b"\xff", b""])
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), PIECES), min_size=1, max_size=4)


@given(EDITS)
@settings(max_examples=200)
def test_a_damaged_document_is_read_or_refused_and_nothing_else(edits: list[tuple[float, int, bytes]]) -> None:
    raw = CLEAN
    for share, length, piece in edits:
        at = int(share * len(raw))
        raw = raw[:at] + piece + raw[at + length :]
    problems: tuple[Problem, ...] = ()
    try:
        kept = parse(Document(raw, "damaged.json")).raw
    except InputError as refused:
        kept, problems = None, refused.problems
    assert kept == raw or problems
    assert all(problem.at and problem.what for problem in problems)


@pytest.mark.parametrize("word", ["x" * 5000 + ".json", "a\0b.json"])
def test_a_word_that_no_file_can_be_called_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    _refused(["check", word], capsys)
