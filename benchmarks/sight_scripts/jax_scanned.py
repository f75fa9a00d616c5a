"""Plain JAX with optax: layers in a scan with remat, micro batches in a scan, weights cast to bf16, donated state."""

import functools
import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS, MICROS, BATCH, LENGTH, VOCABULARY, WIDTH, DEPTH, HEADS = 40, 3, 4, 64, 512, 64, 4, 4


def init(key):
    def normal(key, *shape):
        return 0.02 * jax.random.normal(key, shape)

    keys = jax.random.split(key, 6)
    blocks = {"qkv": normal(keys[0], DEPTH, WIDTH, 3 * WIDTH), "out": normal(keys[1], DEPTH, WIDTH, WIDTH)}
    blocks |= {"up": normal(keys[2], DEPTH, WIDTH, 4 * WIDTH), "down": normal(keys[3], DEPTH, 4 * WIDTH, WIDTH)}
    return {"wte": normal(keys[4], VOCABULARY, WIDTH), "head": normal(keys[5], WIDTH, VOCABULARY), "blocks": blocks}


def norm(x):
    return x * jax.lax.rsqrt((x.astype(jnp.float32) ** 2).mean(-1, keepdims=True) + 1e-6).astype(x.dtype)


@jax.checkpoint
def block(x, weights):
    q, k, v = (item.reshape(BATCH, LENGTH, HEADS, -1) for item in jnp.split(norm(x) @ weights["qkv"], 3, -1))
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores.astype(jnp.float32), -jnp.inf)
    mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores).astype(x.dtype), v)
    x = x + mixed.reshape(x.shape) @ weights["out"]
    return x + jax.nn.gelu(norm(x) @ weights["up"]) @ weights["down"], None


def loss_fn(params, tokens):
    params = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
    x, _ = jax.lax.scan(block, params["wte"][tokens[:, :-1]], params["blocks"])
    logits = (norm(x) @ params["head"]).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


@functools.partial(jax.jit, donate_argnames=("params", "opt_state"))
def train_step(params, opt_state, tokens):
    def micro(grads, tokens):
        loss, more = jax.value_and_grad(loss_fn)(params, tokens)
        return jax.tree.map(jnp.add, grads, more), loss

    grads, losses = jax.lax.scan(micro, jax.tree.map(jnp.zeros_like, params), tokens)
    grads = jax.tree.map(lambda leaf: leaf / MICROS, grads)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, {"loss": losses.mean(), "gnorm": optax.global_norm(grads)}


tx = optax.adamw(3e-3)
params = init(jax.random.key(0))
parameters = sum(leaf.size for leaf in jax.tree.leaves(params))
opt_state = tx.init(params)
rng, times = np.random.default_rng(0), []
for step in range(STEPS):
    begun = time.perf_counter()
    tokens = rng.integers(0, 50, (MICROS, BATCH, LENGTH + 1)).astype(np.int32)
    params, opt_state, metrics = train_step(params, opt_state, tokens)
    if step % 10 == 9:
        print({name: float(value) for name, value in metrics.items()})
    times.append(time.perf_counter() - begun)
truth = {"steps": STEPS, "tokens": MICROS * BATCH * LENGTH, "micro": BATCH, "length": LENGTH, "accumulation": MICROS}
truth |= {"parameters": parameters, "hidden": WIDTH, "vocabulary": VOCABULARY, "depth": DEPTH, "heads": HEADS}
truth |= {"dtype": "bf16", "recompute": "full", "posture": "jit", "ms": 1e3 * float(np.median(times[10:]))}
print("TRUTH", json.dumps(truth))
