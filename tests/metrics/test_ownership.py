"""What one rank owns of a model."""

from __future__ import annotations

from receipts.metrics.degrees import owned

HYBRID = {"model.heads": 56, "model.kv_heads": 8, "model.ssm_heads": 8}


def test_a_rank_owns_its_share_of_heads_by_kind() -> None:
    text = owned({**HYBRID, "parallelism.tensor": 8})
    assert text == "7 attention heads of 56, 1 kv head of 8, 1 SSM head of 8"


def test_experts_layers_and_tokens_are_divided_by_their_own_degrees() -> None:
    stated = {"model.experts": 64, "model.depth": 32, "batch.sequence_length": 131072}
    degrees = {"parallelism.expert": 8, "parallelism.pipeline": 8, "parallelism.context": 8}
    assert owned({**stated, **degrees}) == "8 experts of 64, 4 layers of 32, 16,384 tokens of 131,072"


def test_sequence_parallelism_and_the_width_of_experts_are_shares() -> None:
    stated = {"model.experts": 16, "parallelism.tensor": 4, "parallelism.expert_tensor": 2}
    assert owned({**stated, "parallelism.sequence": True}) == (
        "1/2 of each expert's width, 1/4 of the tokens outside the tensor-parallel matrices"
    )


def test_a_degree_that_does_not_divide_leaves_a_fraction() -> None:
    assert owned({"model.heads": 28, "parallelism.tensor": 8}) == "3.5 attention heads of 28"


def test_without_a_degree_above_one_nothing_is_divided() -> None:
    assert owned({**HYBRID, "parallelism.tensor": 1, "parallelism.sequence": True}) == ""
