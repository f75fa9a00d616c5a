"""What a launch would hold, in plain resolved numbers: framework, optimizer, model, layout, batch and types of one job.

A framework stores some tensors twice, keeps some alive all the time, and its allocator wastes some. Each figure is
the framework's own default, or what people use it with; a receipt that states the value overrides it. What an
optimizer keeps a parameter is read from the name that people write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from receipts.metrics.flops.geometry import Indexer, LatentAttention, Mamba3, MatrixRecurrence
from receipts.receipt.patterns import BlockKind

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
    """The record of the first name that is known (a framework, a lane); None if none is known."""
    for name in names:
        # The longer word first: torchtitan is also a torch, torch-xla is XLA.
        words = sorted((word for word in NAMED if word in (name or "").lower()), key=lambda word: -len(word))
        if "xla" in words:
            return XLA
        if words:
            return NAMED[words[0]]
    return None


_EIGHT_BIT = re.compile(r"8[ _-]?bit|int8|\bq8\b|_8bit|quantized")
# Block-wise quantization keeps one fp32 scale for 256 values (bitsandbytes, functional.quantize_blockwise).
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class OptimizerKind:
    """States an element and bytes a state. ``matrices_only``: whether it takes hidden matrices and nothing else.

    ``workspace`` are transient copies of the largest matrix while it is updated, in elements of 2 bytes.
    """

    name: str
    states: int
    state_bytes: float
    matrices_only: bool = False
    workspace: float = 0.0
    source: str = ""

    @property
    def bytes_per_element(self) -> float:
        """Bytes of state a parameter."""
        return self.states * self.state_bytes


_KNOWN: tuple[tuple[str, int, bool, float, str], ...] = (
    # Newton–Schulz keeps the matrix, its Gram matrix and one product in bf16.
    ("muon", 1, True, 3.0, "Jordan et al. 2024, Muon: one momentum, for hidden matrices; the rest by AdamW"),
    ("lion", 1, False, 0.0, "Chen et al. 2023, arXiv:2302.06675: one momentum"),
    ("adafactor", 0, False, 0.0, "Shazeer and Stern 2018, arXiv:1804.04235: rows and columns, sublinear in parameters"),
    ("adagrad", 1, False, 0.0, "Duchi et al. 2011, JMLR 12: one sum of squares"),
    ("rmsprop", 1, False, 0.0, "torch.optim.RMSprop: one mean of squares"),
    ("lamb", 2, False, 0.0, "You et al. 2020, arXiv:1904.00962: two moments"),
    ("sgd", 1, False, 0.0, "torch.optim.SGD with momentum: one buffer"),
    ("adam", 2, False, 0.0, "Kingma and Ba 2015, arXiv:1412.6980: two moments"),
)


def optimizer_of(name: str, state_bytes: float) -> OptimizerKind | None:
    """The optimizer that a name means, with states of ``state_bytes``; None if it names none.

    A name that says 8 bit (``adam8bit``, ``lion8bit``) keeps one byte and a scale for each block, whatever the type.
    """
    lowered = name.lower()
    for word, states, matrices, workspace, source in _KNOWN:
        if word in lowered:
            size = 1.0 + 4.0 / _BLOCK if _EIGHT_BIT.search(lowered) else state_bytes
            return OptimizerKind(word, states, size, matrices, workspace, source)
    return None


Fp8 = Literal["", "all", "experts"]
Layer = tuple[BlockKind, ...]  # one block, or the sub-layers of a fused one


@dataclass(frozen=True, slots=True)
class Architecture:
    """The model. Widths in elements; a width that the model does not have is 0. ``layers`` are in order of depth."""

    hidden: int
    layers: tuple[Layer, ...]
    vocabulary: int
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    latent: LatentAttention | None = None
    ffn: int = 0
    projections: int = 3
    experts: int = 0
    top_k: int = 0
    expert_ffn: int = 0
    shared_ffn: int = 0
    capacity_factor: float | None = None
    ssm_inner: int = 0
    ssm_state: int = 0
    ssm_heads: int = 0
    ssm_groups: int = 0
    indexer: Indexer | None = None
    mamba3: Mamba3 | None = None
    recurrence: MatrixRecurrence | None = None
    tied: bool = False
    mtp: tuple[Layer, ...] = ()
    mtp_depth: int = 0


@dataclass(frozen=True, slots=True)
class ParallelLayout:
    """How the work is cut. Order of sharding: tensor, pipeline, state, expert.

    ``zero`` is the stage of state sharding, ``shard`` the ranks that share a state and ``expert_shard`` those that
    share an expert's; ``gathered``: whether sharded parameters stay whole between forward and backward. ``data`` are
    the ranks that read sequences of their own, and ``stages`` the layers of each pipeline stage.
    """

    tensor: int = 1
    sequence_parallel: bool = False
    context: int = 1
    pipeline: int = 1
    virtual: int = 1
    stages: tuple[int, ...] = ()
    data: int = 1
    zero: int = 0
    shard: int = 1
    expert: int = 1
    expert_tensor: int = 1
    expert_shard: int = 1
    bucket_bytes: int | None = None
    gathered: bool = False


@dataclass(frozen=True, slots=True)
class RankBatch:
    """Sequences a rank takes at once, their length, and how many micro steps make a step."""

    micro: int
    length: int
    accumulation: int = 1


@dataclass(frozen=True, slots=True)
class Types:
    """Bytes an element, by tensor family. ``master`` is 0 where no fp32 copy is kept.

    ``fp8`` are the matmuls that keep their operands in FP8 from forward to backward, as Transformer Engine's do:
    *all*, those of *experts*, or none; ``copy`` is what such a matmul keeps of its weight beside the parameter.
    """

    compute: float = 2.0
    parameter: float = 2.0
    gradient: float = 4.0
    master: float = 4.0
    copy: float = 0.0
    fp8: Fp8 = ""


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that an estimate reads. ``offload`` are states kept in host memory: *optimizer*, *parameters*.

    ``kv_bytes`` an element of a served cache are 0 for those of a matmul, and ``kv_block`` tokens fill a block of it.
    ``kv_latent`` elements hold a token of a layer where attention is latent; 0 where each head has keys and values.
    ``pass_tokens`` are the most that one pass of a server computes, 0 for all of its sequences' tokens.
    ``fused_selection``: whether attention over chosen keys is a kernel that stores no scores.
    ``unstated`` are paths that something was assumed for. ``pressed`` asks for the least that a compiler reaches when
    memory is short (`receipts.estimate.estimate.least`).
    """

    model: Architecture
    layout: ParallelLayout
    batch: RankBatch
    types: Types
    matrix_optimizer: OptimizerKind
    other_optimizer: OptimizerKind
    recompute: frozenset[str]
    framework: FrameworkMemory
    fused_attention: bool = True
    fused_selection: bool = True
    chunked_loss: bool = False
    serving: bool = False
    offload: frozenset[str] = frozenset()
    pressed: bool = False
    unstated: frozenset[str] = frozenset()
    kv_bytes: float = 0.0
    kv_block: int = 1
    kv_latent: int = 0
    pass_tokens: int = 0

    def layers_of(self, stage: int) -> tuple[Layer, ...]:
        """The layers of a pipeline stage."""
        stages = self.layout.stages or (len(self.model.layers),)
        start = sum(stages[:stage])
        return self.model.layers[start : start + stages[stage]]

    @property
    def one_pass(self) -> Setup:
        """What computes at once: a micro batch in training, and in serving as many tokens as a pass takes."""
        if not self.serving or not self.pass_tokens:
            return self
        tokens = min(self.pass_tokens, self.batch.micro * self.batch.length)
        return replace(self, batch=RankBatch(1, tokens))

    @property
    def tokens(self) -> int:
        """Tokens of a micro batch that a rank holds, after context parallelism."""
        return -(-self.batch.micro * self.batch.length // self.layout.context)

    @property
    def routed_tokens(self) -> int:
        """Tokens whose copies one rank sends to the experts of a group that splits them.

        With sequence parallelism a tensor rank routes its own part of the sequence, and the ranks that split an expert
        gather theirs (Megatron-Core, moe/token_dispatcher.py, `MoEAlltoAllTokenDispatcher`).
        """
        split = self.layout.tensor if self.layout.sequence_parallel else 1
        return -(-self.tokens * min(self.layout.expert_tensor, split) // split)

    @property
    def length(self) -> int:
        """Tokens of a sequence that a rank holds."""
        return -(-self.batch.length // self.layout.context)
