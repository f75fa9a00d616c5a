"""The sum over the blocks of a hybrid as they are: sparse attention with its indexer, Mamba-3 with MIMO, M2RNN.

`receipts.metrics.flops.megatron.pattern` counts what Megatron-Core prints: full attention, and Mamba-2 for M and R.
Here each block is its own definition (`receipts.metrics.flops.mixers`), three times for forward and backward, but for
an indexer without a loss, which has no backward pass. An MTP depth is a head, as in `pattern`.
"""

from __future__ import annotations

from receipts.metrics.flops.formula import FlopsFormula, FlopsPerToken, missing, need
from receipts.metrics.flops.geometry import Geometry
from receipts.metrics.flops.megatron import attention_work, block_work, latent_work
from receipts.metrics.flops.mixers import INDEXER
from receipts.receipt.alphabets import STATEFUL, BlockKind


def blocks(geometry: Geometry) -> FlopsPerToken:
    """FLOPs a token of a stack that a pattern describes."""
    if geometry.blocks is None:
        return missing([geometry.path("blocks"), *need(geometry, "layers")[1]])
    if BlockKind.DELTA in geometry.blocks or geometry.siso:
        return FlopsPerToken(None, because="no sum is known here for gated delta nets and Mamba-3 without MIMO")
    (hidden, vocabulary, length, depth), absent = need(geometry, "hidden", "vocabulary", "sequence_length", "mtp_depth")
    forward = 2.0 * hidden * vocabulary * (1 + depth)
    whole = geometry.blocks.get(BlockKind.ATTENTION, 0)
    sparse = geometry.blocks.get(BlockKind.SPARSE_ATTENTION, 0) + geometry.sparse
    total = 3.0 * forward
    absent += geometry.lacking
    for kind, count in geometry.blocks.items():
        flops, more = _forward(geometry, kind, length)
        total += 3.0 * (count if kind is not BlockKind.ATTENTION else whole - geometry.sparse) * flops
        absent += more
    if sparse:
        flops, more = _sparse(geometry, length)
        total += sparse * flops
        absent += more
    return missing(absent) if absent else FlopsPerToken(total)


def _forward(geometry: Geometry, kind: BlockKind, length: int) -> tuple[float, tuple[str, ...]]:
    if kind is BlockKind.SPARSE_ATTENTION:
        return 0.0, ()  # counted with those that the attention kinds call sparse
    if kind is BlockKind.ATTENTION:
        return (attention_work if geometry.latent is None else latent_work)(geometry, length, 0.5)
    return _mixer(geometry, kind, length) if kind in STATEFUL else block_work(geometry, kind, length)


def _sparse(geometry: Geometry, length: int) -> tuple[float, tuple[str, ...]]:
    """Forward and backward of attention over the top k, and of the indexer, which learns from its own loss alone."""
    whole, absent = (attention_work if geometry.latent is None else latent_work)(geometry, length, 0.0)
    (hidden, heads), more = need(geometry, "hidden", "heads")
    indexer = geometry.indexer
    if indexer is None:
        return 0.0, absent + more + tuple(paths[0] for paths in INDEXER)
    width = geometry.latent
    head = 2 * (geometry.head_dim or 0) if width is None else width.nope + width.rope + width.value
    core = 2.0 * heads * head * indexer.seen(length)
    query = hidden if width is None or not width.query else width.query
    selecting = 2.0 * indexer.projections(hidden, query) + indexer.scoring(length)
    return 3.0 * (whole + core) + (3.0 if indexer.trained else 1.0) * selecting, absent + more


def _mixer(geometry: Geometry, kind: BlockKind, length: int) -> tuple[float, tuple[str, ...]]:
    (hidden, state, groups, heads), absent = need(geometry, "hidden", "ssm_state", "ssm_groups", "ssm_heads")
    recurrence, mamba3 = geometry.recurrence, geometry.mamba3
    if kind is BlockKind.RECURRENT and recurrence is not None:
        products = 2.0 * hidden * (recurrence.columns + recurrence.inner)
        return products + 8.0 * recurrence.convolved + recurrence.scan(), need(geometry, "hidden")[1]
    if mamba3 is None:
        return block_work(geometry, kind, length)
    inner = 2 * hidden
    columns = sum(mamba3.matrix(hidden, inner, heads, groups, state))
    return 2.0 * hidden * (columns + inner) + mamba3.scan(inner, state), absent


FORMULAS = (
    FlopsFormula(
        "blocks",
        "sum over the blocks of a pattern as they are: top-k attention and its indexer, Mamba-3 MIMO, M2RNN",
        "DeepSeek-V3.2-Exp 2025, section 2.1; mamba_ssm, modules/mamba3.py; Mishra et al. 2026, arXiv:2603.14360",
        blocks,
    ),
)
