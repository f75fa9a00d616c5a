"""Incidents reach somebody: notices of what opened, got worse and closed, and gauges of watched lines."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import rule_cases
from grid_store import keep
from line_store import line
from receipts.plugins.track.watch import Watched, close, gauges, watch
from receipts.store import Store, open_store

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store of eight launches, and of four that are 5 % slower."""
    opened = open_store(str(tmp_path / "store.sqlite"), create=True)
    keep(opened, list(line([1.0] * 8 + [1.05] * 4, codes=[1] * 8 + [2] * 4)))
    return opened


def watched(store: Store) -> Watched:
    """What a run of watch sees."""
    return watch(store, rule_cases.rulebook(), LONG_AGO)


def test_a_second_step_down_makes_the_incident_of_a_line_worse_and_each_is_closed(store: Store) -> None:
    (opened,) = watched(store).notices
    assert (opened.type, opened.data["open"]) == ("incident.opened", 1)
    assert opened.data["ratio"] == pytest.approx(1 / 1.05, rel=0.01)
    assert re.fullmatch(r"cpu-torch: tokens_per_second −4\.\d % from day 8 on; moved: code", opened.text)
    assert list(watched(store).notices) == []
    keep(store, list(line([1.15] * 5, codes=[3] * 5, start=12)))
    (worse,) = watched(store).notices
    assert (worse.type, worse.data["open"], worse.data["thread"]) == ("incident.worse", 2, opened.data["thread"])
    keep(store, list(line([1.0] * 5, codes=[4] * 5, start=17)))
    back = list(watched(store).notices)
    assert [(item.type, item.data["open"]) for item in back] == [("incident.closed", 1), ("incident.closed", 0)]
    assert "the level is back" in back[0].text


def test_an_incident_that_somebody_closes_is_told_with_the_reason(store: Store) -> None:
    (event,) = watched(store).opened
    _, notice = close(store, event.incident, "the new data mix")
    assert (notice.type, notice.data["open"], notice.data["reason"]) == ("incident.closed", 0, "the new data mix")
    assert notice.text == "cpu-torch: the new data mix (tokens_per_second from day 8 on)"


def test_a_watched_line_has_its_level_its_interval_and_its_open_incidents(store: Store) -> None:
    recent = datetime.now(UTC) - timedelta(days=1)
    keep(store, list(line([1.05], codes=[2], start=12, run__started=recent.isoformat())))
    watched(store)
    text = list(gauges(store, rule_cases.rulebook()))
    values = {
        name: float(value)
        for item in text
        for name, value in re.findall(r'^receipts_line_(\w+)\{.*metric="tokens_per_second"\} (\S+)$', item)
    }
    assert values["low"] < values["level"] < values["high"]
    assert values["level"] == pytest.approx(9752, rel=0.01)
    assert values["open_incidents"] == 1
    assert all(item.startswith(("# ", "receipts_line_")) and "\n" not in item for item in text)
