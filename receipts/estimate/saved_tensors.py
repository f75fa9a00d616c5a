"""What each kind of block keeps for its backward pass, tensor by tensor, in bytes on a rank.

The lists follow Korthikanti et al. 2022, arXiv:2205.05198, section 4 (equation 1 counts 34·s·b·h for a 16-bit block of
multi-head attention and a plain MLP of four widths with dropout), with the widths that the model really has, without
dropout, with gated feed-forwards and with attention that keeps a row sum and no scores (Dao et al. 2022,
arXiv:2205.14135).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from receipts.estimate import saved_mixers
from receipts.estimate.kept import SavedTensor
from receipts.estimate.routing import RoutingScratch, routing
from receipts.estimate.setup import Setup
from receipts.estimate.weights import heads_a_rank
from receipts.receipt.alphabets import ATTENDING, STATEFUL, BlockKind

# Chunk of the state-space dual form (mamba_ssm, ops/triton/ssd_combined.py, chunk_size of Mamba2).
CHUNK = 256


def saved_tensors(setup: Setup, kind: BlockKind) -> tuple[SavedTensor, ...]:
    """Everything that one block keeps when nothing is recomputed."""
    stream = (
        SavedTensor("block input", "input", stream_bytes(setup)),
        SavedTensor("norm output", "norm", stream_bytes(setup)),
    )
    tensors = (*stream, *_own(setup, kind))
    if setup.types.fp8 == "all" or (setup.types.fp8 == "experts" and kind is BlockKind.EXPERT):
        return tuple(_in_fp8(setup, kind, tensor) for tensor in tensors)
    return tensors


def _own(setup: Setup, kind: BlockKind) -> Iterable[SavedTensor]:
    """What a block keeps beside its input and the norm of it."""
    model = setup.model
    if kind is BlockKind.SPARSE_ATTENTION and model.indexer is not None:
        core = saved_mixers.full_selection if model.latent is None else saved_mixers.latent_selection
        return (*core(setup), *saved_mixers.indexer(setup, model.indexer))
    if kind in ATTENDING:
        return _attention(setup)
    if kind is BlockKind.RECURRENT and model.recurrence is not None:
        return saved_mixers.matrix_recurrence(setup, model.recurrence)
    if kind in STATEFUL:
        return _state_space(setup) if model.mamba3 is None else saved_mixers.mamba3(setup, model.mamba3)
    if kind is BlockKind.MLP:
        return _feed_forward(setup, setup.model.ffn, float(setup.tokens), setup.layout.tensor, "mlp")
    return _experts(setup)


def _in_fp8(setup: Setup, kind: BlockKind, tensor: SavedTensor) -> SavedTensor:
    """A tensor that an FP8 matmul reads is kept as that operand, in one byte (TransformerEngine, issue 1764).

    What another operation reads in its backward as well stays beside it: the output of attention, the router's input.
    """
    size = setup.types.compute
    if tensor.name == "attention output":
        return replace(tensor, bytes=tensor.bytes * (1 + 1 / size))
    read = tensor.part == "activation" or (tensor.part == "norm" and kind is not BlockKind.EXPERT)
    return replace(tensor, bytes=tensor.bytes / size) if read else tensor


def stream_bytes(setup: Setup) -> float:
    """The residual stream of a micro batch: tokens · hidden, divided by the tensor degree under sequence parallelism.

    Korthikanti et al. 2022, section 4.2.2: without it norms and residuals are replicated over tensor ranks.
    """
    ways = setup.layout.tensor if setup.layout.sequence_parallel else 1
    return setup.tokens * setup.model.hidden * setup.types.compute / ways


def _attention(setup: Setup) -> tuple[SavedTensor, ...]:
    model, size, tokens = setup.model, setup.types.compute, setup.tokens
    query, key_value = heads_a_rank(model.heads, model.kv_heads, setup.layout.tensor)
    wide, value = (query + key_value) * model.head_dim, key_value * model.head_dim
    saved = [SavedTensor("attention output", "projection", tokens * query * model.head_dim * size)]
    if model.latent is not None:
        # Each head has keys and values of its own, and the latent vectors are kept before and after their norms.
        latent = model.latent
        wide, value = 2 * query * (latent.nope + latent.rope), query * latent.value
        split = setup.layout.tensor if setup.layout.sequence_parallel else 1
        vectors = 2 * tokens * (latent.query + latent.key_value) * size / split
        saved = [
            SavedTensor("attention output", "projection", tokens * value * size),
            SavedTensor("latent vectors", "projection", vectors),
        ]
    saved.append(SavedTensor("query, key, value", "projection", tokens * (wide + value) * size))
    if setup.fused_attention:
        saved.append(SavedTensor("row sums", "core", tokens * query * 4.0))
    else:
        # Scores after the softmax, as the values' product needs them: the 5·a·s²·b of the paper without its dropout.
        saved.append(
            SavedTensor("scores", "core", setup.batch.micro * query * setup.length * setup.batch.length * size)
        )
    return tuple(saved)


def _feed_forward(setup: Setup, width: int, rows: float, ways: int, name: str) -> tuple[SavedTensor, ...]:
    """What goes into the activation function, and what comes out of it: p − 1 widths and one."""
    size = setup.types.compute
    return (
        SavedTensor(f"{name} hidden", "projection", rows * (setup.model.projections - 1) * width / ways * size),
        SavedTensor(f"{name} activation", "activation", rows * width / ways * size),
    )


def _experts(setup: Setup) -> tuple[SavedTensor, ...]:
    """Router scores in fp32, the experts' hidden rows, the shared expert. Receive buffers are routing scratch.

    The routing weights scale the activation, so that the experts' outputs need not be kept (Megatron-Core,
    moe/experts.py, `weighted_bias_swiglu_impl`).
    """
    model, routed = setup.model, routing_of(setup)
    saved = [SavedTensor("router scores", "routing", setup.tokens * model.experts * 4.0)]
    saved += _feed_forward(setup, model.expert_ffn, routed.rows, setup.layout.expert_tensor, "expert")
    if model.shared_ffn:
        saved += _feed_forward(setup, model.shared_ffn, float(setup.tokens), setup.layout.tensor, "shared expert")
    return tuple(saved)


def routing_of(setup: Setup) -> RoutingScratch:
    """The routing scratch of one expert block."""
    model, layout = setup.model, setup.layout
    return routing(
        tokens=setup.routed_tokens,
        top_k=model.top_k,
        experts=model.experts,
        local_experts=max(1, model.experts // layout.expert),
        hidden=model.hidden,
        element_bytes=setup.types.compute,
        capacity_factor=model.capacity_factor,
        sources=layout.expert,
    )


def _state_space(setup: Setup) -> tuple[SavedTensor, ...]:
    """Mamba-2: projections, scan output, gated output (mamba_ssm, MambaSplitConv1dScanCombinedFn.forward)."""
    model, tokens, size, ways = setup.model, setup.tokens, setup.types.compute, setup.layout.tensor
    inner = model.ssm_inner / ways
    groups = 2 * max(1, -(-model.ssm_groups // ways)) * model.ssm_state
    heads = model.ssm_heads / ways
    return (
        SavedTensor("projections", "projection", tokens * (2 * inner + groups + heads) * size),
        SavedTensor("scan output", "core", tokens * inner * size),
        SavedTensor("gated output", "activation", tokens * inner * size),
    )
