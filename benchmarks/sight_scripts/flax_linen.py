"""Flax linen with a TrainState and a dictionary of metrics; evaluation by a jitted function beside the step."""

import json
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

STEPS, BATCH, LENGTH, VOCABULARY, WIDTH, DEPTH = 40, 8, 64, 512, 64, 3


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, mask):
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=4)(y, y, mask=mask)
        y = nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))
        return x + nn.Dense(WIDTH)(nn.gelu(y))


class Decoder(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(VOCABULARY, WIDTH)(tokens) + nn.Embed(LENGTH, WIDTH)(jnp.arange(tokens.shape[1])[None])
        for _ in range(DEPTH):
            x = Block()(x, nn.make_causal_mask(tokens))
        return nn.Dense(VOCABULARY, use_bias=False)(nn.LayerNorm()(x))


def loss_of(params, batch):
    logits = state.apply_fn({"params": params}, batch[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:]).mean()


@jax.jit
def train_step(state, batch):
    loss, grads = jax.value_and_grad(loss_of)(state.params, batch)
    return state.apply_gradients(grads=grads), {"loss": loss, "grad_norm": optax.global_norm(grads)}


eval_step = jax.jit(loss_of)
model = Decoder()
params = model.init(jax.random.key(0), jnp.zeros((1, LENGTH), jnp.int32))["params"]
state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(3e-3))
rng, times = np.random.default_rng(0), []
held_out = jnp.asarray(rng.integers(0, 50, (BATCH, LENGTH + 1)))
for step in range(STEPS):
    begun = time.perf_counter()
    state, metrics = train_step(state, jnp.asarray(rng.integers(0, 50, (BATCH, LENGTH + 1))))
    metrics["loss"].block_until_ready()
    times.append(time.perf_counter() - begun)
    if step % 20 == 19:
        print(step, float(metrics["loss"]), float(eval_step(state.params, held_out)))
truth = {"steps": STEPS, "tokens": BATCH * LENGTH, "micro": BATCH, "length": LENGTH, "accumulation": 1, "depth": DEPTH}
truth |= {"parameters": sum(leaf.size for leaf in jax.tree.leaves(params)), "hidden": WIDTH, "vocabulary": VOCABULARY}
truth |= {"dtype": "fp32", "recompute": "none", "posture": "jit", "ms": 1e3 * float(np.median(times[10:]))}
print("TRUTH", json.dumps(truth))
