"""Where a launch stands in its lane's envelope, and what is said where nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest

import rule_cases
from receipts.axes.shape import ShapeKey, shape_key
from receipts.judging.facts import COUNTED, Facts, ReachedShape, ceiling_grade, shape_standing
from receipts.store.query.facts import MAX_COUNTED

NEVER = "unknown: no shape of this lane was sustained by two launches of this model and layout"
CEILING = ReachedShape(chips=8, sequence_length=4096, micro_batch=4, depth=52, launches=2)


def _place(facts: Facts | None, drop: tuple[str, ...] = (), **changes: Any) -> str:
    tree = rule_cases.base("megatron")
    for path in drop:
        rule_cases.take(tree, path)
    for path, value in changes.items():
        rule_cases.put(tree, path.replace("__", "."), value)
    found = shape_standing(facts, rule_cases.parsed(tree))
    return str(found) if found.word == "unknown" else found.word


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, "at"),
        ({"batch__sequence_length": 2048}, "inside"),
        ({"batch__micro_batch": 2}, "inside"),
        ({"hardware__chips": 16}, "inside"),
        ({"hardware__chips": 4}, "beyond"),
        ({"model__depth": 64}, "beyond"),
        ({"batch__sequence_length": 2048, "batch__micro_batch": 8}, "beyond"),
    ],
)
def test_a_shape_is_held_by_one_at_least_as_large_on_no_more_chips(changes: dict[str, Any], place: str) -> None:
    assert _place(Facts(shapes=(CEILING,)), **changes) == place


def test_a_shape_below_a_larger_ceiling_is_inside_though_another_ceiling_equals_it() -> None:
    larger = ReachedShape(chips=8, sequence_length=8192, micro_batch=4, depth=52, launches=3)
    assert _place(Facts(shapes=(CEILING, larger))) == "inside"


def test_what_one_launch_reached_is_no_ceiling() -> None:
    once = ReachedShape(chips=8, sequence_length=4096, micro_batch=4, depth=52, launches=1)
    assert _place(Facts(shapes=(once,))) == NEVER


def test_without_facts_or_without_a_shape_the_place_is_unknown_and_says_why() -> None:
    assert _place(None) == "unknown: no store was asked"
    assert _place(Facts(shapes=(CEILING,)), ("model.depth",)) == "unknown: model.depth not stated"


@pytest.mark.parametrize(
    ("launches", "days", "hosts", "word"),
    [
        (1, 1, 1, "peak"),
        (2, 2, 2, "repeated"),
        (3, 1, 1, "repeated"),
        (3, None, None, "repeated"),
        (3, 2, 1, "validated"),
        (3, 1, 2, "validated"),
        (9, 2, 0, "validated"),
    ],
)
def test_a_ceiling_is_validated_by_three_launches_on_two_days_or_hosts(
    launches: int, days: int | None, hosts: int | None, word: str
) -> None:
    assert ceiling_grade(launches, days, hosts) == word


def _told(*shapes: ReachedShape, **leaves: Any) -> str:
    launch = rule_cases.parsed(rule_cases.base("megatron"))
    return str(shape_standing(Facts(shapes=shapes), launch, leaves))


def test_it_is_told_under_which_ceiling_and_how_well_that_is_sustained() -> None:
    assert _told(CEILING) == ("at a repeated ceiling, 4,096 tokens, micro batch 4, depth 52 on 8 chips: 2 launches")
    many = CEILING._replace(sequence_length=8192, launches=COUNTED, days=3, hosts=1)
    assert _told(CEILING, many).startswith("inside a validated ceiling, 8,192 tokens")
    assert _told(many).endswith("10 or more launches, 3 days, 1 host")


def test_beyond_it_the_nearest_ceiling_is_named() -> None:
    far = CEILING._replace(sequence_length=1024)
    assert _told(far, CEILING, **{"batch.sequence_length": 8192}) == (
        "beyond: the nearest repeated shape is 4,096 tokens, micro batch 4, depth 52 on 8 chips"
    )


def test_no_more_is_counted_than_the_store_counts() -> None:
    assert COUNTED == MAX_COUNTED


def test_a_target_is_held_by_what_any_layout_sustained_at_its_own_chips_in_whatever_micro_batches() -> None:
    launch = rule_cases.parsed(rule_cases.base("megatron"))
    geometry, layout = shape_key(launch)
    cut_otherwise = CEILING._replace(chips=64, sequence_length=8192, micro_batch=1, launches=14)
    other = cut_otherwise._replace(key=ShapeKey(geometry, layout + 1))
    target = {"hardware.chips": 64, "batch.sequence_length": 8192}
    assert shape_standing(Facts(shapes=(CEILING, other)), launch, target).word == "inside"
    assert shape_standing(Facts(shapes=(CEILING, other)), launch, {**target, "hardware.chips": 32}).word == "beyond"
    another = cut_otherwise._replace(key=ShapeKey(geometry + 1, layout))
    assert shape_standing(Facts(shapes=(CEILING, another)), launch, target).word == "beyond"
