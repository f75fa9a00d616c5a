"""Deny unless proven: over generated pairs, taking a stated leaf away never turns *rejected* into *accepted*."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rule_cases
from receipts.compare import Request, compare
from receipts.receipt.catalogue import by_path
from receipts.rule import Facts
from receipts.verdict import Comparison

# A noise floor lets one launch a side carry an interval, so that an acceptance is within reach of every pair.
FACTS = Facts(sigma=0.003, sigma_df=30)
REQUIRED = {path for path, leaf in by_path().items() if leaf.required}
FAST = {"measurement.step_durations_seconds": rule_cases.durations({"seconds": 0.6, "seed": 11})}
AXES: dict[str, tuple[Any, Any]] = {
    "numerics.seed": (1, 2),
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
    return a, b


def _verdict(a: dict[str, Any], b: dict[str, Any]) -> Comparison:
    sides = ([rule_cases.parsed(a, "a.json")], [rule_cases.parsed(b, "b.json")])
    return compare(*sides, rule_cases.rulebook(), Request(facts=FACTS))


def _take(tree: dict[str, Any], path: str) -> None:
    """Take a leaf out. A map that was captured whole would state *unset* instead, so it stops being whole."""
    rule_cases.take(tree, path)
    if path.partition(".")[0] in rule_cases.OPEN_MAPS:
        rule_cases.take(tree, f"{path.partition('.')[0]}.complete")


def _droppable(tree: dict[str, Any]) -> list[str]:
    stated = rule_cases.parsed(tree).stated
    # Parts of a row are required of the row; a list goes as a whole.
    lists = {path.partition("[")[0] for path in stated if "[" in path}
    return sorted({path for path in stated if path not in REQUIRED and "[" not in path} | lists)


@pytest.mark.parametrize("axis", sorted(AXES))
def test_a_pair_one_axis_apart_is_accepted_so_that_the_property_can_fail(axis: str) -> None:
    verdict = _verdict(*_sides([axis], contexts=False))
    assert verdict.status == "accepted", [
        (item.code, item.at, item.found) for item in verdict.findings if item.level != "W"
    ]


def test_a_pair_two_axes_apart_is_rejected() -> None:
    assert _verdict(*_sides(["numerics.seed", "data.tokenizer"], contexts=False)).status == "rejected"


@pytest.mark.parametrize("side", ["a", "b", "both"])
def test_no_single_leaf_taken_away_makes_a_rejected_pair_accepted(side: str) -> None:
    a, b = _sides(["numerics.seed", "code.imported_digest"], contexts=False)
    for path in _droppable(a):
        left, right = copy.deepcopy(a), copy.deepcopy(b)
        for name, tree in (("a", left), ("b", right)):
            if side in (name, "both"):
                _take(tree, path)
        assert _verdict(left, right).status != "accepted", f"without {path} on {side}"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
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
                _take(tree, path)
    assert _verdict(a, b).status != "accepted", f"without {sorted(dropped)} on {side}"


def test_what_one_context_holds_on_both_sides_is_exempt_and_shown() -> None:
    a, b = _sides(["numerics.seed"], contexts=True)
    for tree in (a, b):
        rule_cases.take(tree, "numerics.learning_rate")
    verdict = _verdict(a, b)
    assert verdict.status == "accepted"
    assert "numerics.learning_rate" in verdict.difference.held
