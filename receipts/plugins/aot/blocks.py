"""The blocks of the decoder as functions of their parameters: attention, feed-forward, experts, Mamba-2.

What a block keeps for its backward pass is named as in `receipts.estimate.saved_tensors`: a policy keeps some of them
and everything else is recomputed, as fused kernels do with what lies between matmuls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import Mesh, PartitionSpec

from receipts.estimate.saved_tensors import CHUNK
from receipts.estimate.setup import Setup
from receipts.metrics.arithmetic import capacity

Array = Any  # jax.Array; its own stubs make every operator an error under strict typing
Parameters = dict[str, Array]
BATCH = ("data", "expert")


def norm(x: Array, scale: Array) -> Array:
    """Root mean square norm in fp32 (Zhang and Sennrich 2019, arXiv:1910.07467)."""
    wide = x.astype(jnp.float32)
    scaled = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (scaled * scale).astype(x.dtype)


def rotate(x: Array) -> Array:
    """Rotary positions (Su et al. 2021, arXiv:2104.09864)."""
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * (10_000.0 ** (-jnp.arange(half) / half))[None, :]
    cos, sin = jnp.cos(angle)[None, :, None, :], jnp.sin(angle)[None, :, None, :]
    a, b = x[..., :half].astype(jnp.float32), x[..., half:].astype(jnp.float32)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1).astype(x.dtype)


def attention(setup: Setup, mesh: Mesh, p: Parameters, x: Array) -> Array:
    """Grouped-query attention, by the splash kernel or with stored scores."""
    model = setup.model
    y = checkpoint_name(norm(x, p["norm"]), "norm output")
    q = checkpoint_name(rotate(jnp.einsum("bsh,hnd->bsnd", y, p["q"])), "query, key, value")
    k = checkpoint_name(rotate(jnp.einsum("bsh,hnd->bsnd", y, p["k"])), "query, key, value")
    v = checkpoint_name(jnp.einsum("bsh,hnd->bsnd", y, p["v"]), "query, key, value")
    inner = _splash if setup.fused_attention else _scores
    heads = PartitionSpec(BATCH, None, "tensor", None)
    core = jax.shard_map(
        partial(inner, 1.0 / math.sqrt(model.head_dim)),
        mesh=mesh,
        in_specs=(heads, heads, heads),
        out_specs=heads,
        check_vma=False,
    )
    return x + jnp.einsum("bsnd,ndh->bsh", core(q, k, v), p["out"])


def _splash(scale: float, q: Array, k: Array, v: Array) -> Array:
    """The kernel that MaxText runs (jax.experimental.pallas.ops.tpu.splash_attention), causal, blocks of 512."""
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel
    from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

    length, heads = q.shape[1], q.shape[2]
    size = min(512, length)
    blocks = kernel.BlockSizes(
        block_q=size, block_kv=size, block_kv_compute=size, block_q_dkv=size, block_kv_dkv=size,
        block_kv_dkv_compute=size, block_q_dq=size, block_kv_dq=size,
    )  # fmt: skip
    mask = masks.MultiHeadMask([masks.CausalMask((length, length)) for _ in range(heads)])
    run = kernel.make_splash_mha(
        mask=mask,
        head_shards=1,
        q_seq_shards=1,
        block_sizes=blocks,
        # The kernel names its output and its row sums alike.
        residual_checkpoint_name="attention output",
    )
    q, k, v = (t.transpose(0, 2, 1, 3) for t in (q * scale, k, v))
    return jax.vmap(run)(q, k, v).transpose(0, 2, 1, 3)


def _scores(scale: float, q: Array, k: Array, v: Array) -> Array:
    """Attention with its scores in memory, softmax in fp32."""
    length, heads, group = q.shape[1], k.shape[2], q.shape[2] // k.shape[2]
    q = q.reshape(*q.shape[:2], heads, group, q.shape[3])
    raw = jnp.einsum("bqngd,bknd->bngqk", q, k).astype(jnp.float32) * scale
    mask = jnp.tril(jnp.ones((length, length), bool))
    weights = checkpoint_name(jax.nn.softmax(jnp.where(mask, raw, -1e30), axis=-1).astype(q.dtype), "scores")
    out = jnp.einsum("bngqk,bknd->bqngd", weights, v)
    return checkpoint_name(out.reshape(*out.shape[:2], heads * group, out.shape[4]), "attention output")


def feed_forward(name: str, p: Parameters, y: Array) -> Array:
    """A gated or plain feed-forward without its norm."""
    up = checkpoint_name(jnp.einsum("bsh,hf->bsf", y, p["up"]), f"{name} hidden")
    if "gate" in p:
        gate = checkpoint_name(jnp.einsum("bsh,hf->bsf", y, p["gate"]), f"{name} hidden")
        active = jax.nn.silu(gate) * up
    else:
        active = jnp.square(jax.nn.relu(up))
    return jnp.einsum("bsf,fh->bsh", checkpoint_name(active, f"{name} activation"), p["down"])


def mlp(setup: Setup, mesh: Mesh, p: Parameters, x: Array) -> Array:
    """The dense feed-forward block."""
    return x + feed_forward("mlp", p, checkpoint_name(norm(x, p["norm"]), "norm output"))


def experts(setup: Setup, mesh: Mesh, p: Parameters, x: Array) -> Array:
    """Routed experts with a capacity, dispatched by an all-to-all; routing weights scale the activation."""
    y = checkpoint_name(norm(x, p["norm"]), "norm output")
    scores = checkpoint_name(
        jnp.einsum("bsh,he->bse", y, p["router"], preferred_element_type=jnp.float32), "router scores"
    )
    stream = PartitionSpec(BATCH, None, None)
    bank: Parameters = {name: PartitionSpec("expert", None, "tensor") for name in ("gate", "up") if name in p}
    bank["down"] = PartitionSpec("expert", "tensor", None)
    routed = jax.shard_map(
        partial(_dispatch, setup),
        mesh=mesh,
        in_specs=(bank, stream, stream),
        out_specs=stream,
        check_vma=False,
    )
    out = routed({name: p[name] for name in bank}, y, scores)
    if setup.model.shared_ffn:
        out = out + feed_forward(
            "shared expert", {name[7:]: value for name, value in p.items() if name.startswith("shared_")}, y
        )
    return x + out


def _dispatch(setup: Setup, bank: Parameters, y: Array, scores: Array) -> Array:
    """One rank's share: choose, pack by expert, exchange, compute, exchange back, unpack."""
    model = setup.model
    batch, length, hidden = y.shape
    tokens, ways = batch * length, setup.layout.expert
    slots = capacity(tokens, model.top_k, model.experts, model.capacity_factor or 1.0)
    weight, chosen = jax.lax.top_k(jax.nn.softmax(scores.reshape(tokens, -1), axis=-1), model.top_k)
    expert = chosen.reshape(-1)
    order = jnp.argsort(expert)
    first = jnp.searchsorted(expert[order], jnp.arange(model.experts))
    rank = jnp.zeros_like(expert).at[order].set(jnp.arange(expert.size) - first[expert[order]])
    place = jnp.where(rank < slots, expert * slots + rank, model.experts * slots)
    source = (
        jnp.zeros(model.experts * slots, jnp.int32).at[place].set(jnp.arange(expert.size) // model.top_k, mode="drop")
    )
    scale = jnp.zeros(model.experts * slots, y.dtype).at[place].set(weight.reshape(-1).astype(y.dtype), mode="drop")
    packed = jnp.take(y.reshape(tokens, hidden), source, axis=0).reshape(model.experts, slots, hidden)
    scale = scale.reshape(model.experts, slots)
    if ways > 1:
        packed = jax.lax.all_to_all(packed, "expert", 0, 1, tiled=True)
        scale = jax.lax.all_to_all(scale, "expert", 0, 1, tiled=True)
    packed = checkpoint_name(packed, "receive")
    up = checkpoint_name(jnp.einsum("ech,ehf->ecf", packed, bank["up"]), "expert hidden")
    if "gate" in bank:
        active = jax.nn.silu(checkpoint_name(jnp.einsum("ech,ehf->ecf", packed, bank["gate"]), "expert hidden")) * up
    else:
        active = jnp.square(jax.nn.relu(up))
    active = checkpoint_name(active * scale[..., None], "expert activation")
    out = jnp.einsum("ecf,efh->ech", active, bank["down"])
    if setup.layout.tensor > 1:
        out = jax.lax.psum(out, "tensor")
    if ways > 1:
        out = jax.lax.all_to_all(out, "expert", 1, 0, tiled=True)
    flat = jnp.zeros((tokens, hidden), y.dtype).at[source].add(out.reshape(-1, hidden))
    return flat.reshape(batch, length, hidden)


def _projected(setup: Setup, p: Parameters, x: Array) -> tuple[Array, ...]:
    y = checkpoint_name(norm(x, p["norm"]), "norm output")
    values = checkpoint_name(jnp.einsum("bsh,hnp->bsnp", y, p["value"]), "projections")
    gate = checkpoint_name(jnp.einsum("bsh,hnp->bsnp", y, p["gate"]), "projections")
    keys = checkpoint_name(jnp.einsum("bsh,hgn->bsgn", y, p["keys"]), "projections")
    queries = checkpoint_name(jnp.einsum("bsh,hgn->bsgn", y, p["queries"]), "projections")
    step = checkpoint_name(jnp.einsum("bsh,hn->bsn", y, p["step"]), "projections")
    return values, gate, keys, queries, step


def _finish(p: Parameters, x: Array, scanned: Array, gate: Array) -> Array:
    core = checkpoint_name(scanned, "scan output")
    gated = norm(core * jax.nn.silu(gate), p["gate_norm"])
    return x + jnp.einsum("bsnp,nph->bsh", checkpoint_name(gated, "gated output"), p["out"])


def convolve(x: Array, taps: Array) -> Array:
    """Causal depthwise convolution over the sequence."""
    padded = jnp.pad(x, ((0, 0), (taps.shape[0] - 1, 0), (0, 0), (0, 0)))
    return jax.nn.silu(sum(padded[:, i : i + x.shape[1]] * taps[i] for i in range(taps.shape[0])))


def mamba(setup: Setup, mesh: Mesh, p: Parameters, x: Array) -> Array:
    """Selective state space in the chunked dual form (Dao and Gu 2024, arXiv:2405.21060, section 6)."""
    values, gate, keys, queries, step = _projected(setup, p, x)
    groups = keys.shape[2]
    values, keys, queries = convolve(values, p["conv_v"]), convolve(keys, p["conv_k"]), convolve(queries, p["conv_q"])
    delta = jax.nn.softplus(step.astype(jnp.float32) + p["bias"])
    heads = PartitionSpec(BATCH, None, "tensor", None)
    shared = heads if groups % setup.layout.tensor == 0 else PartitionSpec(BATCH, None, None, None)
    scanned = jax.shard_map(
        _state_space,
        mesh=mesh,
        in_specs=(heads, shared, shared, PartitionSpec(BATCH, None, "tensor"), PartitionSpec("tensor")),
        out_specs=heads,
        check_vma=False,
    )(values, keys, queries, delta, -jnp.exp(p["decay"]))
    return _finish(p, x, scanned + values * p["skip"][:, None].astype(x.dtype), gate)


def cut(t: Array, size: int) -> Array:
    """Chunks of the sequence, in front."""
    batch, length = t.shape[:2]
    return jnp.moveaxis(t.reshape(batch, length // size, size, *t.shape[2:]), 1, 0)


def _state_space(values: Array, keys: Array, queries: Array, delta: Array, decay: Array) -> Array:
    """One chunk after the other; a chunk is recomputed in the backward pass, so that states alone are kept."""
    batch, length, heads, width = values.shape
    size, group = min(CHUNK, length), heads // keys.shape[2]

    @jax.checkpoint
    def chunk(state: Array, xs: tuple[Array, ...]) -> tuple[Array, Array]:
        v, k, q, d = xs
        k, q = jnp.repeat(k, group, 2), jnp.repeat(q, group, 2)
        log = jnp.cumsum(d * decay, axis=1)
        gap = log[:, :, None, :] - log[:, None, :, :]
        mask = jnp.tril(jnp.ones((size, size), bool))[None, :, :, None]
        within = jnp.einsum("bqhn,bkhn->bqkh", q, k).astype(jnp.float32) * jnp.exp(jnp.where(mask, gap, -jnp.inf))
        inside = jnp.einsum("bqkh,bkhp->bqhp", (within * d[:, None]).astype(v.dtype), v)
        across = jnp.einsum("bqhn,bhpn->bqhp", q, state.astype(v.dtype)) * jnp.exp(log)[..., None].astype(v.dtype)
        left = (jnp.exp(log[:, -1:] - log) * d)[..., None].astype(v.dtype)
        grown = jnp.einsum("bkhp,bkhn->bhpn", v * left, k).astype(jnp.float32)
        return state * jnp.exp(log[:, -1])[..., None, None] + grown, inside + across

    start = jnp.zeros((batch, heads, width, keys.shape[3]), jnp.float32)
    _, out = jax.lax.scan(chunk, start, tuple(cut(t, size) for t in (values, keys, queries, delta)))
    return jnp.moveaxis(out, 0, 1).reshape(batch, length, heads, width)


Block = Callable[[Setup, Mesh, Parameters, Array], Array]
