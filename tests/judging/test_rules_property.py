"""Deny unless proven, on one receipt: whatever is dropped from an invalid receipt, it never becomes valid.

Dropped are leaves, sections, rows, entries of lists and keys of maps, one at a time and several at once, from every
rejected case and from generated receipts. What is exempt stands in `exempt.py`. The full scan of single drops is
``python -m benchmarks.drops``; here a sample of them is tried.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import drops
import rule_cases
from exempt import exempt
from receipts.judging.facts import Facts
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Level
from receipts.receipt.leaves import find_leaf
from rule_cases import RuleCase
from thorough import unless_thorough

pytestmark = pytest.mark.slow

CASES = drops.rejected_cases()
OURS = RuleSet(
    tuple(rule for rule in drops.BOOK.rules.rules if rule.subject == "receipt" and rule.code[:2] in ("R1", "R2")), ""
)
SAMPLED = unless_thorough(2, 8)  # drops from each case besides those that its rule reads
_ROW = re.compile(r"\[[1-9]\d*\]")


def _near(case: RuleCase, tree: dict[str, Any]) -> list[drops.Place]:
    """The places that a case sets, those next to them, and a sample of the others; the same at every run."""
    every = drops.droppable(tree)
    said = [*case.table.get("set", {}), case.at or "schema_version"]
    near = [place for place in every if any(drops.named(place).startswith(path[:20]) for path in said)]
    rest = random.Random(str(case)).sample(every, min(SAMPLED, len(every)))
    return [*near[:SAMPLED], *rest]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_invalid_receipt_never_becomes_valid_by_a_drop(case: RuleCase) -> None:
    tree, facts = drops.as_written(rule_cases.build(case.table)), drops.facts_of(case)
    assert drops.status(tree, facts) == "invalid"
    hidden = [place for place in _near(case, tree) if drops.status(drops.without(tree, place), facts) == "valid"]
    assert not hidden, [drops.named(place) for place in hidden]


@settings(max_examples=unless_thorough(30, 200), suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    case=st.sampled_from(CASES),
    count=st.integers(2, 12),
    seed=st.integers(0, 2**32),
)
def test_nor_by_several_drops(case: RuleCase, count: int, seed: int) -> None:
    tree, facts = drops.as_written(rule_cases.build(case.table)), drops.facts_of(case)
    source = random.Random(seed)
    near = _near(case, tree)
    gone = source.sample(near, min(count, len(near)))
    assert drops.status(drops.without(tree, *gone), facts) != "valid", [drops.named(place) for place in gone]


@settings(max_examples=unless_thorough(12, 80), suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    some=st.lists(st.sampled_from([case for case in CASES if "facts" not in case.table]), min_size=1, max_size=3),
    name=st.sampled_from(sorted(rule_cases.BASES)),
    seed=st.integers(0, 2**32),
)
def test_nor_does_a_generated_receipt_with_offenses_of_several_rules(
    some: list[RuleCase], name: str, seed: int
) -> None:
    tree = rule_cases.base(name)
    for case in some:
        for path, value in case.table.get("set", {}).items():
            try:
                rule_cases.put(tree, path, value)
            except (IndexError, KeyError, TypeError):
                continue  # a row that this base does not have
    tree = drops.as_written(tree)
    if drops.status(tree, Facts()) != "invalid":
        return
    every = drops.droppable(tree)
    source = random.Random(seed)
    for place in source.sample(every, 4):
        assert drops.status(drops.without(tree, place), Facts()) != "valid", drops.named(place)


@pytest.mark.parametrize("path", ["measurement.stated.mfu", "model.family", "run.supersedes.reason", "run.entries"])
def test_restatements_derived_leaves_and_declarations_are_exempt(path: str) -> None:
    assert exempt(path, ())


@pytest.mark.parametrize(
    "path",
    ["measurement.step_flags.compile", "memory.chips[0]", "path.witnessed.cuda_graphs", "wheels.torch", "run.parts"],
)
def test_entries_and_what_nobody_asks_for_are_not(path: str) -> None:
    assert not exempt(path, ())


def test_work_is_a_restatement_only_beside_what_makes_it() -> None:
    path = "measurement.tokens_per_step"
    assert exempt(path, ("batch.global_batch", "batch.sequence_length"))
    assert not exempt(path, ("batch.global_batch",))


@settings(max_examples=unless_thorough(15, 100), suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data(), name=st.sampled_from(sorted(rule_cases.BASES)))
def test_what_is_left_of_a_clean_receipt_is_open_and_never_wrong(data: st.DataObject, name: str) -> None:
    tree = rule_cases.base(name)
    optional = [path for path in rule_cases.parsed(tree).stated if not _ROW.search(path) and not _required(path)]
    paths = data.draw(st.lists(st.sampled_from(optional), min_size=1, max_size=40, unique=True))
    for path in paths:
        rule_cases.take(tree, path)
    # R104 is the one rule here whose offense is that something is not said.
    found = rule_cases.judge_tree(tree, OURS)
    assert not [item for item in found if item.level is Level.ERROR and item.code != "R104"], paths


def _required(path: str) -> bool:
    leaf = find_leaf(re.sub(r"\[\d+\]", "[]", path))
    return leaf is not None and leaf.required
