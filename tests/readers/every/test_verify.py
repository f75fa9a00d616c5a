"""Kept evidence and its reading again, from a job to ``receipts verify``."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from object_server import object_server
from receipts.base.errors import StoreError
from receipts.cli import main
from receipts.emit import Recorder
from receipts.store import open_store
from receipts.store.evidence import Bucket, Folder, KeptFiles, collect

pytestmark = pytest.mark.slow

TRACE = [
    {"ph": "X", "cat": "cpu_op", "name": "ProfilerStep#3", "ts": 1, "dur": 90},
    {"ph": "X", "cat": "cpu_op", "name": "aten::_scaled_dot_product_flash_attention_for_cpu", "ts": 2, "dur": 5},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 9, "dur": 5},
]


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one receipt, submitted with its evidence."""
    with Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True) as rec:
        for _ in range(3):
            with rec.step(tokens=512):
                pass
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": TRACE}))
    place = str(tmp_path / "s.sqlite")
    words = ["submit", str(tmp_path / "run.json"), "--evidence", str(tmp_path / "logs"), "-q"]
    assert main(["--store", place, *words]) == 0
    return place


def _checks(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, str]]:
    capsys.readouterr()
    code = main([*words, "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    return code, {item["what"]: item["word"] for item in row["checks"]}


def _kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "s.sqlite.evidence").glob("*/*.gz"))


def test_a_submit_keeps_the_file_and_it_reads_the_same_without_its_source(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs" / "trace.json").unlink()
    code, checks = _checks(capsys, "--store", store, "verify", "--all")
    assert code == 0
    assert checks["bytes"] == checks["path.witnessed.attention"] == "same"
    assert "missing" not in checks.values()


def test_two_processes_check_what_one_checks(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _checks(capsys, "--store", store, "verify", "--all", "--jobs", "2") == _checks(
        capsys, "--store", store, "verify", "--all"
    )


def test_a_given_file_that_changes_after_it_was_found_is_other(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from receipts.receipt import parse, read
    from receipts.workflows.evidence import by_digest, verify
    from rule_cases import rulebook

    files = by_digest(tmp_path / "logs")
    (tmp_path / "logs" / "trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": TRACE[:2]}))
    capsys.readouterr()
    assert main(["--store", store, "list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert main(["--store", store, "show", row["id"], "--raw"]) == 0
    (tmp_path / "stored.json").write_text(capsys.readouterr().out)
    parsed = parse(read(tmp_path / "stored.json"))
    done = verify(parsed, rulebook().lanes.of("cpu-torch"), files)
    assert done.exit_code == 1
    assert [item.word for item in done.checks if "trace.json" in item.what] == ["other"]


def test_a_file_that_is_gone_is_missing_and_one_that_is_given_is_read(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in _kept(tmp_path):
        path.unlink()
    code, checks = _checks(capsys, "--store", store, "verify", "--all")
    assert code == 3
    assert "missing" in checks.values()
    assert "path.witnessed.attention" not in checks
    code, checks = _checks(capsys, "--store", store, "verify", "--all", "--evidence", str(tmp_path / "logs"))
    assert (code, checks["path.witnessed.attention"]) == (0, "same")


def test_a_leaf_that_was_changed_is_other(store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--store", store, "show", "--raw", "label=*"]) in (0, 2)
    capsys.readouterr()
    with open_store(store) as opened:
        tree = json.loads(opened.document(opened.ids()[0]))
    tree["path"]["witnessed"]["attention"] = "sdpa_math"
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(tree))
    code, checks = _checks(capsys, "verify", str(forged), "--evidence", str(tmp_path / "logs"))
    assert (code, checks["bytes"], checks["path.witnessed.attention"]) == (1, "other", "other")


def test_no_damage_to_a_kept_file_reads_as_the_same(store: str, tmp_path: Path) -> None:
    (path,) = _kept(tmp_path)
    raw, draw = path.read_bytes(), random.Random(22)
    kept = KeptFiles(Folder(tmp_path / "s.sqlite.evidence"))
    (item,) = kept.all()
    plain = (tmp_path / "logs" / "trace.json").read_bytes()
    for _ in range(200):
        at = draw.randrange(len(raw))
        path.write_bytes(raw[:at] if draw.random() < 0.3 else raw[:at] + bytes([raw[at] ^ 0x41]) + raw[at + 1 :])
        try:
            with kept.file(item.digest) as file:
                assert file.read_bytes() == plain  # a byte of gzip's header may change nothing that is unpacked
        except StoreError:
            continue


def test_collecting_and_purging_remove_what_no_receipt_lists(store: str, tmp_path: Path) -> None:
    kept = KeptFiles(Folder(tmp_path / "s.sqlite.evidence"))
    loose = tmp_path / "loose.txt"
    loose.write_text("nobody lists this")
    digest = kept.put(loose)
    assert main(["--store", store, "evidence", "gc"]) == 0
    assert not kept.held([digest])
    assert len(kept.all()) == 1
    assert main(["--store", store, "evidence", "gc", "--older", "1"]) == 0
    assert len(kept.all()) == 1
    yesterday = datetime.now(UTC) - timedelta(days=1)
    with open_store(store) as opened:
        assert len(collect(opened, since=yesterday, dry_run=True)) == 0
        assert len(collect(opened, since=yesterday + timedelta(days=2), dry_run=True)) == 1
    with open_store(store) as opened:
        (receipt,) = opened.ids()
    assert main(["--store", store, "purge", receipt, "--reason", "a secret", "--yes"]) == 0
    assert kept.all() == []


def test_a_backup_takes_the_files_and_a_restore_brings_them_back(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", store, "backup", str(tmp_path / "b.sqlite")]) == 0
    again = str(tmp_path / "again.sqlite")
    assert main(["--store", again, "restore", str(tmp_path / "b.sqlite")]) == 0
    code, checks = _checks(capsys, "--store", again, "verify", "--all")
    assert (code, checks["path.witnessed.attention"]) == (0, "same")


def test_an_export_of_everything_takes_the_files_and_an_import_brings_them_back(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--store", store, "export", str(tmp_path / "x.jsonl")]) == 0
    again = str(tmp_path / "again.sqlite")
    assert main(["--store", again, "import", "store", str(tmp_path / "x.jsonl")]) == 0
    code, checks = _checks(capsys, "--store", again, "verify", "--all")
    assert (code, checks["path.witnessed.attention"]) == (0, "same")


@pytest.mark.parametrize("kind", ["folder", "file URL", "memory"])
def test_a_place_keeps_the_same_bytes_once_and_forgets_them(kind: str, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    places: dict[str, Any] = {
        "folder": lambda: Folder(tmp_path / "kept"),
        "file URL": lambda: Bucket((tmp_path / "kept").as_uri()),
        "memory": lambda: Bucket("memory:///"),
    }
    if kind != "folder":
        pytest.importorskip("obstore")
    place: Folder | Bucket = places[kind]()
    kept = KeptFiles(place)
    file = tmp_path / "a.log"
    file.write_text("step 1\n" * 1000)
    digest = kept.put(file)
    assert kept.put(file) == digest
    assert [item.digest for item in kept.all()] == [digest]
    assert kept.all()[0].size < file.stat().st_size
    with kept.file(digest) as plain:
        assert plain.read_bytes() == file.read_bytes()
    kept.remove(digest)
    assert not kept.held([digest])


def test_an_object_store_keeps_the_evidence_of_a_submit_and_its_fault_is_the_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("obstore")
    with object_server() as server:
        for name, value in {**server.settings, "RECEIPTS_EVIDENCE": "s3://lab/evidence"}.items():
            monkeypatch.setenv(name, value)
        store = request.getfixturevalue("store")
        (key,) = server.objects
        assert key.startswith("lab/evidence/")
        assert not _kept(tmp_path)
        (tmp_path / "logs" / "trace.json").unlink()
        code, checks = _checks(capsys, "--store", store, "verify", "--all")
        assert (code, checks["path.witnessed.attention"]) == (0, "same")
        assert main(["--store", store, "backup", str(tmp_path / "b.sqlite")]) == 0
        assert len(list((tmp_path / "b.sqlite.evidence").glob("*/*.gz"))) == 1
        server.objects[key] = server.objects[key][:-9]
        assert main(["--store", store, "verify", "--all"]) == 4
        server.failing = True
        assert main(["--store", store, "evidence", "list"]) == 4
        assert "s3://lab/evidence" in capsys.readouterr().err


def test_a_large_file_goes_to_an_object_store_in_parts_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("obstore")
    large = tmp_path / "large.trace"
    large.write_bytes(random.Random(22).randbytes(12 << 20))
    with object_server() as server:
        for name, value in server.settings.items():
            monkeypatch.setenv(name, value)
        kept = KeptFiles(Bucket("s3://lab/evidence"))
        digest = kept.put(large)
        with kept.file(digest) as plain:
            assert plain.read_bytes() == large.read_bytes()
        kept.remove(digest)
        assert (kept.all(), server.parts) == ([], {})
