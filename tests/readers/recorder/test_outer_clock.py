"""The outer clock's evidence: the job's rate by the launcher's clocks, and what convicts nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from receipts.ingest.evidence import read
from receipts.readers.recorder.outer_clock import OuterClockReader

SECOND = 1_000_000_000
CLOCKS = ["CLOCK_BOOTTIME", "CLOCK_MONOTONIC_RAW", "CLOCK_MONOTONIC"]
Clock = Callable[[int], int]


def same(moment: int) -> int:
    """A clock that runs as the others do."""
    return moment


def evidence(
    folder: Path, job: Clock = same, boot: Clock = same, raw: Clock = same, edges: int = 40, every: float = 0.25
) -> dict[str, Any]:
    """What is stated of a file whose edges are that many seconds apart, each seen within two milliseconds."""
    rows = []
    for step in range(1, edges + 1):
        at = int(step * every * SECOND)
        after, before = at - SECOND // 1000, at + SECOND // 1000
        pairs = [[clock(after), clock(before)] for clock in (boot, raw, same)]
        rows.append([step, job(at), *pairs])
    tree = {"receipts_outer_clock": 1, "clocks": CLOCKS, "process": 7, "steps": edges, "edges": rows}
    path = folder / "clock.json"
    path.write_text(json.dumps({**tree, "cpu_seconds": 3.25}))
    (reading,) = read(path, path.name).readings
    assert reading.source == OuterClockReader.source
    return {name.removeprefix("measurement.outer_"): item.value for name, item in reading.stated.items()}


def test_an_honest_clock_runs_at_the_launchers_rate(tmp_path: Path) -> None:
    assert evidence(tmp_path) == {"clock_ratio": 1.0, "seconds_per_step": 0.25, "cpu_seconds": 3.25}


@pytest.mark.parametrize("rate", [0.97, 0.5, 1.03])
def test_a_clock_that_was_multiplied_shows_its_rate(tmp_path: Path, rate: float) -> None:
    shown = evidence(tmp_path, job=lambda moment: int(moment * rate))
    assert shown["clock_ratio"] == pytest.approx(rate, abs=1e-4)
    assert shown["seconds_per_step"] == pytest.approx(0.25, rel=1e-3), "by the launcher's clock"


def test_suspension_and_slewing_convict_nobody(tmp_path: Path) -> None:
    hour = 3600 * SECOND
    shown = evidence(
        tmp_path,
        boot=lambda moment: moment + (hour if moment > 5 * SECOND else 0),
        raw=lambda moment: int(moment * 1.08),
    )
    assert shown["clock_ratio"] == 1.0


def test_a_job_that_was_stopped_before_it_wrote_an_edge_convicts_nobody(tmp_path: Path) -> None:
    shown = evidence(tmp_path, job=lambda moment: moment - (2 * SECOND if moment == 10 * SECOND else 0))
    assert shown["clock_ratio"] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(("edges", "every"), [(7, 10.0), (40, 0.02)])
def test_too_few_edges_and_too_short_a_run_state_no_rate(tmp_path: Path, edges: int, every: float) -> None:
    assert evidence(tmp_path, edges=edges, every=every) == {"cpu_seconds": 3.25}


def test_a_file_that_somebody_wrote_by_hand_states_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "clock.json"
    rows = [1, [], [1, 2], [1, 2, 3], [1, 2, [3]], [True, 2, [3, 4]], [1, 1 << 80, [4, 3]], ["1", 2, [3, 4]]]
    path.write_text(json.dumps({"receipts_outer_clock": 1, "clocks": [None, {}], "edges": rows * 5, "cpu_seconds": -1}))
    (reading,) = read(path, path.name).readings
    assert reading.stated == {}
