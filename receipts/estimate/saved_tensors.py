"""What each kind of block keeps for its backward pass, tensor by tensor, in bytes on a rank; and routing scratch.

The lists follow Korthikanti et al. 2022, arXiv:2205.05198, section 4 (equation 1 counts 34·s·b·h for a 16-bit block
of multi-head attention and a plain MLP of four widths with dropout), with the widths that the model really has,
without dropout, with gated feed-forwards and with attention that keeps a row sum and no scores (Dao et al. 2022,
arXiv:2205.14135).

For the blocks of a hybrid (sparse attention, Mamba-3 with MIMO, M2RNN) each list is what autograd saves in a plain
torch module of the published definition, in which a kernel keeps what the published kernel keeps
(`benchmarks/fit_autograd.py`, within 1 %). A compiler keeps the same, except copies: it casts and spreads a tensor
again where it reads it.

The routing scratch of expert blocks is counts, receive and combine buffers, as the capacity factor sizes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from receipts.estimate.setup import Setup
from receipts.estimate.weights import heads_a_rank
from receipts.metrics.arithmetic import capacity
from receipts.metrics.flops.geometry import Indexer, Mamba3, MatrixRecurrence
from receipts.receipt.patterns import ATTENDING, STATEFUL, BlockKind

# What a selective recompute may name (Megatron-Core, `recompute_modules`; MaxText, remat policies).
BlockPart = Literal["input", "norm", "projection", "core", "activation", "routing"]


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """A tensor kept from forward to backward. ``part`` is what a selective recompute drops it by."""

    name: str
    part: BlockPart
    bytes: float


@dataclass(frozen=True, slots=True)
class RoutingScratch:
    """Scratch of one expert block on a rank, in bytes. ``rows`` are token copies that this rank's experts take.

    ``capacity`` is rows of an expert from one of ``sources`` ranks, ``local_experts`` the experts of this rank.
    """

    capacity: int
    rows: float
    counts: float
    receive: float
    combine: float
    local_experts: int = 1
    sources: int = 1

    @property
    def total(self) -> float:
        """All three together."""
        return self.counts + self.receive + self.combine

    @property
    def one_source(self) -> RoutingScratch:
        """What the tokens of one rank alone need: the exchange of an expert degree of 1."""
        ways = self.sources
        return replace(self, rows=self.rows / ways, receive=self.receive / ways, combine=self.combine / ways, sources=1)


def routing(
    *,
    tokens: int,
    top_k: int,
    experts: int,
    local_experts: int,
    hidden: int,
    element_bytes: float,
    capacity_factor: float | None = None,
    sources: int = 1,
) -> RoutingScratch:
    """Counts in 4-byte integers a routed token; receive and combine: capacity · hidden · local experts · bytes.

    With a capacity factor every local expert takes `capacity` rows from each of ``sources`` ranks, filled or not (the
    padded all-to-all of GShard, section 3.2). Without one nothing is dropped and nothing padded, and at even routing a
    rank takes as many rows as it sends (Gale et al. 2022, MegaBlocks, arXiv:2211.15841).
    """
    if capacity_factor is None:
        rows = tokens * top_k / experts * local_experts * sources
        each = math.ceil(tokens * top_k / experts)
    else:
        each = capacity(tokens, top_k, experts, capacity_factor)
        rows = float(each * local_experts * sources)
    buffer = rows * hidden * element_bytes
    return RoutingScratch(each, rows, tokens * top_k * 4.0, buffer, buffer, local_experts, sources)


_CHOSEN = 8  # bytes of an index: torch.topk answers in int64, jax.lax.top_k in int32
# Queries whose scores stand at once where a kernel makes them: Megatron-Core, experimental_attention_variant/dsa.py
# (`fused_indexer_block_size`), and the decoder of receipts.plugins.aot.compiler.
BLOCK = 8192
QUERIES = 256


def indexer_tensors(setup: Setup, chooses: Indexer) -> Iterator[SavedTensor]:
    """The chosen keys; where a loss trains the indexer its queries, weights and key, and the key before its norm.

    Whole on every tensor rank, which gathers the sequence first (Megatron-Core, `DSAIndexer.forward_before_topk`).
    """
    size, tokens = setup.types.compute, setup.tokens
    chosen = _CHOSEN / (2 if setup.framework.static else 1)
    yield SavedTensor("chosen keys", "core", tokens * min(chooses.top_k, setup.batch.length) * chosen)
    if chooses.trained:
        widths = chooses.heads * (chooses.width + 1) + 2 * chooses.width
        yield SavedTensor("index queries and keys", "core", tokens * widths * size)


def latent_selection(setup: Setup) -> Iterator[SavedTensor]:
    """MLA in its multi-query form, in which every head reads the latent vector: DeepSeek-V3.2-Exp 2025, section 2.1.

    Queries of a head are kept before and after they are turned into the latent width (Megatron-Core,
    `_run_sparse_attention`, absorbed).
    """
    latent, heads = setup.model.latent, heads_a_rank(setup.model.heads, 1, setup.layout.tensor)[0]
    assert latent is not None
    size, tokens = setup.types.compute, setup.tokens
    split = setup.layout.tensor if setup.layout.sequence_parallel else 1
    wide = latent.key_value + latent.rope
    yield SavedTensor("latent vectors", "projection", tokens * (2 * latent.query + wide) * size / split)
    # A kernel keeps its operands; plain operators keep casts of them, and a loss of the indexer the operands too.
    chooses = setup.model.indexer
    absorbed = (heads + 1) * wide if setup.fused_selection or (chooses is not None and chooses.trained) else 0
    kept = heads * (latent.nope + latent.rope) + absorbed
    yield SavedTensor("query, key, value", "projection", tokens * kept * size)
    out = heads * (latent.key_value + latent.value)
    yield SavedTensor("attention output", "projection", tokens * out * size)
    yield from _core(setup, heads, wide, latent.key_value)


def full_selection(setup: Setup) -> Iterator[SavedTensor]:
    """Grouped-query attention whose queries see the chosen keys."""
    model = setup.model
    query, key_value = heads_a_rank(model.heads, model.kv_heads, setup.layout.tensor)
    wide = setup.tokens * model.head_dim * setup.types.compute
    yield SavedTensor("query, key, value", "projection", (query + 2 * key_value) * wide)
    yield SavedTensor("attention output", "projection", query * wide)
    yield from _core(setup, query, model.head_dim, model.head_dim)


def _core(setup: Setup, heads: int, wide: int, value: int) -> Iterator[SavedTensor]:
    """Row sums of a kernel; else the softmax in fp32, its cast, and operands spread over the heads (fp32 and cast)."""
    tokens, size = setup.tokens, setup.types.compute
    if setup.fused_selection:
        yield SavedTensor("row sums", "core", tokens * heads * 4.0)
        return
    ways = heads if setup.batch.micro > 1 else 1  # of one sequence, torch.matmul reads the one key without copies
    spread = tokens * (heads * wide * 4.0 + ways * (wide * 4.0 + value * size))
    yield SavedTensor("scores", "core", tokens * setup.batch.length * heads * (4.0 + size) + spread)


def selection_scratch(setup: Setup, *, training: bool) -> float:
    """Index scores in fp32 while keys are chosen: those of a block of queries, and their gradient.

    Without a kernel they stand for every query and index head at once, before and after their weights, and with the
    loss the attention that it compares them with, a head (Megatron-Core, `bwd_fused_indexer_loss_naive`).
    """
    model, chooses = setup.model, setup.model.indexer
    if chooses is None:
        return 0.0
    loss = training and chooses.trained
    heads = heads_a_rank(model.heads, 1, setup.layout.tensor)[0]
    whole = setup.tokens * setup.batch.length * 4.0
    if setup.framework.static:
        # Scores of both, a head; their gradients take their place.
        return whole * min(1.0, QUERIES / setup.length) * (chooses.heads + heads)
    if setup.fused_selection:
        return whole * min(1.0, BLOCK / setup.tokens) * (2 if loss else 1)
    return whole * (2 * chooses.heads + (2 * heads if loss else 0))


def mamba3_tensors(setup: Setup, kind: Mamba3) -> Iterator[SavedTensor]:
    """mamba_ssm, modules/mamba3.py and ops/tilelang/mamba3/mamba3_mimo.py, `save_for_backward`.

    Inputs and gate; keys and queries of every rank before and after their norm; decay and step in fp32, 7 a head; the
    angles of a token, spread over heads in fp32; the output. States are recomputed.
    """
    model, tokens, size, ways = setup.model, setup.tokens, setup.types.compute, setup.layout.tensor
    inner, heads = model.ssm_inner / ways, model.ssm_heads / ways
    ranks = 2 * max(1, -(-model.ssm_groups // ways)) * model.ssm_state * kind.rank
    if setup.framework.static:
        widths = 2 * inner + ranks + 3 * heads + kind.angles
        yield SavedTensor("projections", "projection", tokens * widths * size)
    else:
        yield SavedTensor("projections", "projection", tokens * ((2 * inner + 2 * ranks + heads) * size + 28 * heads))
        yield SavedTensor("rotary angles", "core", tokens * heads * kind.angles * 4.0)
    yield SavedTensor("gated output", "activation", tokens * inner * size)


def matrix_recurrence_tensors(setup: Setup, rnn: MatrixRecurrence) -> Iterator[SavedTensor]:
    """lm-engine, sequence_mixer_blocks/m2rnn, with a kernel that keeps a state in fp32 every so many steps.

    The input projection; the convolution before and after its activation, and the kernel's copy; the forget gate in
    fp32; the output before its gate, the gate, and the product before and after its norm.
    """
    tokens, size, ways = setup.tokens, setup.types.compute, setup.layout.tensor
    inner, heads, shared = rnn.inner / ways, rnn.heads / ways, 2 * rnn.key
    convolved = shared + inner
    copies = 1 if setup.framework.static else 4
    yield SavedTensor("projections", "projection", tokens * (copies * convolved + heads + inner) * size)
    if not setup.framework.static:
        yield SavedTensor("forget gate", "core", tokens * heads * (12.0 + size))
    chunks = setup.batch.micro * (math.ceil(setup.length / rnn.steps) + 1)
    yield SavedTensor("states", "core", chunks * heads * rnn.key * rnn.value * 4.0)
    yield SavedTensor("scan output", "core", tokens * inner * size * (1 if setup.framework.static else 3))
    yield SavedTensor("gated output", "activation", tokens * inner * size)


# Chunk of the state-space dual form (mamba_ssm, ops/triton/ssd_combined.py, chunk_size of Mamba2).
CHUNK = 256


def saved_tensors(setup: Setup, kind: BlockKind) -> tuple[SavedTensor, ...]:
    """Everything that one block keeps when nothing is recomputed."""
    stream = (
        SavedTensor("block input", "input", stream_bytes(setup)),
        SavedTensor("norm output", "norm", stream_bytes(setup)),
    )
    model = setup.model
    own: Iterable[SavedTensor]
    if kind is BlockKind.SPARSE_ATTENTION and model.indexer is not None:
        core = full_selection if model.latent is None else latent_selection
        own = (*core(setup), *indexer_tensors(setup, model.indexer))
    elif kind in ATTENDING:
        own = _attention(setup)
    elif kind is BlockKind.RECURRENT and model.recurrence is not None:
        own = matrix_recurrence_tensors(setup, model.recurrence)
    elif kind in STATEFUL:
        own = _state_space(setup) if model.mamba3 is None else mamba3_tensors(setup, model.mamba3)
    elif kind is BlockKind.MLP:
        own = _feed_forward(setup, model.ffn, float(setup.tokens), setup.layout.tensor, "mlp")
    else:
        own = _experts(setup)
    tensors = (*stream, *own)
    if setup.types.fp8 == "all" or (setup.types.fp8 == "experts" and kind is BlockKind.EXPERT):
        return tuple(_in_fp8(setup, kind, tensor) for tensor in tensors)
    return tensors


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
