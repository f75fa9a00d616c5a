"""Setups for the tests of memory geometry: small, round numbers, changed field by field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from receipts.estimate.setup import (
    MEGATRON,
    Architecture,
    FrameworkMemory,
    Layer,
    OptimizerKind,
    ParallelLayout,
    RankBatch,
    Setup,
    Types,
    optimizer_of,
)
from receipts.receipt.patterns import BlockKind

ADAM = optimizer_of("adamw", 4.0) or OptimizerKind("adam", 2, 4.0)
DENSE: Layer = (BlockKind.ATTENTION, BlockKind.MLP)
MODEL = Architecture(
    hidden=1024,
    layers=(DENSE,) * 4,
    vocabulary=32000,
    heads=8,
    kv_heads=4,
    head_dim=128,
    ffn=4096,
    experts=8,
    top_k=2,
    expert_ffn=512,
    ssm_inner=2048,
    ssm_state=64,
    ssm_heads=32,
    ssm_groups=2,
)


def setup(
    *,
    layers: tuple[Layer, ...] | None = None,
    layout: ParallelLayout | None = None,
    batch: RankBatch | None = None,
    model: dict[str, Any] | None = None,
    framework: FrameworkMemory = MEGATRON,
    **fields: Any,
) -> Setup:
    """A setup of four dense layers, 2 sequences of 1,024 tokens, unless told otherwise."""
    return replace(
        Setup(
            model=replace(MODEL, **(model or {}), **({"layers": layers} if layers is not None else {})),
            layout=layout or ParallelLayout(),
            batch=batch or RankBatch(2, 1024),
            types=Types(),
            matrix_optimizer=ADAM,
            other_optimizer=ADAM,
            recompute=frozenset(),
            framework=framework,
        ),
        **fields,
    )
