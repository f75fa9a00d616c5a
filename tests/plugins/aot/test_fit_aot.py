"""The decoder and its compile, where jax and libtpu are installed; parameters are those that the estimate counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory_setups import setup
from receipts.estimate import weights
from receipts.estimate.setup import XLA, ParallelLayout, RankBatch, Setup, Types
from receipts.plugins.aot.compiler import compile_step, refusals
from receipts.receipt.patterns import BlockKind

A, M, E, R, MLP = (
    (BlockKind.ATTENTION,),
    (BlockKind.MAMBA,),
    (BlockKind.EXPERT,),
    (BlockKind.RECURRENT,),
    (BlockKind.MLP,),
)


def small(*layers: tuple[BlockKind, ...], **fields: object) -> Setup:
    return setup(
        layers=layers,
        model={"hidden": 256, "ffn": 512, "expert_ffn": 256, "vocabulary": 1024, "ssm_inner": 512, "ssm_heads": 8,
               "capacity_factor": 1.25},
        batch=RankBatch(1, 512),
        framework=XLA,
        types=Types(2.0, 4.0, 4.0, 0.0),
        **fields,
    )  # fmt: skip


def test_what_is_not_compiled_says_why() -> None:
    made = small(A, layout=ParallelLayout(pipeline=2, stages=(1, 0)))
    assert any("pipeline" in reason for reason in refusals(made))
    assert refusals(small(A)) == ()


@pytest.mark.parametrize("tied", [True, False])
def test_the_decoder_has_the_parameters_that_are_counted(tied: bool) -> None:
    pytest.importorskip("jax")
    from receipts.plugins.aot.parameters import elements, period_of, tree

    made = small(A, E, M, R, A, E, M, R, MLP)
    made = replace(made, model=replace(made.model, tied=tied, mtp=(A,), mtp_depth=1))
    # Biases of the convolution and the scalars of R are counted and not made.
    assert elements(tree(made)) == pytest.approx(weights.parameters_total(made.model), rel=2e-3)
    assert period_of((A, E, A, E, A)) == (A, E)


@pytest.mark.slow
def test_a_step_of_every_block_compiles_and_its_bytes_are_told() -> None:
    pytest.importorskip("jax")
    pytest.importorskip("libtpu")
    found = compile_step(small(A, E, M, R))
    assert found.total is not None
    assert found.total > 0
    assert found.versions.startswith("jax ")
