"""What a document costs is bounded by its bytes, however many mistakes it has and whatever counts it states."""

from __future__ import annotations

import json
from typing import Any

import pytest

from receipts.base.errors import InputError
from receipts.metrics.chips import MAX_NAMED, Account
from receipts.receipt.load import MAX_KEYS, MAX_OBJECTS, MAX_VALUES, Document
from receipts.receipt.measurement import ChipMemory, Memory
from receipts.receipt.parse import LARGE, parse

pytestmark = pytest.mark.slow


def _problems(tree: Any) -> list[str]:
    with pytest.raises(InputError) as refused:
        parse(Document(json.dumps(tree, separators=(",", ":")).encode(), "run.json"))
    return [f"{problem.at}: {problem.what}" for problem in refused.value.problems]


def test_an_object_of_very_many_keys_is_one_problem() -> None:
    assert _problems({"model": {f"key{i}": i for i in range(MAX_KEYS + 1)}}) == [
        "model: an object has 4,097 keys, and none may have more than 4,096"
    ]


@pytest.mark.parametrize(
    ("tree", "what"),
    [({"memory": {"chips": [{}] * (MAX_OBJECTS + 1)}}, "objects"), ({"run": [1] * (MAX_VALUES + 2)}, "values")],
    ids=["objects", "values"],
)
def test_a_document_of_very_many_parts_is_refused_before_it_is_read(tree: Any, what: str) -> None:
    (problem,) = _problems(tree)
    assert f"{what}, and none may have more than" in problem


def test_unknown_keys_beyond_those_reported_are_counted_alone() -> None:
    problems = _problems({"schema_version": "1.0", **{f"key{i}": i for i in range(4000)}})
    assert len(problems) == 51
    assert "more problems" in problems[-1]


def test_a_list_of_a_large_document_is_read_as_far_as_its_first_bad_entry() -> None:
    rows = [{"chip": "x" * 40, "phase": 1}] * (LARGE // 40)
    of_rows = [
        problem
        for problem in _problems({"schema_version": "1.0", "memory": {"chips": rows}})
        if problem.startswith("memory.chips")
    ]
    assert {problem.partition(".chip:")[0].partition(".phase:")[0] for problem in of_rows} == {"memory.chips[0]"}


def test_every_bad_row_of_a_small_document_is_reported() -> None:
    rows = [{"chip": "x", "phase": "steady"} for _ in range(5)]
    problems = _problems({"schema_version": "1.0", "memory": {"chips": rows}})
    assert [problem for problem in problems if problem.startswith("memory.chips[4].chip")]


def test_a_billion_stated_chips_are_counted_and_not_named() -> None:
    row = ChipMemory(chip=0, phase="steady", peak_bytes=1)
    (phase,) = Account(Memory(chips=(row,)), 10**9).phases
    assert len(phase.missing) == MAX_NAMED - 1
    assert len(phase.missing) + phase.unnamed == 10**9 - 1
