"""What serving holds beside parameters: the KV cache of attending layers, the states of recurrent ones."""

from __future__ import annotations

from collections.abc import Sequence

from receipts.estimate.setup import Layer, Setup
from receipts.estimate.weights import CONVOLUTION, heads_a_rank
from receipts.receipt.alphabets import ATTENDING, STATEFUL, BlockKind


def attention_map(which: Sequence[Layer]) -> tuple[int, ...]:
    """Positions of the layers that own a cache: those that attend, and no others."""
    return tuple(index for index, layer in enumerate(which) if ATTENDING & set(layer))


def kv_cache(setup: Setup, which: Sequence[Layer]) -> float:
    """2 · sequences · tokens · key-value heads · head width · bytes for each layer of the attention map.

    Shazeer 2019, arXiv:1911.02150, section 2.4 (keys and values of every earlier token); Ainslie et al. 2023,
    arXiv:2305.13245 (only the key-value heads). Kwon et al. 2023, arXiv:2309.06180, section 4 for the paged form,
    whose last block is the only waste. Latent attention holds one vector and one key with positions instead, whole on
    every tensor rank (DeepSeek-V2 2024, arXiv:2405.04434, section 2.1.4). An indexer has a key of its own in one byte
    and a scale in fp32 for 128 of them (DeepSeek-V3.2-Exp, inference/model.py). Mamba blocks hold none of it.
    """
    if not setup.serving:
        return 0.0
    model = setup.model
    _, heads = heads_a_rank(model.heads, model.kv_heads, setup.layout.tensor)
    tokens = -(-setup.length // setup.kv_block) * setup.kv_block
    token = setup.kv_latent or 2 * heads * model.head_dim
    one = token * (setup.kv_bytes or setup.types.compute)
    choosing = sum(BlockKind.SPARSE_ATTENTION in layer for layer in which) if model.indexer is not None else 0
    key = model.indexer.width * (1 + 4 / 128) if model.indexer is not None else 0.0
    return setup.batch.micro * tokens * (len(attention_map(which)) * one + choosing * key)


def state_pool(setup: Setup, which: Sequence[Layer]) -> float:
    """One fp32 state and one convolution window a sequence for each recurrent layer, whatever the context's length.

    Gu and Dao 2023, arXiv:2312.00752, section 3.3.2 (the state is inner width · state width); vLLM,
    model_executor/layers/mamba: a pool of states beside the cache. Mamba-3 has no window: it keeps the last keys of
    every rank, the last input and the angles (mamba_ssm, modules/mamba3.py, `allocate_inference_cache`). M2RNN keeps
    its matrix in the compute type (lm-engine, `ConstantCache`).
    """
    if not setup.serving:
        return 0.0
    kinds = [kind for layer in which for kind in layer if kind in STATEFUL]
    return setup.batch.micro * sum(_state(setup, kind) for kind in kinds) / setup.layout.tensor


def _state(setup: Setup, kind: BlockKind) -> float:
    """Bytes of one sequence in one block, over all tensor ranks."""
    model, size = setup.model, setup.types.compute
    rnn, mamba3 = model.recurrence, model.mamba3
    if kind is BlockKind.RECURRENT and rnn is not None:
        return (rnn.heads * rnn.key * rnn.value + (CONVOLUTION - 1) * rnn.convolved) * size
    state = model.ssm_inner * model.ssm_state * 4.0
    if mamba3 is not None:
        last = mamba3.rank * model.ssm_heads * model.ssm_state + model.ssm_inner
        return state + last * size + model.ssm_heads * mamba3.angles * 4.0
    return state + (model.ssm_inner + 2 * model.ssm_groups * model.ssm_state) * (CONVOLUTION - 1) * size
