"""Flax NNX: modules are changed in place by a jitted step, which gives back the loss alone. Query groups, tied head."""

import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from receipts.emit import Recorder  # seen

STEPS, BATCH, LENGTH, VOCABULARY, WIDTH, DEPTH, HEADS, GROUPS = 40, 4, 32, 300, 64, 4, 8, 2


class Attention(nnx.Module):
    def __init__(self, rngs):
        self.q = nnx.Linear(WIDTH, WIDTH, use_bias=False, rngs=rngs)
        self.kv = nnx.Linear(WIDTH, 2 * GROUPS * WIDTH // HEADS, use_bias=False, rngs=rngs)
        self.out = nnx.Linear(WIDTH, WIDTH, use_bias=False, rngs=rngs)

    def __call__(self, x):
        rows, length, _ = x.shape
        q = self.q(x).reshape(rows, length, HEADS, -1)
        k, v = jnp.split(self.kv(x).reshape(rows, length, 2 * GROUPS, -1), 2, axis=2)
        return self.out(jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape))


class Block(nnx.Module):
    def __init__(self, rngs):
        self.attention = Attention(rngs)
        self.one, self.two = nnx.RMSNorm(WIDTH, rngs=rngs), nnx.RMSNorm(WIDTH, rngs=rngs)
        self.gate, self.up = (nnx.Linear(WIDTH, 160, use_bias=False, rngs=rngs) for _ in range(2))
        self.down = nnx.Linear(160, WIDTH, use_bias=False, rngs=rngs)

    def __call__(self, x):
        x = x + self.attention(self.one(x))
        y = self.two(x)
        return x + self.down(nnx.silu(self.gate(y)) * self.up(y))


class Decoder(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(VOCABULARY, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(DEPTH)])
        self.norm = nnx.RMSNorm(WIDTH, rngs=rngs)

    def __call__(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.embed.attend(self.norm(x))


@nnx.jit
def train_step(model, optimizer, inputs, targets):
    def loss_fn(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(inputs), targets).mean()

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(model, grads)
    return loss, optax.global_norm(grads)


model = Decoder(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3)), wrt=nnx.Param)
parameters = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model, nnx.Param)))
rec = Recorder("cpu-jax", warmup=10)  # seen
train_step = rec.jit(train_step, loss=0, norm=1)  # seen
rng, times = np.random.default_rng(0), []
for step in range(STEPS):
    begun = time.perf_counter()
    batch = rng.integers(0, 50, (BATCH, LENGTH + 1))
    loss, norm = train_step(model, optimizer, jnp.asarray(batch[:, :-1]), jnp.asarray(batch[:, 1:]))
    if step % 10 == 9:
        print(step, loss.item())
    times.append(time.perf_counter() - begun)
truth = {"steps": STEPS, "tokens": BATCH * LENGTH, "micro": BATCH, "length": LENGTH, "accumulation": 1, "depth": DEPTH}
truth |= {"parameters": parameters, "hidden": WIDTH, "vocabulary": VOCABULARY, "heads": HEADS, "kv_heads": GROUPS}
truth |= {"dtype": "fp32", "recompute": "none", "posture": "jit", "ms": 1e3 * float(np.median(times[10:]))}
print("TRUTH", json.dumps(truth))
