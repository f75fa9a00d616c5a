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
    every tensor rank (DeepSeek-V2 2024, arXiv:2405.04434, section 2.1.4). Mamba blocks hold none of it.
    """
    if not setup.serving:
        return 0.0
    model = setup.model
    _, heads = heads_a_rank(model.heads, model.kv_heads, setup.layout.tensor)
    tokens = -(-setup.length // setup.kv_block) * setup.kv_block
    token = setup.kv_latent or 2 * heads * model.head_dim
    one = setup.batch.micro * tokens * token * (setup.kv_bytes or setup.types.compute)
    return float(len(attention_map(which)) * one)


def state_pool(setup: Setup, which: Sequence[Layer]) -> float:
    """One fp32 state and one convolution window a sequence for each recurrent layer, whatever the context's length.

    Gu and Dao 2023, arXiv:2312.00752, section 3.3.2 (the state is inner width · state width); vLLM,
    model_executor/layers/mamba: a pool of states beside the cache.
    """
    if not setup.serving:
        return 0.0
    model, ways = setup.model, setup.layout.tensor
    state = model.ssm_inner / ways * model.ssm_state * 4.0
    window = (model.ssm_inner / ways + 2 * model.ssm_groups * model.ssm_state / ways) * (CONVOLUTION - 1)
    blocks = sum(kind in STATEFUL for layer in which for kind in layer)
    matrix = sum(kind is BlockKind.RECURRENT for layer in which for kind in layer) if model.matrix_recurrence else 0
    return setup.batch.micro * (blocks * state + (blocks - matrix) * window * setup.types.compute)
