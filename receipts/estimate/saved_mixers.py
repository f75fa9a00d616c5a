"""What the blocks of a hybrid keep for their backward pass: sparse attention, Mamba-3 with MIMO, M2RNN.

Each list is what autograd saves in a plain torch module of the published definition, in which a kernel keeps what the
published kernel keeps (`benchmarks/fit_autograd.py`, within 1 %). A compiler keeps the same, but for copies: it casts
and spreads a tensor again where it reads it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from receipts.estimate.kept import SavedTensor
from receipts.estimate.setup import Setup
from receipts.estimate.weights import heads_a_rank
from receipts.metrics.flops.mixers import Indexer, Mamba3, MatrixRecurrence

_CHOSEN = 8  # bytes of an index: torch.topk answers in int64, jax.lax.top_k in int32
# Queries whose scores stand at once where a kernel makes them: Megatron-Core, experimental_attention_variant/dsa.py
# (`fused_indexer_block_size`), and the decoder of receipts.estimate.aot.
BLOCK = 8192
QUERIES = 256


def indexer(setup: Setup, chooses: Indexer) -> Iterator[SavedTensor]:
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
    absorbed = (heads + 1) * wide if _keeps_operands(setup) else 0
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


def _keeps_operands(setup: Setup) -> bool:
    """A kernel keeps its operands; plain operators keep casts of them, and a loss of the indexer the operands too."""
    chooses = setup.model.indexer
    return setup.fused_selection or (chooses is not None and chooses.trained)


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


def mamba3(setup: Setup, kind: Mamba3) -> Iterator[SavedTensor]:
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


def matrix_recurrence(setup: Setup, rnn: MatrixRecurrence) -> Iterator[SavedTensor]:
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
