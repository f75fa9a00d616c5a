"""Which family of blocks ran out: by an operator's name or a printed shape, and never by guess."""

from __future__ import annotations

from typing import Any

import pytest

from receipts.estimate.surface import attribution

HYBRID: dict[str, Any] = {
    "model.pattern": "AEMEAEMEAEMR",
    "model.alphabet": "nam",
    "model.hidden": 4096,
    "model.heads": 32,
    "model.experts": 16,
    "model.expert_ffn": 1024,
    "model.ssm_state": 128,
    "model.ssm_heads": 64,
    "parallelism.tensor": 1,
    "parallelism.expert": 4,
    "batch.micro_batch": 8,
    "batch.sequence_length": 8192,
}


@pytest.mark.parametrize(
    ("operator", "family"),
    [
        ("moe/experts.py:321 bias_act_func", "E"),
        ("jit(step)/transformer/self_attention/dot_general", "A"),
        ("mamba_ssm/ops/selective_scan_interface.py:44", "M"),
        ("m2rnn/cell.py:80 forward", "R"),
        ("train_torch.py:forward", None),
        ("moe/attention_router.py", None),
    ],
)
def test_the_operators_own_name_goes_first(operator: str, family: str | None) -> None:
    found = attribution({**HYBRID, "failure.operator": operator})
    assert (found.family if found else None) == family


@pytest.mark.parametrize(
    ("shape", "family"),
    [
        ("bf16[8,32,8192,8192]", "A"),
        ("f32[256,8192,8192]", "A"),
        ("bf16[8,8192,4096]", None),
        ("bf16[8,2,8192,8192]", None),
        ("bf16[4,73728,4096]", "E"),
        ("bf16[4,73728,576]", None),
        ("f32[8,64,128,64]", "M"),
        ("bf16[8,8192,128]", None),
    ],
)
def test_a_printed_shape_tells_where_the_model_has_such_extents(shape: str, family: str | None) -> None:
    found = attribution({**HYBRID, "failure.message": f"would exceed memory :: [shape = '{shape}' space=hbm]"})
    assert (found.family if found else None) == family


def test_scores_are_told_by_the_ranks_own_heads_and_part_of_the_sequence() -> None:
    split = {**HYBRID, "parallelism.tensor": 4, "parallelism.context": 2}
    assert attribution({**split, "failure.message": "bf16[1,8,4096,8192]"}) is not None
    assert attribution({**split, "failure.message": "bf16[1,16,4096,8192]"}) is None


def test_two_families_or_a_family_that_the_model_has_not_are_not_attributed() -> None:
    both = "bf16[8,32,8192,8192] f32[8,64,128,64]"
    assert attribution({**HYBRID, "failure.message": both}) is None
    dense = {**HYBRID, "model.pattern": "AAAA", "failure.operator": "moe/experts.py"}
    assert attribution(dense) is None


def test_without_a_failure_there_is_nothing_to_attribute() -> None:
    assert attribution(HYBRID) is None
