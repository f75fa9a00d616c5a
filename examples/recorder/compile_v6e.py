"""Compile a decoder's step for TPU v6e ahead of time, on a host without a TPU, and keep the program.

    export TPU_SKIP_MDS_QUERY=1 JAX_PLATFORMS=cpu TPU_ACCELERATOR_TYPE=v6e-4 TPU_WORKER_HOSTNAMES=localhost
    python examples/recorder/compile_v6e.py --variant splash

Nothing is trained, and there is no receipt of it: the program is evidence beside the log of a launch (`receipts ingest
run.log program.txt.gz`). ``flash`` and ``splash`` ask for JAX's own Pallas kernels and take them; ``plain`` is the same
step with the switch lost that takes them.
"""

from __future__ import annotations

import argparse
import gzip
from functools import partial
from pathlib import Path
from typing import Any

import common
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks
from jax.sharding import Mesh, NamedSharding, PartitionSpec

VARIANTS = ("flash", "splash", "plain")
CHIPS, LAYERS, HEADS, HEAD, FFN, VOCABULARY = 4, 2, 2, 128, 512, 512
HIDDEN = HEADS * HEAD
BATCH, LENGTH = 4, 1024


def main() -> None:
    """One compilation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", choices=VARIANTS, default="flash")
    parser.add_argument("--out", type=Path, default=common.HERE, help="folder for the program")
    asked = parser.parse_args()
    program = common.bare(lowered(asked.variant).compile().as_text())
    path = asked.out / "evidence" / f"v6e-decoder-{asked.variant}.hlo.txt.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(program.encode(), mtime=0))
    print(f"wrote {path}")


def lowered(variant: str) -> Any:
    """The step, with every array split over four chips of a v6e."""
    shape = {"platform": "tpu", "topology_name": "v6e:2x2", "chips_per_host_bounds": (2, 2, 1), "num_slices": 1}
    chips = topologies.get_topology_desc(**shape).devices
    mesh = Mesh(np.array(chips).reshape(CHIPS), ("data",))
    split, whole = NamedSharding(mesh, PartitionSpec("data", None)), NamedSharding(mesh, PartitionSpec())

    def matrix(*extents: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(extents, jnp.bfloat16, sharding=split)

    block = {"qkv": (HIDDEN, 3 * HIDDEN), "out": (HIDDEN, HIDDEN), "up": (HIDDEN, FFN), "down": (FFN, HIDDEN)}
    blocks = [{name: matrix(*extents) for name, extents in block.items()} for _ in range(LAYERS)]
    parameters = {"tokens": matrix(VOCABULARY, HIDDEN), "head": matrix(HIDDEN, VOCABULARY), "blocks": blocks}
    rows = jax.ShapeDtypeStruct((BATCH, LENGTH + 1), jnp.int32, sharding=split)
    mixing = partial(attention, variant, mesh)

    def train_step(parameters: Any, rows: Any) -> tuple[Any, Any]:
        found, slopes = jax.value_and_grad(loss)(parameters, rows, mixing)
        return jax.tree.map(lambda value, slope: value - common.RATE * slope, parameters, slopes), found

    places = jax.tree.map(lambda leaf: leaf.sharding, parameters)
    return jax.jit(train_step, out_shardings=(places, whole)).lower(parameters, rows)


def attention(variant: str, mesh: Mesh, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Causal attention of (batch, length, heads, head) arrays, by a Pallas kernel on each chip, or by XLA's own."""
    if variant == "plain":
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)
    scale = HEAD**-0.5
    if variant == "splash":
        kernel = splash.make_splash_mha_single_device(masks.MultiHeadMask([masks.CausalMask((LENGTH, LENGTH))] * HEADS))
        call = partial(scaled, jax.vmap(kernel), scale)
    else:
        call = partial(flash_attention, causal=True, sm_scale=scale)
    heads_first = [jnp.swapaxes(item, 1, 2) for item in (q, k, v)]
    each = PartitionSpec("data")
    mixed = jax.shard_map(call, mesh=mesh, in_specs=(each,) * 3, out_specs=each, check_vma=False)(*heads_first)
    return jnp.swapaxes(mixed, 1, 2)


def scaled(kernel: Any, scale: float, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """A kernel that scales no scores by itself."""
    return kernel(q * scale, k, v)


def loss(parameters: Any, rows: jax.Array, mixing: Any) -> jax.Array:
    """Mean cross-entropy of the next token, in nats."""
    x = parameters["tokens"][rows[:, :-1]]
    for block in parameters["blocks"]:
        q, k, v = (part.reshape(BATCH, LENGTH, HEADS, HEAD) for part in jnp.split(x @ block["qkv"], 3, -1))
        x = x + mixing(q, k, v).reshape(BATCH, LENGTH, HIDDEN) @ block["out"]
        x = x + jax.nn.gelu(x @ block["up"]) @ block["down"]
    scores = jax.nn.log_softmax((x @ parameters["head"]).astype(jnp.float32))
    return -jnp.take_along_axis(scores, rows[:, 1:, None], -1).mean()


if __name__ == "__main__":
    main()
