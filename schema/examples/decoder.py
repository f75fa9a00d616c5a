"""A small decoder in JAX that writes its own receipt: the launches of the measured examples beside this file.

    python decoder.py --out measured.json --save state.npz
    python decoder.py --out resumed.json --resume state.npz
    python decoder.py --out profile.json --profile trace --witness-for LAUNCH --steps 80

It trains on bytes of the Python standard library, on one CPU, in the lane ``cpu-jax``. Needs jax and numpy alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import shlex
import sys
import sysconfig
import time
import uuid
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

STARTED = datetime.now(UTC)
DEPTH, HIDDEN, HEADS, FFN, VOCABULARY = 8, 64, 4, 256, 256  # four attention and four feed-forward blocks
BATCH, LENGTH, RATE, SEED, WARMUP = 4, 128, 1e-3, 7, 20
compiles: list[float] = []


def on_compile(event: str, seconds: float, **_: object) -> None:
    if event == "/jax/core/compile/backend_compile_duration":
        compiles.append(seconds)


def initial() -> dict[str, jax.Array]:
    keys = iter(jax.random.split(jax.random.key(SEED), 64))

    def matrix(rows: int, columns: int) -> jax.Array:
        return jax.random.normal(next(keys), (rows, columns), jnp.float32) * rows**-0.5

    found = {"embed": matrix(VOCABULARY, HIDDEN), "head": matrix(HIDDEN, VOCABULARY) * 0.1}
    for layer in range(DEPTH // 2):
        found[f"qkv{layer}"], found[f"out{layer}"] = matrix(HIDDEN, 3 * HIDDEN), matrix(HIDDEN, HIDDEN)
        found[f"up{layer}"], found[f"down{layer}"] = matrix(HIDDEN, FFN), matrix(FFN, HIDDEN)
    return found


def norm(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def loss_of(weights: dict[str, jax.Array], tokens: jax.Array) -> jax.Array:
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    x = weights["embed"][inputs] * HIDDEN**0.5
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    for layer in range(DEPTH // 2):
        qkv = (norm(x) @ weights[f"qkv{layer}"]).reshape(BATCH, LENGTH, 3, HEADS, HIDDEN // HEADS)
        q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (HIDDEN // HEADS) ** -0.5
        seen = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)
        x = x + seen.reshape(BATCH, LENGTH, HIDDEN) @ weights[f"out{layer}"]
        x = x + jax.nn.gelu(norm(x) @ weights[f"up{layer}"]) @ weights[f"down{layer}"]
    chances = jax.nn.log_softmax(norm(x) @ weights["head"])
    return -jnp.mean(jnp.take_along_axis(chances, targets[..., None], -1))


def train_step(state: tuple, tokens: jax.Array) -> tuple:
    weights, first, second, step = state
    loss, gradients = jax.value_and_grad(loss_of)(weights, tokens)
    size = jnp.sqrt(sum(jnp.sum(g * g) for g in gradients.values()))
    step = step + 1
    first = {k: 0.9 * first[k] + 0.1 * g for k, g in gradients.items()}
    second = {k: 0.99 * second[k] + 0.01 * g * g for k, g in gradients.items()}
    scale = RATE / (1 - 0.9**step)
    moved = {k: w - scale * first[k] / (jnp.sqrt(second[k] / (1 - 0.99**step)) + 1e-8) for k, w in weights.items()}
    return (moved, first, second, step), loss, size


def text() -> np.ndarray:
    names = ("argparse", "ast", "datetime", "decimal", "difflib", "inspect", "pathlib", "typing", "zipfile", "tarfile")
    folder = Path(sysconfig.get_path("stdlib"))
    files = [folder / f"{name}.py" for name in names]
    return np.frombuffer(b"".join(file.read_bytes() for file in files if file.is_file()), np.uint8)


def memory(phase: str, step: int) -> dict[str, object]:
    """The process as the kernel counts it: JAX keeps no statistics of a CPU."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    used = min(pages * os.sysconf("SC_PAGE_SIZE"), peak)
    return {"chip": 0, "phase": phase, "bytes_used": used, "bytes_limit": total, "peak_bytes": peak, "step": step}


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("--out", "--save", "--resume", "--profile", "--witness-for", "--label"):
        parser.add_argument(name)
    parser.add_argument("--steps", type=int, default=400)
    asked = parser.parse_args()
    jax.monitoring.register_event_duration_secs_listener(on_compile)

    weights = initial()
    zeros = {k: jnp.zeros_like(w) for k, w in weights.items()}
    state = (weights, zeros, zeros, jnp.float32(0))
    resumed = np.load(asked.resume) if asked.resume else None
    if resumed is not None:
        state = tuple({k: jnp.asarray(resumed[f"{part}.{k}"]) for k in weights} for part in "wfs")
        state = (*state, jnp.float32(resumed["step"]))
    rows = [memory("post_init", 0)]
    corpus = text()
    source = np.random.default_rng(SEED + int(state[3]))
    starts = source.integers(0, len(corpus) - LENGTH - 1, (asked.steps, BATCH))
    batches = corpus[starts[..., None] + np.arange(LENGTH + 1)].astype(np.int32)
    compiled = jax.jit(train_step).lower(state, jnp.asarray(batches[0])).compile()
    rows.append(memory("post_compile", 0))

    seconds, losses, sizes, before = [], [], [], 0
    profiled = range(WARMUP + 10, WARMUP + 15) if asked.profile else range(0)
    for number, batch in enumerate(batches):
        if profiled and number == profiled.start:
            jax.profiler.start_trace(asked.profile)
        tokens = jax.block_until_ready(jnp.asarray(batch))
        begin = time.perf_counter()
        state, loss, size = jax.block_until_ready(compiled(state, tokens))
        seconds.append(round(time.perf_counter() - begin, 6))
        losses.append(loss)
        sizes.append(size)
        if profiled and number == profiled.stop - 1:
            jax.profiler.stop_trace()
        if number == 0:
            rows.append(memory("post_step0", 0))
        if number == WARMUP - 1:
            before = len(compiles)
    after = len(compiles) - before
    rows.append(memory("steady", asked.steps - 1))
    losses, sizes = [float(x) for x in losses], [float(x) for x in sizes]

    launch = str(uuid.uuid4())
    if asked.save:
        parts = {f"{part}.{k}": v for part, tree in zip("wfs", state[:3], strict=True) for k, v in tree.items()}
        np.savez(asked.save, step=state[3], launch=launch, **parts)
    hlo = compiled.as_text()
    Path(asked.out).with_suffix(".hlo.txt").write_text(hlo)
    analysis = compiled.memory_analysis()
    evidence = [
        {
            "kind": "hlo",
            "producer": "jax",
            "version": jax.__version__,
            "uri": Path(asked.out).with_suffix(".hlo.txt").name,
            "sha256": hashlib.sha256(hlo.encode()).hexdigest(),
            "level": "backend",
            "observed": {"custom_calls": hlo.count("custom-call("), "f32_dots": hlo.count(" dot(")},
        }
    ]
    if asked.profile:
        trace = next(Path(asked.profile).rglob("*.xplane.pb"))
        evidence.append(
            {
                "kind": "jax-profile",
                "producer": "jax",
                "version": jax.__version__,
                "uri": trace.name,
                "sha256": hashlib.sha256(trace.read_bytes()).hexdigest(),
                "level": "kernels",
                "observed": {"steps": len(profiled)},
            }
        )
    last = asked.steps - 1
    picked = [0, *range(100, last, 100), last]
    run = {
        "launch": launch,
        "lane": "cpu-jax",
        "kind": "profile" if asked.profile else "training",
        "outcome": "ok",
        "provenance": "measured",
        "started": STARTED.isoformat(timespec="seconds"),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "label": asked.label,
        "context": "decoder.py",
        "host": "two-cores",
        "command": shlex.join(["python", Path(sys.argv[0]).name, *sys.argv[1:]]),
        "exit_code": 0,
        "witness_for": asked.witness_for,
        "resumed_from": str(resumed["launch"]) if resumed is not None else None,
        "start_step": int(resumed["step"]) if resumed is not None else None,
    }
    seen = {
        "framework": "jax",
        "frameworks": [name for name in ("jax", "torch", "tensorflow") if name in sys.modules],
        "runtime": "cpu",
        "attention": "xla" if " dot(" in hlo and "custom-call(" not in hlo else "xla_custom_call",
        "gemm": "xla_f32",
        "posture": "jit",
        "compute_dtype": "fp32",
        "fallbacks": {},
        "cross_entropy": "xla",
        "mtp_cross_entropy": "none",
        "dispatch": "none",
        "overlap": "none",
    }
    document = {
        "schema_version": "1.0",
        "run": {k: v for k, v in run.items() if v is not None},
        "code": {
            "repository": "frontier-receipts, schema/examples/decoder.py",
            "imported_digest": hashlib.sha256(Path(__file__).read_bytes()).hexdigest(),
        },
        "hardware": {"accelerator": "cpu", "chips": 1, "hosts": 1},
        "platform": {
            "os": f"{platform.system()} {platform.release().partition('-')[0]}",
            "python": platform.python_version(),
        },
        "wheels": {"complete": True, **{d.name: d.version for d in sorted(distributions(), key=lambda d: d.name)}},
        "flags": {
            "complete": True,
            **{
                key: {"value": value, "before_runtime": True}
                for key, value in sorted(os.environ.items())
                if key.startswith(("XLA_", "JAX_", "OMP_"))
            },
        },
        "patches": {"complete": True},
        "features": {"complete": True},
        "model": {
            "name": "small decoder",
            "family": "dense",
            "pattern": "*-" * (DEPTH // 2),
            "alphabet": "nemo",
            "depth": DEPTH,
            "hidden": HIDDEN,
            "heads": HEADS,
            "kv_heads": HEADS,
            "head_dim": HIDDEN // HEADS,
            "ffn": FFN,
            "ffn_projections": 2,
            "shared_expert_ffn": 0,
            "vocabulary": VOCABULARY,
            "experts": 0,
            "top_k": 0,
            "mtp_depth": 0,
            "tied_embeddings": False,
            "attention_kinds": "4 full",
            "parameters_total": sum(w.size for w in weights.values()),
        },
        "parallelism": {"tensor": 1, "expert": 1, "context": 1, "pipeline": 1, "data": 1},
        "batch": {"micro_batch": BATCH, "global_batch": BATCH, "sequence_length": LENGTH, "accumulation": 1},
        "numerics": {
            "compute_dtype": "fp32",
            "fp8_recipe": "none",
            "fp8_scope": "none",
            "parameter_dtype": "fp32",
            "reduction_dtype": "fp32",
            "buffer_dtype": "fp32",
            "optimizer": "adam",
            "optimizer_other": "none",
            "optimizer_state_dtype": "fp32",
            "learning_rate": RATE,
            "schedule": "constant",
            "seed": SEED,
            "recompute": "none",
            "recompute_applied": "none",
            "adapters": {"kind": "none"},
        },
        "compile": {
            "posture": "jit",
            "backend": "xla",
            "warmup_policy": f"{WARMUP} steps",
            "cache_state": "off",
            "compile_seconds": round(sum(compiles), 3),
            "compiles": len(compiles),
            "compiles_after_warmup": after,
            "graph_breaks": 0,
            "program_digest": hashlib.sha256(hlo.encode()).hexdigest(),
            "argument_bytes": analysis.argument_size_in_bytes,
            "output_bytes": analysis.output_size_in_bytes,
            "temp_bytes": analysis.temp_size_in_bytes,
        },
        "data": {
            "dataset": f"bytes of ten modules of the standard library of Python {platform.python_version()}",
            "dataset_digest": hashlib.sha256(corpus.tobytes()).hexdigest(),
            "tokenizer": "bytes",
            "kind": "real",
        },
        "path": {"intended": INTENDED, "witnessed": seen},
        "measurement": {
            "step_durations_seconds": seconds,
            "step_flags": {"warmup": list(range(WARMUP)), "profile": list(profiled)},
            "steps": asked.steps,
            "window": {"start": WARMUP, "stop": asked.steps, "warmup_steps": WARMUP},
            "timer": "perf_counter",
            "synchronisation": "device",
            "region": "step",
            "tokens_per_step": BATCH * LENGTH,
            "loss": {
                "first": round(losses[0], 4),
                "last": round(losses[-1], 4),
                "finite": bool(np.isfinite(losses).all()),
                "steps": picked,
                "values": [round(losses[step], 4) for step in picked],
            },
            "gradient_norm": {
                "first": round(sizes[0], 4),
                "last": round(sizes[-1], 4),
                "largest": round(max(sizes), 4),
                "finite": bool(np.isfinite(sizes).all()),
            },
        },
        "memory": {"chips": rows},
        "evidence": evidence,
        "notes": {"memory": "the process as the kernel counts it; JAX keeps no statistics of a CPU"},
    }
    Path(asked.out).write_text(json.dumps(document) + "\n")


INTENDED = {
    "framework": "jax",
    "runtime": "cpu",
    "attention": "xla",
    "gemm": "xla_f32",
    "dispatch": "none",
    "overlap": "none",
    "cross_entropy": "xla",
    "mtp_cross_entropy": "none",
}

if __name__ == "__main__":
    main()
