"""The wall time of steps: what lies between them is in it, and evaluations, checkpoints and compiles are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs import read, recorder
from receipts.emit import recovery, run, steps
from receipts.emit.rank_join import RankJoin
from receipts.emit.recorder import Recorder

MILLISECOND = 1_000_000


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000 * MILLISECOND
        for module in (steps, run):
            monkeypatch.setattr(module, "perf_counter_ns", lambda: self.now)

    def spend(self, milliseconds: int) -> None:
        self.now += milliseconds * MILLISECOND


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def step(rec: Recorder, clock: Clock, milliseconds: int) -> None:
    with rec.step(tokens=8):
        clock.spend(milliseconds)


def walls(path: str | Path) -> list[float]:
    found: list[float] = read(path)["measurement"]["step_wall_seconds"]
    return found


def test_what_lies_between_steps_is_wall_time_of_the_next(tmp_path: Path, clock: Clock) -> None:
    with recorder(tmp_path) as rec:
        for _ in range(3):
            step(rec, clock, 10)
            clock.spend(40)
    measured = read(rec.written)["measurement"]
    assert measured["step_durations_seconds"] == [0.01, 0.01, 0.01]
    assert measured["step_wall_seconds"] == [0.01, 0.05, 0.05]


@pytest.mark.parametrize("name", ["eval", "checkpoint", "compile"])
def test_a_span_between_steps_is_no_wall_time_of_a_step(tmp_path: Path, clock: Clock, name: str) -> None:
    with recorder(tmp_path) as rec:
        step(rec, clock, 10)
        clock.spend(5)
        with rec.span(name):
            clock.spend(900)
        clock.spend(5)
        step(rec, clock, 10)
    assert walls(rec.written) == [0.01, 0.02]


def test_waiting_for_data_between_steps_is_paid_for(tmp_path: Path, clock: Clock) -> None:
    with recorder(tmp_path) as rec:
        step(rec, clock, 10)
        with rec.span("data"):
            clock.spend(30)
        step(rec, clock, 10)
    assert walls(rec.written) == [0.01, 0.04]


def test_a_journal_tells_the_same_wall_time(tmp_path: Path, clock: Clock) -> None:
    with recorder(tmp_path, keep_journal=True) as rec:
        step(rec, clock, 10)
        with rec.span("eval"):
            clock.spend(900)
        clock.spend(5)
        step(rec, clock, 10)
    (journal,) = tmp_path.glob("*.journal")
    assert recovery.read_journal(str(journal)).words
    assert [wall / 1e9 for wall in recovery.recover(str(journal)).walls()] == walls(rec.written)


def part(durations: list[float], wall: list[float]) -> dict[str, Any]:
    return {"run": {"outcome": "ok"}, "measurement": {"step_durations_seconds": durations, "step_wall_seconds": wall}}


def test_ranks_share_one_wall() -> None:
    """The longest step of each is more than the wall where ranks are slow in turns."""
    join = RankJoin({0: part([1.0, 2.0], [1.0, 2.0]), 1: part([2.0, 1.0], [2.0, 1.0])})
    assert join.durations()[0] == [2.0, 2.0]
    assert join.walls() == [1.5, 1.5]


def test_ranks_of_which_one_kept_no_wall_time_have_none() -> None:
    assert RankJoin({0: part([1.0], [1.0]), 1: part([1.0], [])}).walls() == []
