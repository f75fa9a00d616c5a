"""Sections ``parallelism`` and ``batch``: how the work was cut."""

from receipts.receipt.leaf import Name, Positive, Section, axis, derived


class Parallelism(Section):
    """Degrees and sharding. Each degree is an axis of its own; `data` follows from the others."""

    tensor: Positive | None = axis("Tensor-parallel degree.")
    sequence: bool | None = axis("Sequence parallelism; it acts only where `tensor` is above 1.")
    expert_tensor: Positive | None = axis("Tensor degree inside the experts.")
    expert: Positive | None = axis("Expert-parallel degree.")
    context: Positive | None = axis("Context-parallel degree.")
    pipeline: Positive | None = axis("Pipeline stages.")
    virtual_pipeline: Positive | None = axis("Virtual stages per rank; it acts only where `pipeline` is above 1.")
    schedule: Name | None = axis("Pipeline schedule; it acts only where `pipeline` is above 1.")
    stage_layout: Name | None = axis("Blocks of each pipeline stage.")
    shard: Positive | None = axis("Degree of parameter sharding (FSDP, ZeRO-3).")
    replicate: Positive | None = axis("Degree of replication over sharded groups (HSDP).")
    strategy: Name | None = axis(
        "How states are sharded: ddp (not at all), zero1 (a distributed optimizer), zero2, zero3, fsdp2, spmd, …."
    )
    reshard_after_forward: bool | None = axis("Whether parameters are freed after the forward.")
    prefetch: Name | None = axis("Prefetch policy of sharded parameters.")
    bucket_bytes: Positive | None = axis("Size of a gradient or parameter bucket.", unit="bytes")
    padding: Name | None = axis("Padding of buckets or shards.")
    chunking: Name | None = axis("Chunking of collectives.")
    mesh_axes: Name | None = axis("Mesh axes in order, such as `data:2,fsdp:4`.")
    placement: Name | None = axis("Which mesh axis crosses which fabric.")
    wrap_order: Name | None = axis("Order of wrapping: recompute, compile, shard, adapters.")
    data: Positive | None = derived("Data-parallel degree.", follows="chips over the other degrees")


class Batch(Section):
    """Shape of a step."""

    micro_batch: Positive | None = axis("Sequences per micro step on one data-parallel rank.", unit="sequences")
    global_batch: Positive | None = axis("Sequences per step.", unit="sequences")
    sequence_length: Positive | None = axis("Tokens per sequence.", unit="tokens")
    accumulation: Positive | None = derived(
        "Micro steps per optimizer step.", follows="global batch over micro batch and data parallel"
    )
