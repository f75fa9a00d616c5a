"""``receipts neighbours``."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from command_line import HOSTILE, Shell

pytestmark = pytest.mark.slow


def steps(seed: str, factor: float = 1.0) -> list[float]:
    """Step times of a launch of its own, as many times as long."""
    draw = random.Random(seed)
    return [round(draw.gauss(0.8 * factor, 0.002 * factor), 6) for _ in range(300)]


def put(shell: Shell, name: str, factor: float = 1.0, **leaves: Any) -> str:
    """A stored launch whose numbers follow from its steps."""
    stated = rule_cases.base("cpu")["measurement"]
    measured = {key: value for key, value in stated.items() if key not in ("stated", "step_durations_seconds")}
    return shell.store(name, measurement={**measured, "step_durations_seconds": steps(name, factor)}, **leaves)


def _fill(shell: Shell) -> None:
    for number in range(3):
        put(shell, f"base-{number}", 0.8)
        put(shell, f"fast-{number}", 0.7, numerics__buffer_dtype="s7")
        put(shell, f"slow-{number}", 0.9, numerics__buffer_dtype="s8")
    put(shell, "oom", numerics__learning_rate=0.5, run__outcome="oom")
    put(shell, "far", numerics__buffer_dtype="s9", data__dataset="another")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the filled store is kept for the next test."""
    return tmp_path_factory.mktemp("neighbours")


@pytest.fixture
def lab(shell: Shell, kept: Path) -> Shell:
    """A configuration, faster and slower ones one axis away, one that failed, and one two axes away."""
    return shell.filled(kept, _fill)


def test_the_best_of_an_axis_stands_first_and_what_is_refused_apart_with_its_reason(lab: Shell) -> None:
    said = lab("neighbours", "base-0")
    assert said.code == 0
    assert said.out.index("fp32 → s7") < said.out.index("fp32 → s8") < said.out.index("Rejected")
    refused = said.out[said.out.index("Rejected") :]
    assert "numerics.learning_rate" in refused
    assert "C105" in refused
    assert "far" not in said.out


def test_an_answer_is_the_one_that_compare_gives(lab: Shell) -> None:
    data = lab("neighbours", "base-0", "--json").json
    assert [item["axis"] for item in data["neighbours"]] == ["numerics.buffer_dtype"] * 2
    # By its id: a label would mean the launches that carry it, and `base-0` is the first of several that are numbered.
    own = lab("show", "base-0", "--json").json["id"]
    for item in (*data["neighbours"], *data["refused"]):
        verdict = lab("compare", own, item["receipt"], "--json").json
        for key in ("status", "comparable", "path", "effect"):
            assert item[key] == verdict[key], key
        assert item["launches"] == verdict["b"]
        headline = next(one for one in verdict["results"] if one["metric"] == data["metric"])
        assert (item["low"], item["high"]) == (headline["effect"]["low"], headline["effect"]["high"])
    fast, slow = data["neighbours"]
    assert (fast["effect"], slow["effect"]) == ("faster", "slower")
    assert fast["members"] == [{"path": "numerics.buffer_dtype", "from": "fp32", "to": "s7"}]
    assert len(fast["launches"]) == 3, "labels that number the launches of one name are one"


def test_a_metric_turns_the_order(lab: Shell) -> None:
    ordered = lab("neighbours", "base-0", "--metric", "step_seconds", "--json").json["neighbours"]
    assert [item["members"][0]["to"] for item in ordered] == ["s7", "s8"]
    assert ordered[0]["ratio"] < 1 < ordered[1]["ratio"]
    assert lab("neighbours", "base-0", "--metric", "nothing").code == 2


@pytest.mark.parametrize("name", ["numerics.buffer_dtype", "buffer_dtype"])
def test_one_axis_may_be_asked_for_by_its_name_or_its_end(lab: Shell, name: str) -> None:
    data = lab("neighbours", "base-0", "--axis", name, "--json").json
    assert {item["axis"] for item in data["neighbours"]} == {"numerics.buffer_dtype"}
    assert data["refused"] == []
    assert lab("neighbours", "base-0", "--axis", "batch.micro_batch").code == 3


def test_an_axis_that_does_not_exist_is_told_with_the_nearest(lab: Shell) -> None:
    said = lab("neighbours", "base-0", "--axis", "parallelism.tensr")
    assert said.code == 2
    assert "parallelism.tensor" in said.err
    assert lab("neighbours", "base-0", "--axis", "hidden", "--json").json["neighbours"] == []


def test_a_file_that_is_not_stored_has_neighbours_too(lab: Shell) -> None:
    file = lab.write("new", numerics__buffer_dtype="s10")
    said = lab("neighbours", file, "--json")
    assert said.code == 0
    assert {item["axis"] for item in said.json["neighbours"]} == {"numerics.buffer_dtype"}
    assert "new" not in lab("list").out


def test_the_newest_of_an_axis_are_shown_up_to_the_limit_and_that_there_are_more_is_said(lab: Shell) -> None:
    data = lab("neighbours", "base-0", "--limit", "1", "--json").json
    assert len(data["neighbours"]) == 1
    assert "numerics.buffer_dtype" in data["more"]
    assert "--limit" in lab("neighbours", "base-0", "--limit", "1").out


def test_without_a_neighbour_it_says_so_and_what_to_do(lab: Shell) -> None:
    said = lab("neighbours", "far")
    assert said.code == 3
    assert "receipts bridge" in said.out


def test_axes_that_nothing_stands_for_are_named(shell: Shell) -> None:
    bare = shell.store("bare", run__context=None, numerics__learning_rate=None, data__dataset=None)
    shell.store("other", run__context=None, numerics__learning_rate=None, data__dataset=None, batch__micro_batch=4)
    said = shell("neighbours", bare)
    assert said.code == 3
    assert "data.dataset, numerics.learning_rate" in " ".join(said.out.split())
    assert shell("neighbours", bare, "--json").json["unstated"] == ["data.dataset", "numerics.learning_rate"]


def test_a_store_that_is_not_indexed_is_said_to_be_and_is_after_reindexing(lab: Shell) -> None:
    before = lab("neighbours", "base-0", "--json").json
    with closing(sqlite3.connect(lab.folder / "store.sqlite")) as connection, connection:
        for table in ("placements", "axes", "configurations", "axis_values"):
            connection.execute(f"DELETE FROM {table}")
    said = lab("neighbours", "base-0")
    assert said.code == 3
    assert "receipts db reindex" in said.err
    checked = lab("db", "check")
    assert checked.code == 1
    assert "does not hold 11 receipts" in " ".join(checked.out.split())
    made = lab("db", "reindex", "--json")
    assert (made.code, made.json["placed"]) == (0, 11)
    assert lab("db", "check").code == 0
    assert lab("neighbours", "base-0", "--json").json == before


def test_it_fits_a_narrow_terminal_and_escapes_what_a_receipt_says(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(shell, "one", flags={"complete": True})
    put(shell, "two", flags={"complete": True, "X" + HOSTILE: HOSTILE})
    monkeypatch.setenv("COLUMNS", "60")
    for words in (("neighbours", "one"), ("neighbours", "one", "--json")):
        said = shell(*words)
        assert said.code == 0
        assert not {"\x1b", "\u202e", "\x07", "\x9b"} & set(said.out), words
    assert json.loads(shell("neighbours", "one", "--json").out)["neighbours"][0]["axis"] == "flags.X" + HOSTILE


def test_of_a_candidate_with_more_axes_every_axis_is_told(shell: Shell) -> None:
    stages = {"parallelism__virtual_pipeline": 2, "parallelism__pipeline": 2}
    put(shell, "flat", parallelism__pipeline=1, parallelism__virtual_pipeline=None)
    put(shell, "staged", **stages)
    said = shell("neighbours", "flat")
    assert said.code == 3
    assert "C101 one changed axis; 2 changed: parallelism.pipeline, parallelism.virtual_pipeline" in " ".join(
        said.out.split()
    )
