"""The history of a line in a store: where its level changed, what moved there, and the incidents that watch opens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grid_store import keep
from line_store import line
from receipts.plugins.track.line import History, history_of
from receipts.plugins.track.watch import close, watch
from receipts.receipt import Parsed
from receipts.store import Store, open_store
from store_receipts import RULEBOOK

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "store.sqlite"), create=True) as opened:
        yield opened


def seen(store: Store, launches: list[Parsed], metric: str = "step_seconds") -> History:
    keep(store, launches)
    lane = RULEBOOK.lanes.of(launches[0].receipt.run.lane)
    return history_of(store, launches[0], lane, metric)


def test_a_step_is_placed_at_its_launch_with_the_axis_that_moved(store: Store) -> None:
    history = seen(store, list(line([1.0] * 6 + [1.04] * 5, codes=[1] * 6 + [2] * 5)))
    assert len(history.points) == 11
    (change,) = history.changes
    assert (change.kind, change.change.at, change.moved, change.first.name) == ("step", 6, ("code",), "day 6")
    assert change.change.low < 1.04 < change.change.high
    assert change.is_incident
    assert all(point.low < point.value < point.high for point in history.points if point.low and point.high)


def test_a_better_level_and_a_small_one_are_no_incidents(store: Store) -> None:
    better = seen(store, list(line([1.0] * 6 + [0.95] * 5)))
    assert [item.is_incident for item in better.changes] == [False]
    other = dict.fromkeys(["run__context", "run__label"], "other")
    small = seen(store, list(line([1.0] * 6 + [1.005] * 6, seed=90, batch__micro_batch=2, **other)))
    assert [(item.kind, item.is_incident) for item in small.changes] == [("step", False)]


def test_a_rate_falls_where_step_time_rises(store: Store) -> None:
    history = seen(store, list(line([1.0] * 6 + [1.04] * 5)), "tokens_per_second")
    assert [item.is_incident for item in history.changes] == [True]


def test_a_slow_change_is_a_drift_and_no_incident(store: Store) -> None:
    (change,) = seen(store, list(line([1.0 + 0.004 * day for day in range(12)]))).changes
    assert (change.kind, change.is_incident) == ("drift", False)


def test_another_way_to_measure_is_never_a_regression(store: Store) -> None:
    timers = ["perf_counter"] * 6 + ["cuda_event"] * 5
    (change,) = seen(store, list(line([1.0] * 6 + [1.04] * 5, measurement__timer=timers))).changes
    assert (change.kind, change.regime, change.is_incident) == ("regime", ("measurement.timer",), False)


def test_a_slow_host_among_others_is_taken_out(store: Store) -> None:
    hosts = ["a", "b"] * 7
    levels = [(1.03 if host == "b" else 1.0) * (1.02 if day >= 8 else 1.0) for day, host in enumerate(hosts)]
    history = seen(store, list(line(levels, run__host=hosts)))
    assert history.hosts["b"] / history.hosts["a"] == pytest.approx(1.03, abs=0.003)
    assert [item.change.at for item in history.changes] == [8]


def test_a_step_with_the_host_alone_is_the_hosts(store: Store) -> None:
    (change,) = seen(store, list(line([1.0] * 6 + [1.04] * 5, run__host=["a"] * 6 + ["b"] * 5))).changes
    assert (change.kind, change.moved, change.is_incident) == ("host", ("host",), False)


def test_the_last_launch_alone_is_not_yet_a_change(store: Store) -> None:
    launches = list(line([1.0] * 8 + [1.05] * 2))
    assert seen(store, launches[:9]).changes == ()
    keep(store, launches[9:])
    history = history_of(store, launches[0], RULEBOOK.lanes.of("cpu-torch"), "step_seconds")
    assert [item.change.at for item in history.changes] == [8]


def test_watch_opens_one_incident_however_often_it_looks_and_closes_it_when_the_level_is_back(store: Store) -> None:
    launches = list(line([1.0] * 8 + [1.05] * 6 + [1.0] * 6, codes=[1] * 8 + [2] * 6 + [3] * 6))
    keep(store, launches[:11])
    (opened,) = watch(store, RULEBOOK, LONG_AGO, metric="step_seconds").opened
    assert opened.body["moved"] == ["code"]
    assert opened.body["ratio"] == pytest.approx(1.05, abs=0.01)
    keep(store, launches[11:14])
    again = watch(store, RULEBOOK, LONG_AGO, metric="step_seconds")
    assert (again.opened, [item.id for item in again.still_open]) == ((), [opened.incident])
    keep(store, launches[14:])
    assert [item.incident for item in watch(store, RULEBOOK, LONG_AGO, metric="step_seconds").closed] == [
        opened.incident
    ]
    assert watch(store, RULEBOOK, LONG_AGO, metric="step_seconds").opened == ()
    (incident,) = store.published.incidents()
    assert incident.closed is not None
    assert "back" in (incident.closed_why or "")


def test_a_closed_incident_is_not_opened_again(store: Store) -> None:
    keep(store, list(line([1.0] * 8 + [1.05] * 6)))
    (opened,) = watch(store, RULEBOOK, LONG_AGO, metric="step_seconds").opened
    close(store, opened.incident[:6], "a known change of the data")
    assert watch(store, RULEBOOK, LONG_AGO, metric="step_seconds").opened == ()


def test_watch_looks_at_lines_with_new_launches_alone(store: Store) -> None:
    keep(store, list(line([1.0] * 8 + [1.05] * 6)))
    assert watch(store, RULEBOOK, datetime(2200, 1, 1, tzinfo=UTC), metric="step_seconds").lines == 0
