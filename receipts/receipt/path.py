"""Section ``path``: what was meant to compute, and what evidence shows to have computed."""

from receipts.receipt.leaf import Count, Name, Section, axis, observed, section


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
        "Every host framework that evidence shows; one name if there is only one."
    )
    runtime: Name | None = observed("Runtime seen.")
    attention: Name | None = observed("Attention seen.")
    gemm: Name | None = observed("Matrix multiplication seen.")
    dispatch: Name | None = observed("Dispatch seen.")
    ssm: Name | None = observed("Kernel family of Mamba and recurrent blocks seen.")
    sharding: Name | None = observed("Partition in the compiled program.")
    replicated: tuple[Name, ...] | None = observed("Arrays that the compiler replicated.")
    overlap: Name | None = observed("Overlap seen.")
    cross_entropy: Name | None = observed("Cross-entropy of the main head seen.")
    mtp_cross_entropy: Name | None = observed("Cross-entropy of the MTP heads seen.")
    posture: Name | None = observed("Compile posture seen.")
    compute_dtype: Name | None = observed("Type of the matmuls that evidence shows.")
    cuda_graphs: bool | None = observed("Whether graphs were captured and replayed.")
    fallbacks: dict[Name, Count] | None = observed("Operators that left the path, with counts (`aten::…`).")
    host_transfers_per_step: float | None = observed("Transfers of live tensors to the host per step.")


class Path(Section):
    """Intended and witnessed, side by side."""

    intended: Intended | None = section("Requested path.")
    witnessed: Witnessed | None = section("What evidence shows.")
