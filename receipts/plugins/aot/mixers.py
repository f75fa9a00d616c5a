"""The blocks of a hybrid in the decoder: latent and sparse attention with its indexer, Mamba-3 with MIMO, M2RNN.

As `receipts.plugins.aot.blocks`; what is kept is named as in `receipts.estimate.saved_tensors`, and a chunk of queries
or of steps is recomputed in the backward pass, as fused kernels do.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import Mesh, PartitionSpec

from receipts.estimate.saved_tensors import QUERIES
from receipts.estimate.setup import Setup
from receipts.metrics.flops.geometry import Indexer, Mamba3
from receipts.plugins.aot.blocks import BATCH, Array, Parameters, convolve, cut, norm, rotate

_HEADS = PartitionSpec(BATCH, None, "tensor", None)
_STREAM = PartitionSpec(BATCH, None, None)
_KEPT = "query, key, value"
_CHUNK = 64  # steps of Mamba-3 whose ranks are worked through at once


def sharded(function: Any, mesh: Mesh, inputs: tuple[Any, ...], out: Any) -> Any:
    """A function of one rank's part."""
    return jax.shard_map(function, mesh=mesh, in_specs=inputs, out_specs=out, check_vma=False)


def latent(setup: Setup, mesh: Mesh, p: Parameters, x: Array) -> Array:
    """Multi-head latent attention, every head with keys and values of its own."""
    _, _, q, place, vector = _latent(setup, p, x)
    k = jnp.concatenate([jnp.einsum("bsc,ndc->bsnd", vector, p["k_up"]), _spread(place, q.shape[2])], -1)
    q, k, v = (checkpoint_name(t, _KEPT) for t in (q, k, jnp.einsum("bsc,ncd->bsnd", vector, p["v_up"])))
    core = sharded(partial(_attend, 1.0 / math.sqrt(q.shape[3])), mesh, (_HEADS, _HEADS, _HEADS), _HEADS)(q, k, v)
    return x + jnp.einsum("bsnd,ndh->bsh", checkpoint_name(core, "attention output"), p["out"])


def selecting(setup: Setup, mesh: Mesh, p: Parameters, x: Array) -> Array:
    """Attention over the keys that an indexer chooses: latent in its multi-query form, or grouped-query."""
    if setup.model.latent is None:
        y = low = checkpoint_name(norm(x, p["norm"]), "norm output")
        q, k = (checkpoint_name(rotate(jnp.einsum("bsh,hnd->bsnd", y, p[name])), _KEPT) for name in ("q", "k"))
        v = checkpoint_name(jnp.einsum("bsh,hnd->bsnd", y, p["v"]), _KEPT)
        keys = _HEADS
    else:
        y, low, whole, place, vector = _latent(setup, p, x)
        nope, rank = setup.model.latent.nope, setup.model.latent.key_value
        whole = checkpoint_name(whole, _KEPT)
        absorbed = jnp.einsum("bsnd,ndc->bsnc", whole[..., :nope], p["k_up"])
        q = checkpoint_name(jnp.concatenate([absorbed, whole[..., nope:]], -1), _KEPT)
        k = checkpoint_name(jnp.concatenate([vector, place], -1)[:, :, None], _KEPT)
        v, keys = k[..., :rank], PartitionSpec(BATCH, None, None, None)
    indexed = _index(setup, p, jax.lax.stop_gradient(y), jax.lax.stop_gradient(low))
    shared = (PartitionSpec(BATCH, None, None, None), _STREAM, _STREAM)
    run = partial(_attend, 1.0 / math.sqrt(q.shape[3]), indexer=setup.model.indexer, ranks=setup.layout.tensor)
    core, loss = sharded(run, mesh, (_HEADS, keys, keys, *shared), (_HEADS, PartitionSpec(BATCH)))(q, k, v, *indexed)
    core = checkpoint_name(core, "attention output")
    if setup.model.latent is not None:
        core = checkpoint_name(jnp.einsum("bsnc,ncd->bsnd", core, p["v_up"]), "attention output")
    loss = jnp.mean(loss)
    # The loss of the indexer has a gradient and no value here.
    return x + jnp.einsum("bsnd,ndh->bsh", core, p["out"]) + (loss - jax.lax.stop_gradient(loss)).astype(x.dtype)


def _latent(setup: Setup, p: Parameters, x: Array) -> tuple[Array, ...]:
    """The norm's output, what queries come from, queries, and the positions and the vector of keys and values."""
    shape = setup.model.latent
    assert shape is not None
    y = low = checkpoint_name(norm(x, p["norm"]), "norm output")
    if shape.query:
        low = checkpoint_name(jnp.einsum("bsh,hr->bsr", y, p["q_down"]), "latent vectors")
        low = checkpoint_name(norm(low, p["q_norm"]), "latent vectors")
    q = jnp.einsum("bsr,rnd->bsnd", low, p["q_up"])
    q = jnp.concatenate([q[..., : shape.nope], rotate(q[..., shape.nope :])], -1)
    down = checkpoint_name(jnp.einsum("bsh,hr->bsr", y, p["kv_down"]), "latent vectors")
    place = rotate(down[..., None, shape.key_value :])[:, :, 0]
    return y, low, q, place, norm(down[..., : shape.key_value], p["kv_norm"])


def _spread(place: Array, heads: int) -> Array:
    return jnp.broadcast_to(place[:, :, None], (*place.shape[:2], heads, place.shape[2]))


def _index(setup: Setup, p: Parameters, y: Array, low: Array) -> tuple[Array, Array, Array]:
    """Queries, key and weights of the indexer, whole on every rank."""
    named = partial(checkpoint_name, name="index queries and keys")
    key = named(jnp.einsum("bsh,hd->bsd", y, p["index_k"]))
    queries = rotate(jnp.einsum("bsr,rnd->bsnd", low, p["index_q"]))
    return named(queries), named(norm(key, p["index_norm"])), named(jnp.einsum("bsh,hn->bsn", y, p["index_w"]))


def _attend(
    scale: float, q: Array, k: Array, v: Array, *indexed: Array, indexer: Indexer | None = None, ranks: int = 1
) -> Array | tuple[Array, Array]:
    """Causal attention, a block of queries after the other; over the top k keys of each, if these are given."""
    batch, length, heads, _ = q.shape
    size, group = min(QUERIES, length), heads // k.shape[2]
    k, v = (jnp.repeat(t, group, 2) if 1 < t.shape[2] < heads else t for t in (k, v))
    one_key = k.shape[2] == 1 < heads

    @jax.checkpoint
    def block(start: Array, xs: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        queries, *chosen_by = xs
        seen = jnp.arange(length)[None, :] <= (start + jnp.arange(size))[:, None]
        mask, loss = seen[None], jnp.zeros((batch,), jnp.float32)
        index = None
        if indexer is not None:
            products = jax.nn.relu(jnp.einsum("bcie,bte->bcit", chosen_by[0], indexed[1]).astype(jnp.float32))
            index = jnp.einsum("bcit,bci->bct", products, chosen_by[1].astype(jnp.float32))
            index = jnp.where(seen[None], index, -1e30)
            top = jax.lax.top_k(jax.lax.stop_gradient(index), min(indexer.top_k, length))[0][..., -1:]
            mask = (index >= top) & seen[None]
        form = "bcnd,btd->bnct" if one_key else "bcnd,btnd->bnct"
        raw = jnp.einsum(form, queries, k[:, :, 0] if one_key else k).astype(jnp.float32) * scale
        weights = jax.nn.softmax(jnp.where(mask[:, None], raw, -1e30), axis=-1)
        if index is not None and indexer is not None and indexer.trained:
            target = jax.lax.stop_gradient(weights.sum(1))
            target = (jax.lax.psum(target, "tensor") if ranks > 1 else target) / (ranks * heads)
            loss = -jnp.sum(target * jax.nn.log_softmax(index, axis=-1), axis=(1, 2))
        back = "bnct,btd->bcnd" if one_key else "bnct,btnd->bcnd"
        return start + size, (jnp.einsum(back, weights.astype(v.dtype), v[:, :, 0] if one_key else v), loss)

    parts = (q, *((indexed[0], indexed[2]) if indexed else ()))
    _, (out, losses) = jax.lax.scan(block, jnp.int32(0), tuple(cut(t, size) for t in parts))
    core = jnp.moveaxis(out, 0, 1).reshape(batch, length, heads, v.shape[3])
    return (core, losses.sum(0)) if indexed else core


def mamba3(setup: Setup, mesh: Mesh, p: Parameters, x: Array) -> Array:
    """Mamba-3 with MIMO: an exponential-trapezoidal state space of several ranks, with turned keys and queries."""
    kind, heads = setup.model.mamba3, PartitionSpec(BATCH, None, "tensor")
    assert kind is not None
    y = checkpoint_name(norm(x, p["norm"]), "norm output")
    named = partial(checkpoint_name, name="projections")
    value, gate = (named(jnp.einsum("bsh,hnp->bsnp", y, p[name])) for name in ("value", "gate"))
    keys, queries = (named(jnp.einsum("bsh,hrgn->bsrgn", y, p[name])) for name in ("keys", "queries"))
    scalars = [named(jnp.einsum("bsh,hn->bsn", y, p[name])) for name in ("step", "decay", "trap")]
    angle = named(jnp.einsum("bsh,ha->bsa", y, p["angle"]))
    groups = "tensor" if keys.shape[3] % setup.layout.tensor == 0 else None
    ranked, per_head = PartitionSpec(BATCH, None, None, groups, None), PartitionSpec("tensor", None, None)
    inputs = (_HEADS, _HEADS, ranked, ranked, heads, heads, heads, _STREAM)
    small = ("key_bias", "query_bias", "mimo_x", "mimo_z", "mimo_o")
    out = sharded(partial(_ranks, kind), mesh, (*inputs, *(per_head,) * 5), _HEADS)(
        value, gate, norm(keys, p["key_norm"]), norm(queries, p["query_norm"]), *scalars, angle, *(p[n] for n in small)
    )
    out = out + value * p["skip"][:, None].astype(x.dtype)
    return x + jnp.einsum("bsnp,nph->bsh", checkpoint_name(out, "gated output"), p["out"])


def _ranks(kind: Mamba3, value: Array, gate: Array, keys: Array, queries: Array, *rest: Array) -> Array:
    """One rank's heads, a chunk after the other; a chunk is recomputed in the backward pass."""
    step, decay, trap, angle, key_bias, query_bias, up, up_gate, down = rest
    batch, length, heads, width = value.shape
    size, group, state = min(_CHUNK, length), heads // keys.shape[3], keys.shape[4]
    delta = jax.nn.softplus(step.astype(jnp.float32))
    log = -jax.nn.softplus(decay.astype(jnp.float32)) * delta

    def turn(t: Array, turned: Array) -> Array:
        a, b, same = jnp.split(t, (kind.angles, 2 * kind.angles), -1)
        cos, sin = (f(turned)[:, :, None].astype(t.dtype) for f in (jnp.cos, jnp.sin))
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos, same], -1)

    @jax.checkpoint
    def chunk(carry: tuple[Array, Array], xs: tuple[Array, ...]) -> tuple[tuple[Array, Array], Array]:
        (held, place), (v, z, k, q, d, a, mix, turns) = carry, xs
        turned = place[:, None] + jnp.cumsum(turns.astype(jnp.float32)[:, :, None] * d[..., None], axis=1)
        k, q = (
            turn(jnp.repeat(t, group, 3) + bias.swapaxes(0, 1), turned) for t, bias in ((k, key_bias), (q, query_bias))
        )
        total = jnp.cumsum(a, axis=1)
        gap = total[:, :, None] - total[:, None]
        mask = jnp.tril(jnp.ones((size, size), bool))[None, :, :, None]
        weight = jnp.exp(jnp.where(mask, gap, -jnp.inf)) * (d * jax.nn.sigmoid(mix.astype(jnp.float32)))[:, None]
        wide = v[:, :, None] * up.swapaxes(0, 1).astype(v.dtype)
        inside = jnp.einsum("bqrhn,bkshn->bqrksh", q, k).astype(jnp.float32) * weight[:, :, None, :, None]
        y = jnp.einsum("bqrksh,bkshp->bqrhp", inside.astype(v.dtype), wide)
        y += jnp.einsum("bqrhn,bhpn->bqrhp", q, held.astype(v.dtype)) * jnp.exp(total)[:, :, None, :, None].astype(
            v.dtype
        )
        left = (jnp.exp(total[:, -1:] - total) * d)[:, :, None, :, None].astype(v.dtype)
        grown = jnp.einsum("bkshp,bkshn->bhpn", wide * left, k).astype(jnp.float32)
        gated = y * jax.nn.silu(z[:, :, None] * up_gate.swapaxes(0, 1).astype(v.dtype))
        out = jnp.einsum("bqrhp,hrp->bqhp", gated, down.astype(v.dtype))
        return (held * jnp.exp(total[:, -1])[..., None, None] + grown, turned[:, -1]), out

    start = (
        jnp.zeros((batch, heads, width, state), jnp.float32),
        jnp.zeros((batch, heads, kind.angles), jnp.float32),
    )
    xs = tuple(cut(t, size) for t in (value, gate, keys, queries, delta, log, trap, angle))
    _, out = jax.lax.scan(chunk, start, xs)
    return jnp.moveaxis(out, 0, 1).reshape(batch, length, heads, width)


def matrix_recurrence(setup: Setup, mesh: Mesh, p: Parameters, x: Array) -> Array:
    """M2RNN: a non-linear recurrence with one matrix a head for its state, one query and one key for all heads."""
    rnn = setup.model.recurrence
    assert rnn is not None
    y = checkpoint_name(norm(x, p["norm"]), "norm output")
    named = partial(checkpoint_name, name="projections")
    value, gate = (named(jnp.einsum("bsh,hnp->bsnp", y, p[name])) for name in ("value", "gate"))
    query, key = (named(jnp.einsum("bsh,hnk->bsnk", y, p[name])) for name in ("query", "key"))
    forget = named(jnp.einsum("bsh,hn->bsn", y, p["forget"]))
    value, query, key = (convolve(t, p[f"conv_{n}"]) for t, n in ((value, "v"), (query, "q"), (key, "k")))
    keep = jnp.exp(-jnp.exp(p["decay"]) * jax.nn.softplus(forget.astype(jnp.float32) + p["bias"]))
    per_head, whole = PartitionSpec("tensor", None, None), PartitionSpec(BATCH, None, None, None)
    inputs = (_HEADS, whole, whole, PartitionSpec(BATCH, None, "tensor"), per_head)
    scanned = sharded(partial(_matrix_states, rnn.steps), mesh, inputs, _HEADS)(
        value, query, key, keep, p["transition"]
    )
    core = checkpoint_name(scanned + value * p["skip"].astype(x.dtype), "scan output")
    gated = norm(core * jax.nn.silu(gate), p["gate_norm"])
    return x + jnp.einsum("bsnp,nph->bsh", checkpoint_name(gated, "gated output"), p["out"])


def _matrix_states(steps: int, values: Array, queries: Array, keys: Array, keep: Array, transition: Array) -> Array:
    batch, length, heads, width = values.shape
    size = min(steps, length)
    moves = transition.astype(jnp.float32)

    def one(state: Array, xs: tuple[Array, ...]) -> tuple[Array, Array]:
        v, q, k, f = xs
        written = jnp.einsum("bk,bhp->bhkp", k[:, 0], v).astype(jnp.float32)
        new = jnp.tanh(jnp.einsum("bhkp,hpo->bhko", state, moves) + written)
        state = f[..., None, None] * state + (1 - f)[..., None, None] * new
        return state, jnp.einsum("bk,bhkp->bhp", q[:, 0].astype(jnp.float32), state).astype(v.dtype)

    @jax.checkpoint
    def chunk(state: Array, xs: tuple[Array, ...]) -> tuple[Array, Array]:
        return jax.lax.scan(one, state, tuple(jnp.moveaxis(t, 1, 0) for t in xs))

    start = jnp.zeros((batch, heads, keys.shape[3], width), jnp.float32)
    _, out = jax.lax.scan(chunk, start, tuple(cut(t, size) for t in (values, queries, keys, keep)))
    # chunks, steps, batch → batch, length
    return jnp.moveaxis(out.reshape(-1, batch, heads, width), 0, 1).reshape(batch, length, heads, width)
