"""From stated leaves to a setup: what the words of a plan mean, and what is assumed where they do not say."""

from __future__ import annotations

from typing import Any

import pytest

from receipts.estimate.recompute import NONE
from receipts.estimate.resolve import Circumstances, Resolved, resolve

PLAN: dict[str, Any] = {
    "model.family": "dense",
    "model.depth": 4,
    "model.hidden": 1024,
    "model.heads": 8,
    "model.kv_heads": 4,
    "model.head_dim": 128,
    "model.ffn": 4096,
    "model.vocabulary": 32000,
    "batch.micro_batch": 2,
    "batch.sequence_length": 1024,
    "hardware.accelerator": "H200",
    "hardware.chips": 8,
}
MEGATRON = Circumstances("nvidia-megatron", ("megatron-core",), "expert_in_data")


def _resolved(**leaves: Any) -> Resolved:
    return resolve({**PLAN, **{path.replace("__", "."): value for path, value in leaves.items()}}, MEGATRON)


@pytest.mark.parametrize(("strategy", "stage"), [
    ("ddp", 0),
    ("zero1", 1),
    ("ddp with the distributed optimizer", 1),
    ("distributed_data_parallel", 0),
    ("megatron_fsdp_zero1", 1),
    ("megatron_fsdp_ddp", 0),
    ("fsdp2", 3),
])  # fmt: skip
def test_a_strategy_means_the_same_stage_on_every_framework(strategy: str, stage: int) -> None:
    found = _resolved(parallelism__strategy=strategy)
    assert found.setup is not None
    assert found.setup.layout.zero == stage
    assert "parallelism.strategy" not in {item.path for item in found.assumed}


@pytest.mark.parametrize(("leaves", "ways"), [
    ({"data": 4, "context": 2}, 8),
    ({"data": 4, "context": 2, "shard": 4}, 8),
    ({"data": 4, "context": 2, "shard": 2, "replicate": 2}, 4),
    ({"data": 4, "context": 2, "shard": 8}, 8),
])  # fmt: skip
def test_context_ranks_share_the_states_of_their_data_ranks(leaves: dict[str, int], ways: int) -> None:
    found = _resolved(**{f"parallelism__{name}": value for name, value in leaves.items()})
    assert found.setup is not None
    assert found.setup.layout.shard == ways


def test_what_a_launch_applied_counts_and_another_wish_is_named() -> None:
    found = _resolved(numerics__recompute="full", numerics__recompute_applied="none")
    assert found.setup is not None
    assert found.setup.recompute == NONE
    assert "'full' was asked for" in {item.path: item.because for item in found.assumed}["numerics.recompute"]
    agreed = _resolved(numerics__recompute="full", numerics__recompute_applied="uniform")
    assert "numerics.recompute" not in {item.path for item in agreed.assumed}
