"""Train a small decoder or hybrid with JAX, recorded, clean or broken on purpose.

    python examples/recorder/train_jax.py --model decoder --variant clean
    XLA_FLAGS=--xla_force_host_platform_device_count=8 python examples/recorder/train_jax.py --model hybrid --devices 8

Several devices are virtual ones of one processor, over which batch and parameters are split. The flag stands in the
environment, since a receipt asks whether it came before the runtime. ``item`` reads the loss in every step; ``shapes``
changes the sequence's length once the warm-up is over, so that the step is compiled again; ``drift`` leaves from an
earlier version of the script that the step's parameters come out whole, so that after one step every device has all.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import common

LANE = "cpu-jax"


def batches(data: bytes, variant: str) -> Iterator[Any]:
    """Rows of bytes, one longer than the sequence."""
    import numpy as np

    text = np.frombuffer(data, dtype=np.uint8).astype(np.int32)
    order = np.random.default_rng(1)
    for step in range(common.WARMUP + common.STEPS):
        late = step - common.WARMUP
        length = common.LENGTH - (8 * (late // 50 + 1) if variant == "shapes" and late >= 0 else 0)
        starts = order.integers(0, len(text) - length - 1, common.BATCH)
        yield np.stack([text[start : start + length + 1] for start in starts])


def main() -> None:
    """One launch."""
    asked = common.options(("clean", "item", "shapes", "drift"), __doc__ or "", devices=True)
    import jax

    # After the import, so that it hears every compilation, and before JAX starts its backend.
    data = common.corpus()
    with common.recorder(LANE, asked, synchronisation="loss read" if asked.variant == "item" else "device") as rec:
        train(rec, asked, data, jax)


def train(rec: Any, asked: argparse.Namespace, data: bytes, jax: Any) -> None:
    """Build, compile, take the steps, and say what the compiled program shows."""
    import jax.numpy as jnp
    import model_jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    pattern = common.PATTERNS[asked.model][0]
    if jax.device_count() != asked.devices:
        raise SystemExit(f"JAX has {jax.device_count()} devices, and --devices says {asked.devices}: set XLA_FLAGS")
    mesh = Mesh(jax.devices(), ("data",))
    split, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
    several = asked.devices > 1

    def placed(leaf: Any) -> Any:
        at = next((at for at, extent in enumerate(leaf.shape) if extent % asked.devices == 0), None)
        if not several or leaf.ndim < 2 or at is None:
            return whole
        return NamedSharding(mesh, PartitionSpec(*["data" if axis == at else None for axis in range(leaf.ndim)]))

    parameters = model_jax.initial(pattern)
    places = jax.tree.map(placed, parameters)
    parameters = jax.device_put(parameters, places)
    count = sum(leaf.size for leaf in jax.tree.leaves(parameters))
    common.state(rec, asked, data, parameters=count, chips=asked.devices)
    rec.path(framework="jax", runtime="cpu", attention="xla_unfused")
    if several:
        rec.path(sharding="fsdp")
    rec.state("compile.posture", "jit")

    kept = whole if asked.variant == "drift" else places

    @partial(jax.jit, out_shardings=(kept, whole, whole))
    def step(parameters: Any, rows: Any) -> tuple[Any, Any, Any]:
        loss, slopes = jax.value_and_grad(partial(model_jax.loss, pattern=pattern))(parameters, rows)
        norm = jnp.sqrt(sum(jnp.sum(slope**2) for slope in jax.tree.leaves(slopes)))
        rate = common.RATE * jnp.minimum(1.0, common.CLIP / norm)
        return jax.tree.map(lambda value, slope: value - rate * slope, parameters, slopes), loss, norm

    program = None
    for rows in batches(data, asked.variant):
        with rec.step(tokens=common.BATCH * (rows.shape[1] - 1)):
            batch = jax.device_put(rows, split)
            if program is None:
                with rec.span("compile"):
                    program = step.lower(parameters, batch).compile().as_text()
            parameters, loss, norm = step(parameters, batch)
            if asked.variant == "item":
                loss = float(loss)
            else:
                jax.block_until_ready(parameters)
        rec.loss(loss)
        rec.gradient_norm(norm)
    witness(rec, asked, str(program), parameters if several else None)


def witness(rec: Any, asked: argparse.Namespace, program: str, parameters: Any) -> None:
    """State what the optimised program holds (products by type, calls out of it, collectives), and where arrays lie."""
    dots = re.findall(r"= (\w+)\[[^\]]*\]\S* dot\(", program)
    custom = sorted(set(re.findall(r'custom_call_target="([^"]+)"', program)))
    fused = [name for name in custom if "attention" in name.lower() or "mha" in name.lower()]
    collectives = {name: len(re.findall(rf" {name}(?:-start)?\(", program)) for name in ("all-reduce", "all-gather")}
    exponents = len(re.findall(r" exponential\(", program))
    seen = {"dots": len(dots), "types": sorted(set(dots)), "custom_calls": custom, "exponentials": exponents}
    places = {} if parameters is None else arrays(parameters)
    evidence = {**seen, **collectives, "arrays": places, "launch": rec.launch, "producer": "XLA"}
    uri = common.write(asked.out, asked, LANE, evidence)
    transfers = 1.0 if asked.variant == "item" else 0.0
    rec.observe(
        attention=None if fused or not dots else "xla_unfused",
        compute_dtype="fp32" if set(dots) == {"f32"} else None,
        posture="jit",
        host_transfers_per_step=transfers,
        kind="hlo-summary",
        level="backend",
        uri=uri,
    )
    if places:
        replicated = [name for name, place in places.items() if "'data'" not in place]
        kept = "dp" if len(replicated) == len(places) else "fsdp" if collectives["all-gather"] else None
        rec.observe(sharding=kept, replicated=replicated)


def arrays(parameters: Any) -> dict[str, str]:
    """Of every matrix, by its place in the tree, how it lies over the mesh."""
    import jax

    leaves = jax.tree_util.tree_leaves_with_path(parameters)
    return {jax.tree_util.keystr(path): str(leaf.sharding.spec) for path, leaf in leaves if leaf.ndim > 1}


if __name__ == "__main__":
    main()
