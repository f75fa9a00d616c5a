"""The same blocks in JAX: parameters are a list of dictionaries, one a block."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from common import EXPERTS, FFN, HEADS, HIDDEN, LENGTH, STATE, TOP_K, VOCABULARY

Parameters = dict[str, Any]
SHAPES = {
    "attention": {"qkv": (HIDDEN, 3 * HIDDEN), "out": (HIDDEN, HIDDEN)},
    "mamba": {"into": (HIDDEN, 3 * HIDDEN), "out": (HIDDEN, HIDDEN), "select": (HIDDEN, 2 * STATE), "rates": (STATE,)},
    "recurrent": {"into": (HIDDEN, 2 * HIDDEN), "out": (HIDDEN, HIDDEN)},
    "experts": {"route": (HIDDEN, EXPERTS), "up": (EXPERTS, HIDDEN, FFN), "down": (EXPERTS, FFN, HIDDEN)},
    "forward": {"up": (HIDDEN, FFN), "down": (FFN, HIDDEN)},
}
BLOCKS = {"*": "attention", "A": "attention", "M": "mamba", "R": "recurrent", "E": "experts", "-": "forward"}


def initial(pattern: str, seed: int = 1) -> Parameters:
    """Normal values of 0.02 for every matrix, and rates of the state from 1 to e²."""
    shapes = {
        "tokens": (VOCABULARY, HIDDEN),
        "positions": (LENGTH, HIDDEN),
        "head": (HIDDEN, VOCABULARY),
        "blocks": [SHAPES[BLOCKS[letter]] for letter in pattern],
    }
    leaves, tree = jax.tree.flatten(shapes, is_leaf=lambda item: isinstance(item, tuple))
    keys = jax.random.split(jax.random.key(seed), len(leaves))
    found = [0.02 * jax.random.normal(key, shape) for key, shape in zip(keys, leaves, strict=True)]
    made: Parameters = jax.tree.unflatten(tree, found)
    for letter, block in zip(pattern, made["blocks"], strict=True):
        if BLOCKS[letter] == "mamba":
            block["rates"] = jnp.linspace(0.0, 2.0, STATE)
    return made


def norm(x: jax.Array) -> jax.Array:
    """Layer normalisation without a scale."""
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def scan(decay: jax.Array, drive: jax.Array) -> jax.Array:
    """h[t] = decay[t] * h[t-1] + drive[t] along dimension 1."""

    def join(left: tuple[jax.Array, jax.Array], right: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return left[0] * right[0], right[0] * left[1] + right[1]

    return jax.lax.associative_scan(join, (decay, drive), axis=1)[1]


def attention(block: Parameters, x: jax.Array) -> jax.Array:
    """Causal attention by XLA's own operations."""
    batch, length, _ = x.shape
    q, k, v = jnp.moveaxis((x @ block["qkv"]).reshape(batch, length, 3, HEADS, -1), 2, 0)
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    return mixed.reshape(batch, length, HIDDEN) @ block["out"]


def mamba(block: Parameters, x: jax.Array) -> jax.Array:
    """A selective scan: step sizes, inputs and outputs of the state depend on the token."""
    value, gate, size = jnp.split(x @ block["into"], 3, axis=-1)
    write, read = jnp.split(x @ block["select"], 2, axis=-1)
    size = jax.nn.softplus(size)[..., None]
    held = scan(jnp.exp(-size * jnp.exp(block["rates"])), size * value[..., None] * write[:, :, None])
    return ((held * read[:, :, None]).sum(-1) * jax.nn.silu(gate)) @ block["out"]


def recurrent(block: Parameters, x: jax.Array) -> jax.Array:
    """A gated linear recurrence."""
    value, gate = jnp.split(x @ block["into"], 2, axis=-1)
    keep = jax.nn.sigmoid(gate)
    return scan(keep, (1 - keep) * value) @ block["out"]


def experts(block: Parameters, x: jax.Array) -> jax.Array:
    """Each token takes the sum of its best `TOP_K` experts, and every expert sees every token."""
    scores = jax.nn.softmax(x @ block["route"])
    least = jax.lax.top_k(scores, TOP_K)[0][..., -1:]
    weights = jnp.where(scores >= least, scores, 0.0)
    tall = jax.nn.gelu(jnp.einsum("bth,ehf->betf", x, block["up"]))
    return jnp.einsum("betf,efh,bte->bth", tall, block["down"], weights)


def forward(block: Parameters, x: jax.Array) -> jax.Array:
    """Up, GELU, down."""
    return jax.nn.gelu(x @ block["up"]) @ block["down"]


KINDS = {"attention": attention, "mamba": mamba, "recurrent": recurrent, "experts": experts, "forward": forward}


def loss(parameters: Parameters, rows: jax.Array, pattern: str) -> jax.Array:
    """Mean cross-entropy of the next byte, in nats."""
    ids, wanted = rows[:, :-1], rows[:, 1:]
    x = parameters["tokens"][ids] + parameters["positions"][: ids.shape[1]]
    for letter, block in zip(pattern, parameters["blocks"], strict=True):
        x = x + KINDS[BLOCKS[letter]](block, norm(x))
    scores = jax.nn.log_softmax(norm(x) @ parameters["head"])
    return -jnp.take_along_axis(scores, wanted[..., None], axis=-1).mean()
