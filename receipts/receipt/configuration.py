"""Sections of a receipt that configure a launch: code, machine, model, layout, numerics, data, compilation and path.

``path`` holds both what was meant to compute and what evidence shows to have computed. Annotations are evaluated here
(no ``annotations`` of ``__future__``): pydantic would compile their text at every start.
"""

from typing import Literal

from receipts.receipt.leaf import (
    Amount,
    Bytes,
    Count,
    Digest,
    Name,
    Positive,
    Seconds,
    Section,
    axis,
    derived,
    note,
    observed,
    regime,
    replicate,
    section,
)


class Code(Section):
    """The source that was imported. The digest decides; commit and repository serve people and as a fallback."""

    repository: Name | None = note("Repository of the main script.")
    commit: Name | None = axis("Commit id.", of="code")
    dirty: bool | None = axis("Whether the work tree had uncommitted changes.", of="code")
    imported_digest: Digest | None = axis("SHA-256 over the files that were imported.", of="code")


class Hardware(Section):
    """The machine. `topology` is one axis: chips, hosts, shape and fabric come together."""

    accelerator: Name | None = axis("Accelerator, by a name that the registry knows.")
    chips: Positive | None = axis("Number of chips in the launch.", of="topology")
    hosts: Positive | None = axis("Number of hosts in the launch.", of="topology")
    physical: Name | None = axis("Physical shape of the slice or node, such as `2x4`.", of="topology")
    interconnect: Name | None = axis("Fabric between the chips.", of="topology")


class Platform(Section):
    """The software below the wheels. One axis, with its members listed."""

    os: Name | None = axis("Operating system and kernel.", of="platform")
    driver: Name | None = axis("Accelerator driver.", of="platform")
    cuda: Name | None = axis("CUDA runtime.", of="platform")
    cudnn: Name | None = axis("cuDNN as loaded.", of="platform")
    nccl: Name | None = axis("NCCL as loaded.", of="platform")
    libtpu: Name | None = axis("libtpu as loaded.", of="platform")
    python: Name | None = axis("Python.", of="platform")


Family = Literal["dense", "moe", "hybrid", "ssm", "sparse"]


class Model(Section):
    """Geometry of the model. `pattern`, `dimensions` and `routing` are one axis each."""

    name: Name | None = note("Name that people use; two geometries may share it (C113).")
    architecture: Digest | None = observed(
        "SHA-256 over names and shapes of the parameters, without wrappers, shards and adapters: one model, one digest."
    )
    modules: Digest | None = observed("SHA-256 over the same and the class of each module.")
    family: Family | None = derived("Family of the architecture.", follows="pattern, routing")
    pattern: Name | None = axis("Block pattern, one letter a block, tiled to `depth`.", of="pattern")
    alphabet: Name | None = axis("Name of the alphabet that the letters come from.", of="pattern")
    depth: Positive | None = axis("Blocks in the stack.", of="pattern", unit="blocks")
    hidden: Positive | None = axis("Hidden width.", of="dimensions")
    heads: Positive | None = axis("Query heads.", of="dimensions")
    kv_heads: Positive | None = axis("Key and value heads.", of="dimensions")
    head_dim: Positive | None = axis("Width of a head.", of="dimensions")
    ffn: Positive | None = axis("Width of the dense feed-forward.", of="dimensions")
    expert_ffn: Positive | None = axis("Width of one expert's feed-forward.", of="dimensions")
    ffn_projections: Positive | None = axis(
        "Weight matrices of a feed-forward: 3 gated (SwiGLU), 2 plain.", of="dimensions"
    )
    shared_expert_ffn: Count | None = axis("Width of the shared expert; 0 means none.", of="dimensions")
    vocabulary: Count | None = axis(
        "Vocabulary entries; 0 where the model takes values such as images, and no tokens.", of="dimensions"
    )
    ssm_state: Positive | None = axis("State width of a Mamba block.", of="dimensions")
    ssm_heads: Positive | None = axis("Heads of a Mamba block.", of="dimensions")
    ssm_groups: Positive | None = axis("Groups of a Mamba block.", of="dimensions")
    experts: Count | None = axis("Experts in an expert block.", of="routing")
    top_k: Count | None = axis("Experts per token.", of="routing")
    capacity_factor: Amount | None = axis("Capacity factor of the router.", of="routing")
    router_order: Name | None = axis(
        "What the router does first: `softmax`, `top_k`, or `dispatch` before the choice.", since="1.1"
    )
    mtp_depth: Count | None = axis("Multi-token-prediction depth; 0 means none.")
    mtp_wiring: Name | None = axis("How the MTP heads are wired: repeated, tied, standalone.")
    tied_embeddings: bool | None = axis("Whether input and output embeddings share weights.")
    attention_kinds: Name | None = axis("Attention kinds by layer, such as `32 full` or `9 DSA + 4 MLA`.")
    sparse_attention: Name | None = axis("Requested implementation of sparse attention.")
    ssm_variant: Name | None = axis("Variant of the Mamba or recurrent block.")
    spec: Name | None = axis("Layer specification by name, where a framework builds blocks from one.")
    parameters_total: Positive | None = derived("Parameters.", follows="pattern, dimensions, routing")
    parameters_total_stated: Name | None = note("Source text of `parameters_total`.")
    parameters_active: Positive | None = derived("Active parameters per token.", follows="pattern, dimensions, routing")
    parameters_active_stated: Name | None = note("Source text of `parameters_active`.")


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
    ragged: bool | None = observed("Whether steps differ in tokens, in rows or lengths: tokens a step are then a mean.")
    accumulation: Positive | None = derived(
        "Micro steps per optimizer step.", follows="global batch over micro batch and data parallel"
    )


class Adapters(Section):
    """Low-rank adapters. They must join gradient synchronization, and when they were injected decides it."""

    kind: Name | None = axis("Kind, such as `lora`; `partial` where a part of the weights is trained.", of="adapters")
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
    router_dtype: Name | None = axis("Type of the router's logits.", since="1.1")
    router_auxiliary_loss: Amount | None = axis("Coefficient of the router's load-balancing loss.", since="1.1")
    router_z_loss: Amount | None = axis("Coefficient of the router's z-loss.", since="1.1")
    mtp_loss_weight: Amount | None = axis("Weight of the MTP heads' loss beside the main one.", since="1.1")
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


Posture = Literal["eager", "regional", "whole_graph", "xla_lazy", "xla_step", "jit"]


class Compile(Section):
    """Compile posture. `posture` and `cuda_graphs` are one axis each; a scope without an implementation is off."""

    posture: Posture | None = axis("How the step is compiled.", of="posture")
    regions: tuple[Name, ...] | None = axis("What is compiled, if only regions are.", of="posture")
    backend: Name | None = axis("Compiler: inductor, xla, tilelang, ….", of="posture")
    cuda_graph_implementation: Name | None = axis(
        "Who captures CUDA graphs: none, local, transformer_engine.", of="cuda_graphs"
    )
    cuda_graph_scope: tuple[Name, ...] | None = axis("What is captured.", of="cuda_graphs")
    warmup_policy: Name | None = axis("What the launch does before it measures.")
    cache_state: Literal["cold", "warm", "off"] | None = regime("State of the compile cache at the start.")
    compile_seconds: Seconds | None = observed("Total compile time.", unit="seconds", ranks="max", files="first_source")
    compile_seconds_stated: Name | None = observed("Source text of `compile_seconds`.")
    compiles: Count | None = observed("Programs compiled by a backend.", ranks="max", files="first_source")
    compiles_after_warmup: Count | None = observed("Compiles and recompiles after the window opened.", ranks="max")
    graph_breaks: Count | None = observed(
        "Graph breaks in a graph that should be whole.", ranks="max", files="first_source"
    )
    cache_hits: Count | None = observed("Programs found in the persistent cache.", ranks="max", files="first_source")
    cache_misses: Count | None = observed("Programs not found there.", ranks="max", files="first_source")
    program_digest: Name | None = observed("Digest of the compiled step.", files="one")
    argument_bytes: Bytes | None = observed(
        "The compiler's argument bytes per chip.", unit="bytes", ranks="max", files="first_source", group="program"
    )
    output_bytes: Bytes | None = observed(
        "The compiler's output bytes per chip.", unit="bytes", ranks="max", files="first_source", group="program"
    )
    temp_bytes: Bytes | None = observed(
        "The compiler's temporary bytes per chip.", unit="bytes", ranks="max", files="first_source", group="program"
    )


class Intended(Section):
    """The requested path."""

    framework: Name | None = axis("Host framework: megatron-core, torchtitan, fsdp2, maxtext, ….")
    runtime: Name | None = axis("Runtime below it: cuda, pjrt-tpu, cpu.")
    attention: Name | None = axis("Attention: te_fused, te_flash, flash2, pallas_splash, math, ….")
    gemm: Name | None = axis("Matrix multiplication: te, cublas, xla, with its type.")
    dispatch: Name | None = axis("Token dispatch of the experts: alltoall, flex, deepep, none.")
    ssm: Name | None = axis("Kernel family of Mamba and recurrent blocks.")
    sharding: Name | None = axis("Partition specification, by digest or name.")
    overlap: Name | None = axis("Requested overlap of communication and computation.")
    cross_entropy: Name | None = axis("Cross-entropy of the main head.")
    mtp_cross_entropy: Name | None = axis("Cross-entropy of the MTP heads.")


class Witnessed(Section):
    """The path that evidence shows. A leaf given here sets the axis of the same name."""

    framework: Name | None = observed("Host framework seen.")
    frameworks: tuple[Name, ...] | None = observed(
        "Every host framework that evidence shows; one name if there is only one.", ranks="union"
    )
    runtime: Name | None = observed("Runtime seen.", ranks="joined", files="joined")
    attention: Name | None = observed("Attention seen.", ranks="joined", files="joined")
    gemm: Name | None = observed("Matrix multiplication seen.", ranks="joined", files="joined")
    dispatch: Name | None = observed("Dispatch seen.", ranks="joined", files="joined")
    ssm: Name | None = observed("Kernel family of Mamba and recurrent blocks seen.", ranks="joined", files="joined")
    sharding: Name | None = observed("Partition in the compiled program.", ranks="joined", files="joined")
    replicated: tuple[Name, ...] | None = observed("Arrays that the compiler replicated.", ranks="union", files="union")
    overlap: Name | None = observed("Overlap seen.", ranks="joined", files="joined")
    cross_entropy: Name | None = observed("Cross-entropy of the main head seen.", ranks="joined", files="joined")
    mtp_cross_entropy: Name | None = observed("Cross-entropy of the MTP heads seen.", ranks="joined", files="joined")
    posture: Name | None = observed("Compile posture seen.", ranks="joined", files="joined")
    compute_dtype: Name | None = observed("Type of the matmuls that evidence shows.", ranks="joined", files="joined")
    cuda_graphs: bool | None = observed("Whether graphs were captured and replayed.", files="last")
    fallbacks: dict[Name, Count] | None = observed(
        "Operators that left the path, with counts (`aten::…`).", ranks="most_each", files="most_each"
    )
    host_transfers_per_step: float | None = observed("Transfers of live tensors to the host per step.", ranks="max")


class Path(Section):
    """Intended and witnessed, side by side."""

    intended: Intended | None = section("Requested path.")
    witnessed: Witnessed | None = section("What evidence shows.")
