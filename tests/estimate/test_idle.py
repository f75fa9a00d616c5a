"""A width that a plan states and no block of its stack carries is said, or leaves the answer unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest

import rule_cases
from receipts.estimate.resolve import Circumstances, Resolved, resolve
from receipts.questions.fit import measured

NAM52: dict[str, Any] = {
    "model.pattern": "A",
    "model.alphabet": "nam",
    "model.depth": 52,
    "model.hidden": 3584,
    "model.heads": 28,
    "model.kv_heads": 8,
    "model.head_dim": 128,
    "model.ffn": 18944,
    "model.ffn_projections": 3,
    "model.vocabulary": 65536,
    "batch.micro_batch": 1,
    "batch.sequence_length": 4096,
    "hardware.accelerator": "H200",
    "hardware.chips": 8,
}
ATTENTION = 52 * (2 * 3584 * 128 * (28 + 8)) + 2 * 65536 * 3584
FEED_FORWARD = 52 * 3 * 3584 * 18944


def _resolved(**leaves: Any) -> Resolved:
    stated = {**NAM52, **{path.replace("__", "."): value for path, value in leaves.items()}}
    return resolve({path: value for path, value in stated.items() if value is not None}, Circumstances("megatron"))


def _said(found: Resolved, path: str) -> str:
    return next((item.because for item in found.assumed if item.path == path), "")


def test_a_feed_forward_that_no_letter_carries_leaves_the_answer_unknown() -> None:
    (why,) = _resolved().uncounted
    assert why.startswith("model.ffn 18,944")
    (why, _) = _resolved(model__parameters_total=ATTENTION + FEED_FORWARD).uncounted
    assert why.startswith("model.ffn 18,944")


def test_the_block_that_carries_it_prices_it() -> None:
    dense = _resolved(model__pattern="[*-]", model__alphabet="nemo")
    assert (dense.uncounted, _said(dense, "model.ffn")) == ((), "")


@pytest.mark.parametrize(
    ("leaves", "because"),
    [
        ({"model__parameters_total": ATTENTION}, "leave no room for a mlp block"),
        ({"model__pattern": "*", "model__alphabet": "nemo"}, "no mlp block is stated"),
    ],
)
def test_a_feed_forward_that_the_plan_rules_out_is_said_to_take_nothing(leaves: dict[str, Any], because: str) -> None:
    found = _resolved(**leaves)
    assert found.uncounted == ()
    assert because in _said(found, "model.ffn")


@pytest.mark.parametrize("path", ["model__expert_ffn", "model__shared_expert_ffn"])
def test_experts_of_a_stack_that_is_called_dense_leave_the_answer_unknown(path: str) -> None:
    found = _resolved(model__pattern=None, model__alphabet=None, model__family="dense", **{path: 896})
    (why,) = found.uncounted
    assert why.startswith(path.replace("__", "."))


def test_what_programs_print_of_every_model_is_said_and_settles_nothing() -> None:
    found = _resolved(model__pattern="[*-]", model__alphabet="nemo", model__ssm_state=128, parallelism__expert=8)
    assert found.uncounted == ()
    assert _said(found, "model.ssm_state")
    assert _said(found, "parallelism.expert")
    assert not _said(_resolved(model__experts=1, parallelism__expert=1), "parallelism.expert")


def test_a_layer_of_experts_takes_the_place_of_a_feed_forward_of_another_width() -> None:
    moe = {"model__pattern": None, "model__alphabet": None, "model__family": "moe", "model__experts": 8}
    found = _resolved(**moe, model__top_k=2, model__expert_ffn=896)
    assert found.uncounted == ()
    assert _said(found, "model.ffn")
    assert not _said(_resolved(**moe, model__top_k=2, model__expert_ffn=18944), "model.ffn")


@pytest.mark.parametrize(("provenance", "is_read"), [
    ("measured", True), ("quoted", True), ("illustrative", False), ("projected", False),
])  # fmt: skip
def test_what_nobody_read_from_a_chip_is_no_measured_peak(provenance: str, is_read: bool) -> None:
    tree = rule_cases.build({"steps": {}})
    tree["run"]["provenance"] = provenance
    tree["memory"] = {"chips": [{"chip": 0, "phase": "steady", "peak_bytes": 7, "bytes_limit": 9}]}
    parsed = rule_cases.parsed(json.loads(json.dumps(tree)), "p.json")
    assert (measured(parsed) is not None) == is_read
