"""Parameters tensor by tensor: how many elements, who may cut them, which optimizer takes them, and what a rank holds.

Shapes are those that the FLOPs formulas multiply (`receipts.metrics.flops.matmuls`); here each is also owned:
*replicated* on every tensor rank (norms, routers, biases), *tensor*-sharded (projections, vocabulary) or
*expert*-sharded. A rank's parameters, gradients and optimizer states are what tensor, pipeline, state and expert
sharding leave, in that order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from receipts.estimate.setup import Architecture, Layer, ParallelLayout, Setup
from receipts.metrics.flops.geometry import Mamba3, MatrixRecurrence
from receipts.receipt.patterns import BlockKind

CONVOLUTION = 4  # taps of Mamba's causal convolution (Dao and Gu 2024, arXiv:2405.21060, `d_conv`)


class Owner(StrEnum):
    """Which axis may cut a tensor."""

    REPLICATED = "replicated"
    TENSOR = "tensor"
    EXPERT = "expert"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A parameter tensor on one rank after tensor and expert sharding, before state sharding.

    ``elements`` on this rank; ``whole`` of the whole tensor; ``matrix`` whether an optimizer for hidden matrices (Muon)
    takes it: embeddings, output head, routers, norms and vectors are never its.
    """

    name: str
    owner: Owner
    elements: float
    whole: float
    matrix: bool


def heads_a_rank(heads: int, kv_heads: int, tensor: int) -> tuple[int, int]:
    """Query and key-value heads on each tensor rank; a key-value head is repeated where there are too few.

    56 and 8 heads over 8 ranks are 7 and 1. Shoeybi et al. 2019, arXiv:1909.08053, section 3 (heads are cut over
    ranks); Megatron-Core, transformer/attention.py (`num_query_groups` below the tensor degree are repeated).
    """
    return -(-heads // tensor), max(1, -(-kv_heads // tensor)) if kv_heads else 0


def _tensor(name: str, whole: float, ways: int, *, matrix: bool = True) -> Tensor:
    return Tensor(name, Owner.TENSOR, whole / ways, whole, matrix)


def _replicated(name: str, whole: float) -> Tensor:
    return Tensor(name, Owner.REPLICATED, whole, whole, matrix=False)


def block(model: Architecture, layout: ParallelLayout, kind: BlockKind) -> tuple[Tensor, ...]:
    """The tensors of one block on a rank."""
    if kind is BlockKind.ATTENTION or (kind is BlockKind.SPARSE_ATTENTION and model.indexer is None):
        return _attention(model, layout)
    if kind is BlockKind.SPARSE_ATTENTION and (indexer := model.indexer) is not None:
        # Whole on every tensor rank (Megatron-Core, experimental_attention_variant/dsa.py: `duplicated`), with the
        # LayerNorm of its key.
        query = model.latent.query if model.latent is not None and model.latent.query else model.hidden
        whole = indexer.projections(model.hidden, query)
        return (
            *_attention(model, layout),
            Tensor("indexer", Owner.REPLICATED, whole, whole, matrix=True),
            _replicated("indexer norm", 2 * indexer.width),
        )
    if kind is BlockKind.MLP:
        return (
            _replicated("mlp norm", model.hidden),
            _tensor("mlp", model.projections * model.hidden * model.ffn, layout.tensor),
        )
    return _experts(model, layout) if kind is BlockKind.EXPERT else _state_space(model, layout, kind)


def _attention(model: Architecture, layout: ParallelLayout) -> tuple[Tensor, ...]:
    if model.latent is not None:
        # Down to the latent vectors on every tensor rank, up to the heads of a rank (Megatron-Core,
        # transformer/multi_latent_attention.py: `linear_kv_down_proj` is duplicated).
        latent = model.latent
        down, up, out = latent.projections(model.hidden, model.heads)
        return (
            _replicated("attention norm", model.hidden + latent.query + latent.key_value),
            Tensor("qkv down", Owner.REPLICATED, down, down, matrix=True),
            _tensor("qkv up", up, layout.tensor),
            _tensor("attention out", out, layout.tensor),
        )
    h, d = model.hidden, model.head_dim
    query, key_value = heads_a_rank(model.heads, model.kv_heads, layout.tensor)
    whole = h * (model.heads + 2 * model.kv_heads) * d
    return (
        _replicated("attention norm", h),
        Tensor("qkv", Owner.TENSOR, h * (query + 2 * key_value) * d, whole, matrix=True),
        _tensor("attention out", model.heads * d * h, layout.tensor),
    )


def _experts(model: Architecture, layout: ParallelLayout) -> tuple[Tensor, ...]:
    """Router as Shazeer et al. 2017, arXiv:1701.06538; banks cut over experts first, then inside each expert."""
    h = model.hidden
    bank = model.experts * model.projections * h * model.expert_ffn
    parts = [
        _replicated("expert norm", h),
        _replicated("router", h * model.experts),
        Tensor("experts", Owner.EXPERT, bank / (layout.expert * layout.expert_tensor), bank, matrix=True),
    ]
    if model.shared_ffn:
        parts.append(_tensor("shared expert", model.projections * h * model.shared_ffn, layout.tensor))
    return tuple(parts)


def _state_space(model: Architecture, layout: ParallelLayout, kind: BlockKind) -> tuple[Tensor, ...]:
    """Mamba-2 (Dao and Gu 2024, arXiv:2405.21060, section 7; Megatron-Core, ssm/mamba_mixer.py)."""
    if kind is BlockKind.RECURRENT and model.recurrence is not None:
        return _matrix_recurrence(model.hidden, model.recurrence, layout.tensor)
    if model.mamba3 is not None:
        return _mamba3(model, model.mamba3, layout.tensor)
    h, inner, heads, ways = model.hidden, model.ssm_inner, model.ssm_heads, layout.tensor
    groups = 2 * model.ssm_groups * model.ssm_state
    groups_here = 2 * max(1, -(-model.ssm_groups // ways)) * model.ssm_state
    taps = CONVOLUTION + 1
    return (
        _replicated("mixer norm", h),
        Tensor(
            "mixer in", Owner.TENSOR, h * ((2 * inner + heads) / ways + groups_here),
            h * (2 * inner + heads + groups), matrix=True,
        ),
        _tensor("mixer scalars", 3 * heads + inner, ways, matrix=False),
        _tensor("mixer out", inner * h, ways),
        Tensor("convolution", Owner.TENSOR, taps * (inner / ways + groups_here), taps * (inner + groups), matrix=False),
    )  # fmt: skip


def _mamba3(model: Architecture, mamba3: Mamba3, ways: int) -> tuple[Tensor, ...]:
    """mamba_ssm, modules/mamba3.py: a head has biases of keys and queries, and three projections of ranks."""
    h, inner, heads, state = model.hidden, model.ssm_inner, model.ssm_heads, model.ssm_state
    cut, shared = mamba3.matrix(h, inner, heads, model.ssm_groups, state)
    groups_here = max(1, -(-model.ssm_groups // ways))
    _, here = mamba3.matrix(h, inner, heads, groups_here, state)
    return (
        _replicated("mixer norm", h + 2 * state),
        Tensor("mixer in", Owner.TENSOR, h * (cut / ways + here), h * (cut + shared), matrix=True),
        _tensor("mixer scalars", 2 * heads + mamba3.rank * (2 * heads * state + 3 * inner), ways, matrix=False),
        _tensor("mixer out", inner * h, ways),
    )


def _matrix_recurrence(h: int, rnn: MatrixRecurrence, ways: int) -> tuple[Tensor, ...]:
    """lm-engine, sequence_mixer_blocks/m2rnn: one query and one key head are whole on every rank."""
    shared = 2 * rnn.key
    whole, convolved = h * rnn.columns, (CONVOLUTION + 1) * rnn.convolved
    return (
        _replicated("mixer norm", h),
        Tensor("mixer in", Owner.TENSOR, h * ((rnn.columns - shared) / ways + shared), whole, matrix=True),
        _tensor("mixer scalars", 2 * rnn.heads + 2 * rnn.inner, ways, matrix=False),
        _tensor("mixer out", rnn.inner * h, ways),
        _tensor("convolution", convolved, ways, matrix=False),
        _tensor("transition", rnn.heads * rnn.value**2, ways, matrix=False),
    )


def layers(model: Architecture, layout: ParallelLayout, which: Iterable[Layer]) -> Iterator[Tensor]:
    """The tensors of these layers on a rank."""
    blocks = {kind: block(model, layout, kind) for kind in {kind for layer in which for kind in layer}}
    for layer in which:
        for kind in layer:
            yield from blocks[kind]


def ends(model: Architecture, layout: ParallelLayout, *, first: bool, last: bool) -> Iterator[Tensor]:
    """Embedding of the first stage; norm, head and MTP depths of the last.

    The vocabulary is cut over tensor ranks (Shoeybi et al. 2019, section 3). A tied head on another stage is a copy
    (Megatron-Core, common/embeddings). An MTP depth has two norms, a projection of two hidden vectors to one, and the
    layers of one depth; it shares embedding and head (DeepSeek-V3, arXiv:2412.19437, section 2.2).
    """
    h, vocabulary = model.hidden, model.vocabulary
    if first:
        yield _tensor("embedding", vocabulary * h, layout.tensor, matrix=False)
    if not last:
        return
    yield _replicated("final norm", h)
    if not model.tied or not first:
        yield _tensor("head", vocabulary * h, layout.tensor, matrix=False)
    for _ in range(model.mtp_depth):
        yield _replicated("mtp norms", 2 * h)
        yield _tensor("mtp projection", 2 * h * h, layout.tensor)
        yield from layers(model, layout, model.mtp)


def parameters_total(model: Architecture) -> float:
    """Parameters of the whole model."""
    alone = ParallelLayout()
    stack = sum(tensor.whole for tensor in layers(model, alone, model.layers))
    return stack + sum(tensor.whole for tensor in ends(model, alone, first=True, last=True))


@dataclass(frozen=True, slots=True)
class States:
    """Bytes on a rank. ``parameters`` by owner; ``gathered`` are unsharded parameters of the rank, in elements."""

    replicated: float
    tensor: float
    expert: float
    gradients: float
    matrix_optimizer: float
    other_optimizer: float
    workspace: float
    elements: float


def sharded(elements: float, setup: Setup, owner: Owner, stage: int) -> float:
    """Elements that a rank keeps of a tensor once states of ``stage`` are sharded.

    Stage 1 shards optimizer states, 2 gradients too, 3 parameters too: Rajbhandari et al. 2020, arXiv:1910.02054,
    section 5. An expert's replicas are fewer, so its states are cut fewer ways (Megatron-Core, dist_optimizer.md).
    """
    if setup.layout.zero < stage:
        return elements
    return elements / (setup.layout.expert_shard if owner is Owner.EXPERT else setup.layout.shard)


def stored_bytes(tensor: Tensor, setup: Setup) -> float:
    """Bytes that a rank keeps of a parameter, with its FP8 copies where a matmul takes them."""
    types = setup.types
    copied = tensor.matrix and (types.fp8 == "all" or (types.fp8 == "experts" and tensor.owner is Owner.EXPERT))
    each = (0.0 if "parameters" in setup.offload else types.parameter) + (types.copy if copied else 0.0)
    return sharded(tensor.elements, setup, tensor.owner, 3) * each


def states(setup: Setup, tensors: Iterable[Tensor]) -> States:
    """The states of these tensors.

    Parameters in their stored type; gradients in theirs; optimizer by tensor type (Muon takes hidden matrices, AdamW
    the rest), with an fp32 master copy where the framework keeps one: Micikevicius et al. 2018, arXiv:1710.03740,
    section 3.1, and 2 + 2 + 12 bytes of ZeRO's section 3.1. States in host memory count nothing (Ren et al. 2021,
    ZeRO-Offload, arXiv:2101.06840).
    """
    held = dict.fromkeys(Owner, 0.0)
    gradients = matrix = other = elements = largest = 0.0
    types = setup.types
    for tensor in tensors:
        elements += tensor.elements
        held[tensor.owner] += stored_bytes(tensor, setup)
        if setup.serving:
            continue
        gradients += sharded(tensor.elements, setup, tensor.owner, 2) * types.gradient
        mine = sharded(tensor.elements, setup, tensor.owner, 1)
        takes = tensor.matrix or not setup.matrix_optimizer.matrices_only
        kind = setup.matrix_optimizer if takes else setup.other_optimizer
        bytes_ = 0.0 if "optimizer" in setup.offload else mine * (kind.bytes_per_element + types.master)
        if takes and setup.matrix_optimizer.matrices_only:
            matrix += bytes_
            largest = max(largest, kind.workspace * 2.0 * tensor.elements)
        else:
            other += bytes_
    return States(
        held[Owner.REPLICATED], held[Owner.TENSOR], held[Owner.EXPERT],
        gradients, matrix, other, largest, elements,
    )  # fmt: skip
