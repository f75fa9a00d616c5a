"""A log that breaks off does not show how its launch ended."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from receipts.ingest.assemble import assemble
from receipts.ingest.evidence import read
from receipts.ingest.options import Options

LOG = "".join(
    f"[titan] 2026-03-02 09:00:{step:02d},000 - root - INFO - step: {step:2d}  loss: {9 - step / 10:.4f}  "
    f"memory: 31.50GiB(39.90%)  tps: 6,4{step:02d}  tflops: 323.97  mfu: 32.76%\n"
    for step in range(1, 60)
)


def _outcome(path: Path, **stated: str) -> tuple[object, list[str]]:
    result = assemble([read(path)], Options(settings={f"run.{key}": value for key, value in stated.items()}))
    return result.tree["run"].get("outcome"), [problem.at for problem in result.problems]


def test_a_whole_log_ends_well(tmp_path: Path) -> None:
    path = tmp_path / "run.log.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    assert _outcome(path) == ("ok", [])


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_log_has_no_outcome_unless_a_person_states_it(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log.gz"
    raw = bytearray(gzip.compress(LOG.encode()))
    if damage == "flipped":
        raw[-6] ^= 1  # of the checksum
    path.write_bytes(raw if damage == "flipped" else raw[:-40])
    assert _outcome(path) == (None, ["run.outcome"])
    assert _outcome(path, outcome="ok") == ("ok", [])
