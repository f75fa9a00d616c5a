"""The noise floor comes from launches that differ in nothing, and from nothing else."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import rule_cases
from receipts.metrics import Launch
from receipts.noise import noise_floor, with_floor
from receipts.receipt import Document, Parsed
from receipts.rule import Facts
from receipts.store import Store, open_store
from receipts.submit import submit


def launches(count: int, *, seed: int = 1234, seconds: float = 0.8, name: str = "one") -> list[Parsed]:
    tree = rule_cases.build({"set": {"numerics.seed": seed}, "steps": {"seconds": seconds}})
    tree["run"]["launch"] = name
    return rule_cases.group(tree, name, count)


def stored(path: Path, receipts: list[Parsed]) -> Store:
    store = open_store(str(path))
    outcomes = list(submit([Document(item.raw, item.source) for item in receipts], store, rule_cases.rulebook()))
    assert all(item.stored for item in outcomes), [str(item.error) for item in outcomes]
    return store


def test_the_floor_is_the_pooled_spread_of_equal_launches(tmp_path: Path) -> None:
    group = launches(4)
    lane = rule_cases.rulebook().lanes.of(group[0].receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", group) as store:
        floor = noise_floor(store, group[0], lane)
    logs = [math.log(Launch(item, lane).summary.median) for item in group]  # type: ignore[union-attr]  # all steady
    mean = sum(logs) / len(logs)
    expected = math.sqrt(sum((value - mean) ** 2 for value in logs) / (len(logs) - 1))
    assert floor.groups == 1
    assert floor.launches == 4
    assert floor.df == 3
    assert floor.sigma == pytest.approx(expected)
    assert floor.largest_spread == pytest.approx(max(logs) - min(logs))


def test_launches_an_axis_apart_are_no_repeats(tmp_path: Path) -> None:
    one, other = launches(1, seed=1, name="x"), launches(1, seed=2, seconds=0.4, name="y")
    lane = rule_cases.rulebook().lanes.of(one[0].receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", [*one, *other]) as store:
        floor = noise_floor(store, one[0], lane)
    assert floor.sigma is None
    assert floor.groups == 0
    assert with_floor(Facts(), floor).sigma is None


def test_another_shape_has_a_floor_of_its_own(tmp_path: Path) -> None:
    group = launches(3)
    tree = rule_cases.build({"set": {"batch.sequence_length": 512}, "drop": ["measurement.tokens_per_step"]})
    longer = rule_cases.parsed(tree)
    lane = rule_cases.rulebook().lanes.of(longer.receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", group) as store:
        assert noise_floor(store, longer, lane).sigma is None
        assert noise_floor(store, group[0], lane).sigma is not None
