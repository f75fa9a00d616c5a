"""How a framework keeps its tensors: what it stores twice, what lives all the time, and what its allocator wastes.

Each figure is the framework's own default, or what people use it with; a receipt that states the value overrides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

# Reserved over allocated bytes of five eight-GPU runs: 1.06, 1.06, 1.07, 1.08, 1.13 (their median less one).
_CACHING = 0.07
# CUDA context, cuBLAS workspaces and NCCL's channel buffers lie outside the allocator's figures. The planners of the
# lab keep 1.5 GB for them (memory geometry article, `overhead_gb=1.5`).
_CUDA_RESERVE = 1_500_000_000


@dataclass(frozen=True, slots=True)
class FrameworkMemory:
    """One framework's way with memory. Shares are of the bytes that come and go; types are registry names.

    ``zero`` is the stage of state sharding without a stated strategy (0 none, 1 optimizer, 2 gradients, 3 parameters).
    ``master``: whether 16-bit parameters are trained through an fp32 copy. ``persistent_gradients``: whether the
    gradient buffer exists during the forward. ``static``: whether a compiler plans every buffer before the start.
    ``loss_bytes`` are bytes a logit at the loss: 16-bit logits, their fp32 copy, and its gradient where that does not
    take the copy's place. torch's cross-entropy holds log-probabilities, their gradient and that of the logits at once
    (storages alive in torch 2.13: 14.25 bytes a logit, and 12.25 where the loop drops the 16-bit logits first).
    """

    name: str
    source: str
    parameter_dtype: str
    gradient_dtype: str
    master: bool
    persistent_gradients: bool
    zero: int
    loss_bytes: float
    allocator_share: float
    reserve_bytes: int
    static: bool = False


MEGATRON = FrameworkMemory(
    "megatron",
    "Megatron-Core: docs/source/api-guide/dist_optimizer.md (6 + 12/d bytes a parameter for bf16 parameters with fp32 "
    "gradients), distributed/param_and_grad_buffer.py, tensor_parallel/cross_entropy.py",
    parameter_dtype="bf16", gradient_dtype="fp32", master=True, persistent_gradients=True, zero=1,
    loss_bytes=10.0, allocator_share=_CACHING, reserve_bytes=_CUDA_RESERVE,
)  # fmt: skip
DEEPSPEED = FrameworkMemory(
    "deepspeed",
    "Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054, section 3.1 (2 + 2 + 12 bytes a parameter)",
    parameter_dtype="bf16", gradient_dtype="bf16", master=True, persistent_gradients=True, zero=1,
    loss_bytes=14.0, allocator_share=_CACHING, reserve_bytes=_CUDA_RESERVE,
)  # fmt: skip
FSDP = FrameworkMemory(
    "fsdp",
    "torch.distributed.fsdp.fully_shard with MixedPrecisionPolicy: parameters and gradients stay sharded in fp32",
    parameter_dtype="fp32", gradient_dtype="fp32", master=False, persistent_gradients=False, zero=3,
    loss_bytes=12.0, allocator_share=_CACHING, reserve_bytes=_CUDA_RESERVE,
)  # fmt: skip
TORCH = FrameworkMemory(
    "torch",
    "torch.optim over module parameters, torch.nn.functional.cross_entropy (log-softmax is kept for the backward)",
    parameter_dtype="fp32", gradient_dtype="fp32", master=False, persistent_gradients=False, zero=0,
    loss_bytes=14.0, allocator_share=_CACHING, reserve_bytes=_CUDA_RESERVE,
)  # fmt: skip
XLA = FrameworkMemory(
    "xla",
    "MaxText configs/base.yml (weight_dtype float32, scan_layers true); XLA plans every buffer before the program "
    "starts and reports no pool beside it; libtpu's own 0.75 GiB of a v6e's 32 are already outside its limit",
    parameter_dtype="fp32", gradient_dtype="fp32", master=False, persistent_gradients=False, zero=3,
    loss_bytes=6.0, allocator_share=0.0, reserve_bytes=0, static=True,
)  # fmt: skip
NAMED: Mapping[str, FrameworkMemory] = MappingProxyType(
    {
        "megatron": MEGATRON, "nemo": MEGATRON, "nanotron": TORCH, "deepspeed": DEEPSPEED,
        "fsdp": FSDP, "torchtitan": FSDP, "maxtext": XLA, "xla": XLA, "jax": XLA, "torch": TORCH,
    }
)  # fmt: skip


def framework_memory_of(*names: str | None) -> FrameworkMemory | None:
    """The record of the first name that is known (a framework, a lane); None where none is known."""
    for name in names:
        # The longer word first: torchtitan is also a torch, torch-xla is XLA.
        words = sorted((word for word in NAMED if word in (name or "").lower()), key=lambda word: -len(word))
        if "xla" in words:
            return XLA
        if words:
            return NAMED[words[0]]
    return None
