"""Train one attention block for forty steps; what a run of it left behind lies beside it.

    JAX_PLATFORMS=cpu JAX_LOG_COMPILES=1 JAX_EXPLAIN_CACHE_MISSES=1 \\
    XLA_FLAGS="--xla_dump_to=dump --xla_dump_hlo_as_text" python - < train.py 2> jax.log

jax.log is its log; train_step.hlo.txt is dump/….jit_train_step.cpu_after_optimizations.txt (JAX 0.10.2).
"""

import logging
import sys

import jax
import jax.numpy as jnp

logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")


def loss(weights, tokens):
    x = weights["embed"][tokens]
    q, k, v = (jnp.einsum("bsd,dhe->bshe", x, weights[name]) for name in "qkv")
    scores = jax.nn.softmax(jnp.einsum("bshe,bthe->bhst", q, k) / 4.0, axis=-1)
    out = jnp.einsum("bhst,bthe->bshe", scores, v).reshape(x.shape)
    logits = (x + out) @ weights["embed"].T
    return -jnp.mean(jax.nn.log_softmax(logits)[:, :-1][..., 0])


@jax.jit
def train_step(weights, tokens):
    value, slopes = jax.value_and_grad(loss)(weights, tokens)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, slopes), value


keys = jax.random.split(jax.random.key(0), 5)
weights = {name: 0.1 * jax.random.normal(key, (64, 4, 16)) for name, key in zip("qkv", keys[:3], strict=True)}
weights["embed"] = 0.1 * jax.random.normal(keys[3], (256, 64))
tokens = jax.random.randint(keys[4], (8, 128), 0, 256)
for _ in range(40):
    weights, value = train_step(weights, tokens)
print("last loss", float(value))
