"""Predicted memory: what a program expected a chip to need, apart from what was measured."""

from __future__ import annotations

from pathlib import Path

from ingest_evidence import at, file, ingested, reading


def test_a_prediction_is_stated_by_surface_and_is_no_row_of_a_chip(tmp_path: Path) -> None:
    made = reading()
    made.predicted.update({"weight and optimizer": 7_000_000, "total": 9_000_000})
    found = ingested(file(tmp_path, made))
    assert at(found, "memory.predicted") == [
        {"surface": "weight and optimizer", "bytes": 7_000_000},
        {"surface": "total", "bytes": 9_000_000},
    ]
    assert at(found, "memory.chips") is None
    assert at(found, "memory.aggregate") is None


def test_the_first_prediction_stands_and_another_contradicts_it(tmp_path: Path) -> None:
    first, second = reading(), reading("nemo")
    first.predicted["total"] = 10
    second.predicted["total"] = 20
    found = ingested(file(tmp_path, first, name="a.log"), file(tmp_path, second, name="b.log"))
    assert at(found, "memory.predicted") == [{"surface": "total", "bytes": 10}]
    (item,) = found.contradictions
    assert (item.path, item.stands) == ("memory.predicted", "10, as a.log says")


def test_nothing_predicted_states_nothing(tmp_path: Path) -> None:
    assert at(ingested(file(tmp_path, reading())), "memory.predicted") is None
