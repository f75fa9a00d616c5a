"""The same small decoder in JAX on the CPU: one jitted train step, timed step by step, with what the compiler did.

    python benchmarks/decoder/train_jax.py --recompute full --output run.json --evidence witness.json

Written and run with jax and jaxlib 0.10.2. The step is lowered and compiled ahead, so the program whose text
is the witness is the very executable that every step calls.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import corpus as corpora
import facts
import jax
import jax.numpy as jnp
import numpy as np
import options as shared

DTYPES = {"fp32": jnp.float32, "bf16": jnp.bfloat16}
BETAS, EPSILON, DECAY = (0.9, 0.95), 1e-8, 0.1
COMPILED = "/jax/core/compile/backend_compile_duration"
CACHE = {"/jax/compilation_cache/cache_hits": "cache_hits", "/jax/compilation_cache/cache_misses": "cache_misses"}

Tree = dict[str, Any]


class CompileLog:
    """Counts what jax.monitoring reports, from the moment it listens."""

    def __init__(self) -> None:
        self.compiles, self.seconds = 0, 0.0
        self.events: Counter[str] = Counter()
        jax.monitoring.register_event_duration_secs_listener(self._duration)
        jax.monitoring.register_event_listener(self._event)

    def _duration(self, event: str, seconds: float, **_: Any) -> None:
        if event == COMPILED:
            self.compiles += 1
            self.seconds += seconds

    def _event(self, event: str, **_: Any) -> None:
        if event in CACHE:
            self.events[CACHE[event]] += 1

    def now(self) -> dict[str, float]:
        """Compiles, their seconds, cache hits and misses so far."""
        counted = {name: self.events[name] for name in CACHE.values()}
        return {"compiles": self.compiles, "seconds": round(self.seconds, 4), **counted}


def initial(asked: Any) -> Tree:
    """Parameters in a tree; the leaves of `blocks` carry the depth as their leading dimension."""
    draw = np.random.default_rng(asked.seed)
    hidden, ffn, depth = asked.hidden, asked.ffn, asked.depth

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(draw.normal(0.0, 0.02, shape), DTYPES[asked.dtype])

    def norm(*shape: int) -> Tree:
        return {"scale": jnp.ones(shape, DTYPES[asked.dtype]), "bias": jnp.zeros(shape, DTYPES[asked.dtype])}

    blocks = {
        "before_attention": norm(depth, hidden),
        "before_ffn": norm(depth, hidden),
        "qkv": normal(depth, hidden, 3 * hidden),
        "out": normal(depth, hidden, hidden),
        "up": normal(depth, hidden, ffn),
        "down": normal(depth, ffn, hidden),
    }
    return {
        "tokens": normal(corpora.VOCABULARY, hidden),
        "positions": normal(asked.sequence_length, hidden),
        "blocks": blocks,
        "norm": norm(hidden),
        "head": normal(hidden, corpora.VOCABULARY),
    }


def layer_norm(x: jax.Array, weight: Tree) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight["scale"] + weight["bias"]


def block(x: jax.Array, weight: Tree, heads: int) -> jax.Array:
    """Causal attention and a plain feed-forward, each after a LayerNorm. `x` is batch × length × hidden."""
    batch, length, hidden = x.shape
    qkv = (layer_norm(x, weight["before_attention"]) @ weight["qkv"]).reshape(batch, length, 3, heads, -1)
    q, k, v = (qkv[:, :, part] for part in range(3))
    mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="xla")
    x = x + mixed.reshape(batch, length, hidden) @ weight["out"]
    return x + jax.nn.gelu(layer_norm(x, weight["before_ffn"]) @ weight["up"]) @ weight["down"]


def loss_of(asked: Any) -> Callable[[Tree, jax.Array], jax.Array]:
    """The loss in nats a token of a batch of `length + 1` tokens a row."""

    def plain(x: jax.Array, weight: Tree) -> jax.Array:
        return block(x, weight, asked.heads)

    one = jax.checkpoint(plain) if asked.recompute == "full" else plain

    def loss(parameters: Tree, rows: jax.Array) -> jax.Array:
        x = parameters["tokens"][rows[:, :-1]] + parameters["positions"]
        if asked.layers == "scan":
            x, _ = jax.lax.scan(lambda carry, weight: (one(carry, weight), None), x, parameters["blocks"])
        else:
            for index in range(asked.depth):
                x = one(x, jax.tree.map(lambda leaf, at=index: leaf[at], parameters["blocks"]))
        logits = (layer_norm(x, parameters["norm"]) @ parameters["head"]).astype(jnp.float32)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), rows[:, 1:, None], axis=-1)
        return -chosen.mean()

    return loss


def step_of(asked: Any) -> Callable[..., Any]:
    """One AdamW step with clipping: parameters, moments, count and rows in; the same and loss, norm out."""
    loss = loss_of(asked)

    def step(parameters: Tree, moments: tuple[Tree, Tree], count: jax.Array, rows: jax.Array) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, rows)
        norm = jnp.sqrt(sum(jnp.sum(leaf.astype(jnp.float32) ** 2) for leaf in jax.tree.leaves(gradients)))
        gradients = jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, asked.clip / (norm + 1e-6)), gradients)
        first = jax.tree.map(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, moments[0], gradients)
        second = jax.tree.map(lambda m, g: BETAS[1] * m + (1 - BETAS[1]) * g * g, moments[1], gradients)
        after = count + 1
        unbias = [1 - beta**after for beta in BETAS]

        def updated(weight: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            change = (m / unbias[0]) / (jnp.sqrt(v / unbias[1]) + EPSILON)
            return (weight - asked.learning_rate * (change + DECAY * weight)).astype(weight.dtype)

        return jax.tree.map(updated, parameters, first, second), (first, second), after, value, norm

    return step


def witness(compiled: Any, asked: Any) -> dict[str, Any]:
    """What the compiled program says of itself: backend, matrix products by type, loops, calls, planned bytes."""
    text = compiled.as_text()
    dots = Counter(re.findall(r"= (\w+)\[[^=]*?\]\S* dot\(", text))
    calls = Counter(re.findall(r'custom_call_target="([^"]+)"', text))
    plan = compiled.memory_analysis()
    return {
        "launch": asked.launch,
        "producer": "jax",
        "version": jax.__version__,
        "platform": jax.default_backend(),
        "devices": [device.device_kind for device in jax.devices()],
        "program_digest": hashlib.sha256(text.encode()).hexdigest(),
        "program_lines": text.count("\n"),
        "dots": dict(sorted(dots.items())),
        "custom_calls": dict(sorted(calls.items())),
        "while_loops": len(re.findall(r" while\(", text)),
        "argument_bytes": plan.argument_size_in_bytes,
        "output_bytes": plan.output_size_in_bytes,
        "temp_bytes": plan.temp_size_in_bytes,
    }


def train(asked: Any, data: bytes, log: CompileLog, raw: dict[str, Any]) -> None:
    """Compile, warm-up, window; losses stay on the device until the window has closed."""
    tokens = np.frombuffer(data, dtype=np.uint8).astype(np.int32)
    order, length = np.random.default_rng(asked.seed), asked.sequence_length
    parameters = initial(asked)
    moments = (jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters))
    count = jnp.zeros((), jnp.float32)
    raw["parameters"] = sum(leaf.size for leaf in jax.tree.leaves(parameters))
    raw["memory"]["post_init"] = facts.memory()
    rows = np.zeros((asked.micro_batch, length + 1), np.int32)
    donated = (0, 1, 2) if asked.donate else ()
    raw["phase"], began = "compile", time.perf_counter()
    compiled = jax.jit(step_of(asked), donate_argnums=donated).lower(parameters, moments, count, rows).compile()
    raw["compile"]["step_seconds"] = round(time.perf_counter() - began, 4)
    raw["memory"]["post_compile"] = facts.memory()
    seen = []
    for index in range(asked.warmup + asked.steps):
        raw["phase"] = "first_window" if index == 0 else "steady"
        began = time.perf_counter()
        starts = order.integers(0, len(tokens) - length - 1, asked.micro_batch)
        rows = np.stack([tokens[start : start + length + 1] for start in starts])
        parameters, moments, count, loss, norm = compiled(parameters, moments, count, rows)
        jax.block_until_ready((parameters, loss))
        raw["durations"].append(time.perf_counter() - began)
        seen.append((loss, norm))
        if index == 0:
            raw["memory"]["post_step0"] = facts.memory()
        if index + 1 == asked.warmup:
            raw["compile"]["at_window_start"] = log.now()
            raw["usage"]["at_window_start"] = facts.usage()
    raw["memory"]["steady"] = facts.memory()
    raw["usage"]["at_window_end"] = facts.usage()
    raw["compile"]["at_window_end"] = log.now()
    raw["losses"] = [float(np.asarray(loss)) for loss, _ in seen]
    raw["gradient_norms"] = [float(np.asarray(norm)) for _, norm in seen]
    evidence = {**witness(compiled, asked), "compile": raw["compile"]}
    content = (json.dumps(evidence, indent=1) + "\n").encode()
    asked.evidence.write_bytes(content)
    raw["evidence"] = {"name": asked.evidence.name, "sha256": hashlib.sha256(content).hexdigest(), **evidence}


def main() -> int:
    """Train, and write the raw facts whatever happens."""
    parser = shared.parser("A small decoder in JAX on the CPU.")
    parser.add_argument("--recompute", choices=("none", "full"), default="none", help="activation recompute a block")
    parser.add_argument("--layers", choices=("unrolled", "scan"), default="unrolled")
    parser.add_argument("--no-donate", dest="donate", action="store_false", help="keep the old parameters alive")
    asked = parser.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)
    log = CompileLog()
    text = corpora.read()
    raw: dict[str, Any] = {
        "framework": "jax",
        "code": dict(zip(("imported_digest", "files"), facts.imported_digest(), strict=True)),
        "launch": asked.launch,
        "started": facts.now(),
        "command": shared.command("train_jax.py", sys.argv[1:]),
        "context": shared.context(parser),
        "configuration": shared.configuration(asked),
        "host": facts.host(asked.host_label),
        "environment": facts.environment(),
        "python": sys.version.split()[0],
        "wheels": facts.wheels(),
        "corpus": {"name": text.name, "digest": text.digest, "bytes": len(text.data)},
        "vocabulary": corpora.VOCABULARY,
        "phase": "startup",
        "durations": [],
        "losses": [],
        "gradient_norms": [],
        "memory": {},
        "compile": {},
        "usage": {},
    }
    try:
        train(asked, text.data, log, raw)
    finally:
        raw["finished"] = facts.now()
        raw["durations"] = facts.rounded(raw["durations"])
        raw["memory"]["end"] = facts.memory()
        raw["host"]["load_average_at_end"] = list(os.getloadavg())
        for name in ("losses", "gradient_norms"):
            raw[name] = [round(value, 6) if math.isfinite(value) else None for value in raw[name]]
        asked.output.write_text(json.dumps(raw, allow_nan=False) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
