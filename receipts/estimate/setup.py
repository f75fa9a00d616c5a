"""What a launch would hold, in plain resolved numbers: model, layout, batch and types of one job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from receipts.estimate.framework_memory import FrameworkMemory
from receipts.estimate.optimizer_kind import OptimizerKind
from receipts.metrics.flops.attention import LatentAttention
from receipts.metrics.flops.mixers import Indexer, Mamba3, MatrixRecurrence
from receipts.receipt.alphabets import BlockKind

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
