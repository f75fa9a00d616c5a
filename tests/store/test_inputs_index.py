"""Inputs in the store: they tell configurations apart, lead to neighbors, and join what came before them by leaves."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from receipts.axes import catalogue
from receipts.axes.configuration import configuration
from receipts.questions.commands import recipe
from receipts.questions.neighbours import neighbours
from receipts.questions.sides import groups
from receipts.receipt import Parsed
from receipts.store import Filters, Store, condition, open_store
from receipts.store.address import address
from receipts.store.index import reindex
from store_receipts import BASE, RULEBOOK, judged, parsed

LANE = RULEBOOK.lanes.of("cpu-torch")
CONTEXT = "preset"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'r.db'}") as opened:
        yield opened


def launch(options: Mapping[str, str] | None = None, **leaves: Any) -> Parsed:
    """A launch of ``t.py`` with steps of its own; without options one that came before inputs were recorded."""
    draw = random.Random(f"{sorted((options or {}).items())} {random.random()}")
    steps = [round(draw.gauss(0.8, 0.004), 6) for _ in range(60)]
    measured = {**json.loads(BASE.read_bytes())["measurement"], "step_durations_seconds": steps}
    section: dict[str, Any] = {"run__context": None, "numerics__learning_rate": None, "model__heads": None}
    if options is not None:
        section["inputs"] = {"program": "t.py", "capture": "whole", "options": dict(options), "defaults": {"lr": "0.1"}}
        section["schema_version"] = "1.1"
    return parsed(**{"measurement": measured, **section, **leaves})


def put(store: Store, *launches: Parsed) -> None:
    for one in launches:
        store.submit(*judged(one))


def test_launches_with_other_options_are_two_configurations() -> None:
    one, same = launch({"heads": "8"}), launch({"heads": "8.0", "lr": "1e-1", "seed": "3"})
    digests = [configuration(item, LANE).whole for item in (one, same, launch({"heads": "2"}))]
    assert digests[0] == digests[1] != digests[2]
    assert not configuration(one, LANE).own


def test_an_option_that_a_stated_leaf_says_adds_no_part() -> None:
    one = launch({"lr": "1e-2"}, numerics__learning_rate=0.01)
    assert "inputs.lr" not in configuration(one, LANE).parts
    liar = launch({"lr": "1e-2"}, numerics__learning_rate=0.2)
    assert "inputs.lr" in configuration(liar, LANE).parts


def test_launches_of_other_options_are_no_repeats(store: Store) -> None:
    flash, math = [launch({"attn": "flash"}) for _ in range(2)], [launch({"attn": "math"}) for _ in range(2)]
    alike = groups([*flash, *math], LANE)
    assert [{item.id for item in group} for group in alike] == [{item.id for item in side} for side in (flash, math)]


def test_launches_of_commands_with_other_options_are_no_repeats() -> None:
    def typed(heads: int) -> list[Parsed]:
        command = f"python t.py --heads {heads}"
        return [launch(run__context=CONTEXT, run__command=f"{command} --out {n}.json") for n in "ab"]

    assert [len(group) for group in groups([*typed(8), *typed(2)], LANE)] == [2, 2]


@pytest.mark.parametrize("other", [{"attn": "flash", "x": "1"}, {"x": "1"}], ids=["another value", "not given"])
def test_a_launch_one_option_away_is_a_neighbor_though_a_leaf_moved(store: Store, other: dict[str, str]) -> None:
    seen = "path__witnessed__attention"
    a = launch({"attn": "math", "x": "1"}, **{seen: "sdpa_math"})
    b = launch(other, **{seen: "sdpa_flash"})
    far = launch({**other, "x": "2"}, **{seen: "sdpa_flash"})
    put(store, a, b, far)
    for one, theirs in ((a, b), (b, a)):
        near = neighbours(store, one, RULEBOOK)
        beside = {item.entry.id: item.axis for item in (*near.compared, *near.refused)}
        assert beside[theirs.id] == "path.attention"
    assert far.id not in {item.entry.id for item in neighbours(store, a, RULEBOOK).compared}


def test_an_option_is_asked_for_by_its_name(store: Store) -> None:
    one, other, default = launch({"heads": "8", "lr": "1e-2"}), launch({"heads": "2"}), launch({"heads": "4"})
    put(store, one, other, default)

    def listed(text: str) -> set[str]:
        return {item.id for item in store.find(Filters((condition(text),)))}

    assert listed("inputs.lr=0.01") == {one.id}
    assert listed("inputs.heads<=4") == {other.id, default.id}
    assert listed("inputs.lr=0.1") == {other.id, default.id}  # as the source declares it
    assert listed("inputs.program=t.py") == {one.id, other.id, default.id}


def test_a_store_from_before_inputs_were_parts_is_indexed_anew(tmp_path: Path) -> None:
    url = tmp_path / "r.db"
    one, other = launch({"heads": "8"}), launch({"heads": "2"})
    with open_store(f"sqlite:///{url}") as store:
        put(store, one, other)
    with sqlite3.connect(url) as connection:  # as the version before it wrote the index
        connection.execute("update configurations set catalogue = catalogue - 1")
    with open_store(f"sqlite:///{url}") as store:
        assert not store.query.holds_lane(configuration(one, LANE))
        reindex(address(f"sqlite:///{url}"), RULEBOOK.lanes)
        assert store.query.holds_lane(configuration(one, LANE))
        near = store.query.neighbours(one, configuration(one, LANE), None, 20)
        assert [item.axis for item in near] == ["inputs.heads"]
    assert catalogue.CATALOGUE_VERSION >= 8


def test_a_recipe_writes_the_inputs_of_a_launch() -> None:
    one = launch({"#0": "c.yaml", "lr": "1e-2", "name": "a b"}, run__command=None)
    section = one.receipt.inputs
    assert section is not None
    tree = json.loads(one.raw)
    file = {"option": "#0", "name": "c.yaml", "sha256": "a" * 64}
    tree["inputs"] |= {"environment": {"NLAYERS": "2"}, "files": [file]}
    told = recipe(parsed(inputs=tree["inputs"], schema_version="1.1", run__command=None)).script()
    assert "python t.py c.yaml --lr=1e-2 '--name=a b'" in told
    assert "export NLAYERS=2" in told
    assert f"c.yaml with SHA-256 {'a' * 64}" in told
