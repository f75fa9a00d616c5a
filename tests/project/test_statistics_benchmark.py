"""The simulation that validates the statistics: the same every time, and able to tell a method that is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SMALL = {"pool": 30, "sessions": 30, "raw": 4, "cell": 10, "steps": (200,)}
TINY = {**SMALL, "pool": 6, "sessions": 6, "cell": 2}


@pytest.fixture(scope="module")
def benchmark(checkout: Path) -> Iterator[ModuleType]:
    pytest.importorskip("numpy")
    pytest.importorskip("scipy")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(checkout))
        import benchmarks.statistics

        yield benchmarks.statistics
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def simulated(benchmark: ModuleType) -> list[Any]:
    rows: list[Any] = benchmark.simulate(benchmark.Size(**SMALL))
    return rows


def test_the_simulation_is_the_same_every_time(benchmark: ModuleType, simulated: list[Any]) -> None:
    size = benchmark.Size(**TINY)
    assert benchmark.simulate(size) == benchmark.simulate(size)
    assert {row.order for row in simulated} == {"AB", "ABBA", "one"}
    assert all(0.0 <= row.excludes <= 1.0 for row in simulated)


def test_a_drift_is_told_from_its_order_and_taken_out_by_turns(simulated: list[Any]) -> None:
    rows = {(row.scenario, row.order, row.launches): row for row in simulated}
    behind, turns = (rows["host drift, four times", order, 5] for order in ("AB", "ABBA"))
    assert behind.excludes < 0.2, "the drift that the launches show is in the interval"
    assert behind.said == 1.0
    assert turns.excludes < 0.2
    assert turns.said == 0.0
    raw = rows["launch spread 0.3 %", "ABBA", 5]
    assert raw.mann_whitney is not None
    assert raw.mann_whitney >= 0.5, "raw steps call launches different that are not"


def test_bars_speak_of_the_worst_cell(benchmark: ModuleType, simulated: list[Any]) -> None:
    worst = max(abs(row.excludes - 0.05) for row in simulated if row.order == "ABBA")
    assert benchmark.bars(simulated)[0].worst == worst


def test_every_bar_is_measured(benchmark: ModuleType) -> None:
    _, found = benchmark.every_bar(benchmark.Size(**{**TINY, "cell": 10}))
    assert len({item.name for item in found}) == len(found) == 19
