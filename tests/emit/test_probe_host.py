"""The machine and the process: system, processor, memory, and the limits of its control group."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probe_stage import Stage
from receipts.emit.probes import host, process


def test_the_system_is_stated_with_its_kernel() -> None:
    stage = Stage("host")
    host.at_start(stage.stated)
    assert os.uname().release in stage.get("platform.os")
    assert "processors usable" in stage.notes


def test_resident_memory_is_at_most_the_machines() -> None:
    now, peak = process.resident_bytes()
    whole = host.memory_bytes()
    assert now is not None
    assert peak is not None
    assert whole is not None
    assert 0 < now <= peak < whole


@pytest.mark.parametrize(("text", "limit"), [("1073741824\n", 2**30), ("max\n", None), ("9223372036854771712\n", None)])
def test_the_limit_of_a_control_group_counts_where_there_is_one(text: str, limit: int | None, tmp_path: Path) -> None:
    for place in process._places("self", str(tmp_path)):
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).write_text(text, encoding="ascii")
    assert process.limit_bytes("self", str(tmp_path)) == limit


def test_no_control_group_and_no_such_process_say_nothing(tmp_path: Path) -> None:
    assert process.limit_bytes("self", str(tmp_path)) is None
    assert process.limit_bytes("0", str(tmp_path)) is None
    assert process.resident_bytes("0") == (None, None)


def test_kills_beside_the_run_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage("process")
    monkeypatch.setattr("receipts.emit.termination.more_kills", lambda before: 2)
    process.at_start(stage.stated)
    process.at_end(stage.stated)
    assert "struck 2 times" in stage.notes
    assert "bytes of memory were resident" in stage.notes
