"""Sections ``numerics`` and ``data``: in which arithmetic, with which optimizer, on what."""

from typing import Literal

from receipts.receipt.leaf import (
    Amount,
    Count,
    Digest,
    Name,
    Positive,
    Section,
    axis,
    derived,
    observed,
    replicate,
    section,
)


class Adapters(Section):
    """Low-rank adapters. They must join gradient synchronization, and when they were injected decides it."""

    kind: Name | None = axis("Kind, such as `lora`.", of="adapters")
    rank: Positive | None = axis("Rank of the update.", of="adapters")
    injected: Literal["before_sharding", "after_sharding"] | None = axis(
        "Whether they were injected before or after the model was sharded.", of="adapters"
    )
    gradient_sync: Name | None = axis("How their gradients are synchronized.", of="adapters")


class Numerics(Section):
    """Arithmetic and optimization. `precision`, `optimizer` and `recompute` are one axis each."""

    compute_dtype: Name | None = axis("Type of the matmuls: bf16, fp16, fp32, fp8.", of="precision")
    fp8_recipe: Name | None = axis("FP8 recipe: tensorwise, delayed, mxfp8, blockwise.", of="precision")
    fp8_scope: Name | None = axis("What runs in FP8: all, moe, indexer, ….", of="precision")
    parameter_dtype: Name | None = axis("Type in which parameters are stored.")
    reduction_dtype: Name | None = axis("Type in which gradients are reduced.")
    buffer_dtype: Name | None = axis("Type of buffers.")
    optimizer: Name | None = axis("Optimizer, or that of the matrices.", of="optimizer")
    optimizer_other: Name | None = axis("Optimizer of the parameters that the first does not update.", of="optimizer")
    optimizer_state_dtype: Name | None = axis("Type of the optimizer's states.", of="optimizer")
    learning_rate: Amount | None = axis("Peak learning rate.")
    schedule: Name | None = axis("Schedule of the learning rate, with its warm-up and floor.")
    seed: Count | None = replicate("Seed of the initialization and of random numbers drawn in the steps.")
    recompute: Name | None = axis("Requested activation recompute: none, full, selective: ….", of="recompute")
    recompute_applied: Name | None = observed("Activation recompute that evidence shows.")
    adapters: Adapters | None = section("Low-rank adapters.")


class Data(Section):
    """What was trained on."""

    dataset: Name | None = axis("Dataset, by name or path.")
    dataset_digest: Digest | None = observed("SHA-256 of the data, or of its manifest.")
    tokenizer: Name | None = axis("Tokenizer, by name or digest.")
    order_seed: Count | None = replicate("Seed of the data order (`data_seed`, `data_shuffle_seed`).")
    kind: Literal["real", "synthetic"] | None = derived("Real text or synthetic tokens.", follows="dataset")
