"""Histories of golden values: one receipt for each commit that changed them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from grid_store import keep
from receipts.base.errors import UsageError
from receipts.plugins.exchange.golden_import import import_history
from receipts.plugins.track.line import history_of
from receipts.receipt import Document, parse
from receipts.store import open_store
from store_receipts import RULEBOOK

TEST = "gpt3_tp2__golden_values_dev_dgx_h100.jsonl"


def line(commit: str, second: float, **entry: Any) -> str:
    times = {"1": 9.5, **{str(step): second for step in range(2, 21)}, "21": "nan"}
    block = {"start_step": 1, "end_step": 21, "step_interval": 1, "values": times}
    whole = {"commit": commit, "date": "2026-01-02T03:04:05+01:00", "iteration-time": block}
    return json.dumps({**whole, **entry}) + "\n"


def history(folder: Path, *lines: str) -> Path:
    file = folder / TEST
    file.write_text("".join(lines))
    return file


def test_each_change_of_the_values_is_a_receipt(tmp_path: Path) -> None:
    rows = (line("aaa", 0.125), line("bbb", 0.125), line("ccc", 0.25))
    entries = list(import_history([history(tmp_path, *rows)]))
    assert [(item.raw is not None, item.repeated) for item in entries] == [(True, False), (False, True), (True, False)]
    stated = parse(Document(entries[2].raw or b"", "x")).stated
    assert (stated["code.commit"], stated["run.started"]) == ("ccc", "2026-01-02T02:04:05Z")
    assert "H100" in stated["hardware.accelerator"]
    assert list(stated["measurement.step_durations_seconds"])[1:20] == [0.25] * 19
    assert hashlib.sha256(rows[2].encode()).hexdigest() in (entries[2].raw or b"").decode()


@pytest.mark.parametrize(
    ("name", "accelerator"),
    [
        ("dev_dgxh100_eos", "NVIDIA H100"),
        ("lts_dgxa100_dracooci-ord", "NVIDIA A100"),
        ("dev_dgx_gb300", "NVIDIA GB300"),
        ("0.9.0", None),
    ],
)
def test_a_files_name_says_what_it_ran_on(tmp_path: Path, name: str, accelerator: str | None) -> None:
    """The test's own name may hold the accelerator that it was written for."""
    file = tmp_path / f"gpt3_dgx_a100_1N8G__golden_values_{name}.jsonl"
    file.write_text(line("aaa", 0.125))
    (entry,) = import_history([file])
    assert parse(Document(entry.raw or b"", "x")).stated.get("hardware.accelerator") == accelerator


def test_a_step_lies_on_the_commit_that_changed_the_values(tmp_path: Path) -> None:
    seconds = [0.500, 0.501, 0.499, 0.500, 0.550, 0.551, 0.549]
    dates = [f"2026-01-{day:02d}T03:04:05+01:00" for day in range(2, 9)]
    rows = [line(f"c{at}", second, date=dates[at]) for at, second in enumerate(seconds)]
    launches = [parse(Document(item.raw or b"", "x")) for item in import_history([history(tmp_path, *rows)])]
    with open_store(str(tmp_path / "store.sqlite"), create=True) as store:
        keep(store, launches)
        seen = history_of(store, launches[0], RULEBOOK.lanes.of("unlisted"), "step_seconds")
    assert len(seen.points) == 7
    assert [(item.first.name, item.is_incident) for item in seen.changes] == [("gpt3_tp2 c4", True)]


@pytest.mark.parametrize(
    "row", ["no json\n", "[1]\n", '{"commit": "a"}\n', line("a", 1.0, date=7), line("a", 1.0, **{"iteration-time": {}})]
)
def test_a_line_that_is_no_commit_is_refused_by_its_place(tmp_path: Path, row: str) -> None:
    first, second = import_history([history(tmp_path, line("aaa", 0.5), row)])
    assert first.raw is not None
    assert (second.raw, second.where) == (None, f"{TEST}:2")
    assert second.problems


def test_a_missing_file_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        list(import_history([tmp_path / "none.jsonl"]))
