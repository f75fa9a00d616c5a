"""Deny unless proven: over generated pairs, taking a stated leaf away never turns *rejected* into *accepted*.

With witnesses as well, from the measured launches or from their twins. One thing is exempt, and shown: what another
launch of the same configuration proves, and evidence that is withheld. Where a launch and its twin contradict each
other, either statement can be left out, and the other one then stands, by its own evidence.
"""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import drops
import rule_cases
from exempt import exempt
from receipts.axes import effective
from receipts.judging.comparison import Request, compare
from receipts.judging.verdict import Comparison
from rule_cases import RuleCase
from thorough import unless_thorough

pytestmark = pytest.mark.slow

FAST = {"measurement.step_durations_seconds": rule_cases.durations({"seconds": 0.6, "seed": 11})}
AXES: dict[str, tuple[Any, Any]] = {
    "numerics.parameter_dtype": ("fp32", "bf16"),
    "numerics.reduction_dtype": ("fp32", "bf16"),
    "numerics.learning_rate": (1e-4, 3e-4),
    "numerics.optimizer": ("adamw", "muon"),
    "numerics.schedule": ("constant", "cosine"),
    "model.tied_embeddings": (True, False),
    "flags.OMP_NUM_THREADS": ({"value": 1, "before_runtime": True}, {"value": 2, "before_runtime": True}),
    "features.rope_fusion": ("0", "1"),
    "patches.loss_fix": ("a", "b"),
    "platform.python": ("3.11.7", "3.12.1"),
    "code.imported_digest": ("a" * 64, "b" * 64),
    "data.tokenizer": ("one", "two"),
    "numerics.buffer_dtype": ("fp32", "bf16"),
}


def _sides(axes: list[str], *, contexts: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    a, b = rule_cases.base(), rule_cases.base()
    for tree, index in ((a, 0), (b, 1)):
        for path in axes:
            rule_cases.put(tree, path, AXES[path][index])
        for rate in ("tokens_per_second", "tokens_per_second_per_chip", "step_seconds", "mfu"):
            rule_cases.take(tree, f"measurement.stated.{rate}")
            rule_cases.take(tree, f"measurement.stated.{rate}_stated")
        # The first loss may not contradict the axes that are drawn.
        rule_cases.take(tree, "measurement.loss.first")
        tree["run"]["launch"] = f"launch-{index}"
        if not contexts:
            rule_cases.take(tree, "run.context")
    for path, value in FAST.items():
        rule_cases.put(b, path, value)
    return drops.as_written(a), drops.as_written(b)


def _verdict(a: dict[str, Any], b: dict[str, Any]) -> Comparison:
    sides = ([rule_cases.parsed(a, "a.json")], [rule_cases.parsed(b, "b.json")])
    return compare(*sides, rule_cases.rulebook(), Request(facts=drops.FACTS))


def _droppable(tree: dict[str, Any]) -> list[str]:
    stated = rule_cases.parsed(tree).stated
    # Parts of a row are required of the row; a list goes as a whole.
    lists = {path.partition("[")[0] for path in stated if "[" in path}
    return sorted({path for path in stated if not exempt(path, stated) and "[" not in path} | lists)


@pytest.mark.parametrize("axis", sorted(AXES))
def test_a_pair_one_axis_apart_is_accepted_so_that_the_property_can_fail(axis: str) -> None:
    verdict = _verdict(*_sides([axis], contexts=False))
    assert verdict.status == "accepted", [
        (item.code, item.at, item.found) for item in verdict.findings if item.level != "W"
    ]


def test_a_pair_two_axes_apart_is_rejected() -> None:
    assert _verdict(*_sides(["numerics.schedule", "data.tokenizer"], contexts=False)).status == "rejected"


@pytest.mark.parametrize("side", ["a", "b", "both"])
def test_no_single_leaf_taken_away_makes_a_rejected_pair_accepted(side: str) -> None:
    a, b = _sides(["numerics.schedule", "code.imported_digest"], contexts=False)
    for path in _droppable(a)[:: unless_thorough(13, 1)]:
        left, right = copy.deepcopy(a), copy.deepcopy(b)
        for name, tree in (("a", left), ("b", right)):
            if side in (name, "both"):
                rule_cases.take(tree, path)
        assert _verdict(left, right).status != "accepted", f"without {path} on {side}"


@settings(max_examples=unless_thorough(10, 60))
@given(
    axes=st.lists(st.sampled_from(sorted(AXES)), min_size=2, max_size=4, unique=True),
    side=st.sampled_from(["a", "b", "both"]),
    seed=st.randoms(use_true_random=False),
    count=st.integers(1, 12),
)
def test_no_set_of_leaves_taken_away_makes_a_rejected_pair_accepted(
    axes: list[str], side: str, seed: Any, count: int
) -> None:
    a, b = _sides(axes, contexts=False)
    assert _verdict(a, b).status == "rejected"
    # What differs is the most tempting to drop.
    dropped = set(seed.sample(_droppable(a), count)) | set(seed.sample(axes, len(axes) - 1))
    for name, tree in (("a", a), ("b", b)):
        if side in (name, "both"):
            for path in dropped:
                rule_cases.take(tree, path)
    assert _verdict(a, b).status != "accepted", f"without {sorted(dropped)} on {side}"


def test_what_one_context_holds_on_both_sides_is_exempt_and_shown() -> None:
    a, b = _sides(["numerics.schedule"], contexts=True)
    for tree in (a, b):
        rule_cases.take(tree, "numerics.learning_rate")
    verdict = _verdict(drops.as_written(a), drops.as_written(b))  # who never wrote it has lost no entry
    assert verdict.status == "accepted"
    assert "numerics.learning_rate" in verdict.difference.held


# Witnesses: A and B are measured without a look at their paths, and each is witnessed by a twin.

TARGETS = ("a", "b", "both", "twin of a", "twin of b", "both twins", "all")
SEEN = "path.witnessed"


def _witnessed(
    axes: list[str], *, own: bool = False, contexts: bool = False
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A, B and their twins, apart in ``axes``; ``own``: the measured launches saw their paths as well."""
    a, b = _sides(axes, contexts=contexts)
    twins = []
    for tree in (a, b):
        twin = copy.deepcopy(tree)
        rule_cases.put(twin, "run.kind", "profile")
        rule_cases.put(twin, "run.witness_for", tree["run"]["launch"])
        rule_cases.put(twin, "run.launch", f"twin of {tree['run']['launch']}")
        twins.append(twin)
        if not own:
            for path in (SEEN, "evidence", "numerics.recompute_applied"):
                rule_cases.take(tree, path)
    return drops.as_written(a), drops.as_written(b), drops.as_written(twins[0]), drops.as_written(twins[1])


def _judged(*trees: dict[str, Any]) -> Comparison:
    a, b, *twins = [rule_cases.parsed(tree) for tree in trees]
    return compare([a], [b], rule_cases.rulebook(), Request(facts=drops.FACTS.beside([a, b, *twins])))


def _of(target: str) -> tuple[int, ...]:
    return {
        "a": (0,),
        "b": (1,),
        "both": (0, 1),
        "twin of a": (2,),
        "twin of b": (3,),
        "both twins": (2, 3),
        "all": (0, 1, 2, 3),
    }[target]


def _without(trees: tuple[dict[str, Any], ...], target: str, paths: set[str]) -> list[dict[str, Any]]:
    left = [copy.deepcopy(tree) for tree in trees]
    for index in _of(target):
        for path in paths:
            rule_cases.take(left[index], path)
    return left


def _spoilt(kind: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A pair with twins that is rejected, or would be, for one reason."""
    trees = _witnessed(["numerics.schedule", "code.imported_digest"] if kind == "two axes" else ["numerics.schedule"])
    if kind == "another path":
        rule_cases.put(trees[3], f"{SEEN}.attention", "math")
    if kind == "another posture":
        rule_cases.put(trees[3], f"{SEEN}.posture", "whole_graph")
    return (*trees[:3], drops.as_written(trees[3]))


def test_a_pair_that_its_twins_witness_is_accepted_so_that_the_property_can_fail() -> None:
    verdict = _judged(*_witnessed(["numerics.schedule"]))
    assert verdict.status == "accepted", [
        (item.code, item.at, item.found) for item in verdict.findings if item.level != "W"
    ]
    assert len(verdict.witnesses) == 2


@pytest.mark.parametrize(
    ("kind", "target"),
    [("two axes", "both"), ("two axes", "twin of b"), *(("another path", name) for name in ("b", "twin of b", "all"))],
)
def test_no_single_leaf_taken_away_makes_a_rejected_pair_with_twins_accepted(target: str, kind: str) -> None:
    trees = _spoilt(kind)
    assert _judged(*trees).status == "rejected"
    droppable = sorted({path for index in _of(target) for path in _droppable(trees[index])})
    for path in droppable[:: unless_thorough(13, 1)]:
        assert _judged(*_without(trees, target, {path})).status != "accepted", f"without {path} on {target}"


@pytest.mark.parametrize("axis", sorted(AXES))
@pytest.mark.parametrize("twin", ["twin of a", "twin of b"])
def test_a_stranger_is_no_witness_whatever_leaf_it_leaves_out(axis: str, twin: str) -> None:
    """The twin is an axis away from its launch; without that axis it cannot be told, and lends as little."""
    trees = list(_witnessed(["numerics.schedule"] if axis != "numerics.schedule" else ["data.tokenizer"]))
    index = _of(twin)[0]
    before = effective(rule_cases.parsed(trees[index])).get(axis, "unset")
    for value in AXES[axis]:
        rule_cases.put(trees[index], axis, value)
        if effective(rule_cases.parsed(trees[index])).get(axis, "unset") != before:
            break
    trees[index] = drops.as_written(trees[index])
    assert _judged(*trees).path == "unwitnessed"
    for target in (twin, "a" if twin == "twin of a" else "b"):
        assert _judged(*_without(tuple(trees), target, {axis})).status != "accepted", target


@settings(max_examples=unless_thorough(10, 60))
@given(
    kind=st.sampled_from(["two axes", "another path", "another posture"]),
    target=st.sampled_from(TARGETS),
    seed=st.randoms(use_true_random=False),
    count=st.integers(1, 12),
)
def test_no_set_of_leaves_taken_away_makes_a_rejected_pair_with_twins_accepted(
    kind: str, target: str, seed: Any, count: int
) -> None:
    trees = _spoilt(kind)
    dropped = set(seed.sample(_droppable(trees[_of(target)[0]]), count))
    assert _judged(*_without(trees, target, dropped)).status != "accepted", f"without {sorted(dropped)} on {target}"


@pytest.mark.parametrize("target", ["a", "b", "twin of a", "twin of b"])
def test_a_contradiction_between_a_launch_and_its_twin_goes_only_with_one_of_the_two_statements(target: str) -> None:
    trees = _witnessed(["numerics.schedule"], own=True)
    rule_cases.put(trees[3], f"{SEEN}.attention", "sdpa_math")
    assert _judged(*trees).status == "rejected"
    withheld = {f"{SEEN}.attention", "run.witness_for"}
    accepted = {
        path
        for path in {*_droppable(trees[_of(target)[0]])[:: unless_thorough(16, 4)], *withheld}
        if _judged(*_without(trees, target, {path})).status == "accepted"
    }
    assert accepted <= (withheld if target == "twin of b" else set()), accepted


def test_what_another_launch_proves_is_exempt_and_shown() -> None:
    """A launch that never wrote down what it saw is shown by its twin. One that lost it stays open."""
    trees = _witnessed(["numerics.schedule"], own=True)
    rule_cases.put(trees[1], f"{SEEN}.attention", "sdpa_math")
    assert _judged(*trees).status == "rejected"
    lost = _without(trees, "b", {f"{SEEN}.attention"})
    assert _judged(*lost).status == "inconclusive"
    left = _judged(lost[0], drops.as_written(lost[1]), *lost[2:])
    assert left.status == "accepted"
    assert rule_cases.parsed(trees[3]).id in left.witnesses


# Every rejected case of a rule on a pair, with drops from one side and from both.

SAMPLED = 3


def sampled(case: RuleCase, every: list[drops.Place]) -> list[drops.Place]:
    """Places of what a case sets on a side, and some others; the same at every run."""
    said = [path for letter in "ab" for path in case.table.get(letter, {}).get("set", {})]
    near = [place for place in every if any(drops.named(place).startswith(path) for path in said)]
    source = random.Random(str(case))
    return [*source.sample(near, min(len(near), SAMPLED)), *source.sample(every, SAMPLED)]


@pytest.mark.parametrize("case", drops.rejected_pairs(), ids=str)
def test_no_drop_from_a_side_or_both_makes_a_rejected_case_accepted(case: RuleCase) -> None:
    pair = drops.PairDrops(case)
    assert pair.status() != "accepted"
    hidden = [
        f"{drops.named(place)} on {side}"
        for place in sampled(case, pair.places())
        for side in drops.SIDES
        if pair.status(side, place) == "accepted"
    ]
    assert not hidden
