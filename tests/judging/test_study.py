"""A study's axes count as one only while its constraint holds."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

import rule_cases
from receipts.axes import difference
from receipts.judging.rulebook import value_of

STUDIES = rule_cases.rulebook().studies
Sides = tuple[Mapping[str, Any], Mapping[str, Any]]


def broken(name: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, ...]:
    sides = [rule_cases.parsed(rule_cases.build({"set": dict(values)})) for values in (a, b)]
    return STUDIES.get(name).broken_by(difference(*sides), sides[0].stated, sides[1].stated)


HOLD: dict[str, Sides] = {
    "weak-scaling": (
        {"hardware.chips": 8, "batch.global_batch": 64},
        {"hardware.chips": 16, "batch.global_batch": 128},
    ),
    "iso-tokens": (
        {"batch.sequence_length": 4096, "batch.global_batch": 64},
        {"batch.sequence_length": 8192, "batch.global_batch": 32},
    ),
    "long-context": (
        {"batch.sequence_length": 4096, "parallelism.context": 1, "batch.global_batch": 64},
        {"batch.sequence_length": 8192, "parallelism.context": 2, "batch.global_batch": 32},
    ),
    "memory-to-micro-batch": (
        {"numerics.recompute": "none", "batch.micro_batch": 2},
        {"numerics.recompute": "full", "batch.micro_batch": 4},
    ),
    "fixed-accumulation": (
        {"batch.micro_batch": 2, "batch.global_batch": 16},
        {"batch.micro_batch": 4, "batch.global_batch": 32},
    ),
    "warm-cache": ({"compile.cache_state": "cold"}, {"compile.cache_state": "warm"}),
}
BREAK: dict[str, tuple[str, Any]] = {
    "weak-scaling": ("batch.global_batch", 64),
    "iso-tokens": ("batch.global_batch", 64),
    "long-context": ("batch.micro_batch", 99),
    "memory-to-micro-batch": ("batch.global_batch", 4096),
    "fixed-accumulation": ("batch.global_batch", 64),
    "warm-cache": ("compile.cache_state", "cold"),
}


@pytest.mark.parametrize("name", sorted(STUDIES.by_name))
def test_every_study_has_a_pair_for_which_it_holds(name: str) -> None:
    assert broken(name, *HOLD[name]) == ()


@pytest.mark.parametrize("name", sorted(STUDIES.by_name))
def test_every_study_breaks_where_its_constraint_does(name: str) -> None:
    a, b = HOLD[name]
    path, value = BREAK[name]
    assert broken(name, a, {**b, path: value})


def test_an_unstated_leaf_breaks_a_study() -> None:
    assert value_of("batch.global_batch / batch.micro_batch", {"batch.global_batch": 64}) is None
    assert value_of("a / b", {"a": 1, "b": 0}) is None
    assert value_of("a * b / c", {"a": 2, "b": 3, "c": 4}) == Fraction(3, 2)
