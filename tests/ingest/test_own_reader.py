"""Ingesting by a reader of the tests' own, which a distribution names: what the kernel does for any reader."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import own_readers
import receipts

pytestmark = pytest.mark.slow

LOG = "2026-03-02 09:00:00 begin\n" + "".join(
    f"plain> step {step}: loss={9 - step / 10} seconds=0.5\n" for step in range(1, 41)
)
Ingest = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def ingest(tmp_path: Path) -> Ingest:
    """``receipts ingest`` in a folder of its own, beside a distribution that names the reader."""
    named = tmp_path / "site" / "own-1.dist-info"
    named.mkdir(parents=True)
    (named / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (named / "entry_points.txt").write_text("[receipts.readers]\nplain = own_readers\n")
    places = (named.parent, *(Path(item.__file__ or "").parents[1] for item in (own_readers, receipts)))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
    command = [sys.executable, "-m", "receipts", "ingest"]

    def call(*words: str, given: str = "") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*command, *words], cwd=tmp_path, env=env, input=given.encode(), capture_output=True)

    return call


def measured(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run.json").read_bytes())["measurement"])


def test_a_log_becomes_a_receipt_that_names_its_file(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(LOG)
    done = ingest("run.log", "-o", "run.json")
    assert done.returncode == 0, done.stderr
    assert b"plain (40 steps" in done.stdout
    assert measured(tmp_path)["step_durations_seconds"] == [0.5] * 40
    loss = measured(tmp_path)["loss"]
    assert (loss["finite"], loss["first"], loss["last"]) == (True, 8.9, 5.0)
    (entry,) = json.loads((tmp_path / "run.json").read_bytes())["evidence"]
    assert (entry["uri"], entry["kind"]) == ("run.log", "plain")


@pytest.mark.parametrize("form", ["gz", "tar"])
def test_a_packed_log_reads_like_the_plain_one(form: str, ingest: Ingest, tmp_path: Path) -> None:
    if form == "gz":
        (tmp_path / "run.log.gz").write_bytes(gzip.compress(LOG.encode()))
    else:
        with tarfile.open(tmp_path / "run.log.tar", "w") as archive:
            member = tarfile.TarInfo("run.log")
            member.size = len(LOG)
            archive.addfile(member, io.BytesIO(LOG.encode()))
    done = ingest(f"run.log.{form}", "--set", "run.started=2026-03-02T09:00:00Z", "-o", "run.json")
    assert done.returncode == 0, done.stderr
    assert measured(tmp_path)["step_durations_seconds"] == [0.5] * 40


def test_standard_input_is_read(ingest: Ingest, tmp_path: Path) -> None:
    done = ingest("-", "-o", "run.json", given=LOG)
    assert done.returncode == 0, done.stderr
    assert measured(tmp_path)["step_durations_seconds"] == [0.5] * 40


def test_a_log_of_nobody_is_refused_and_says_what_helps(ingest: Ingest, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("hello\nworld\n")
    done = ingest("run.log", "-o", "run.json")
    assert done.returncode == 2
    assert done.stderr.startswith(b"receipts: no reader knows any of these files")
    assert not (tmp_path / "run.json").exists()
