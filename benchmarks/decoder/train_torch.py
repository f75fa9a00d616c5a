"""A small decoder-only transformer in PyTorch on the CPU: times every step and records what really ran.

    python benchmarks/decoder/train_torch.py --attention flash --output run.json --evidence witness.json

Written and run with torch 2.13.0+cpu. CPU operators are synchronous, so `perf_counter` around a step that ends in
reading its loss is the step's time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import corpus as corpora
import facts
import options as shared
import torch
import torch.nn.functional as functional
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION}
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
WITNESSED = ("scaled_dot_product", "aten::mm", "aten::addmm", "aten::bmm", "nll_loss_forward", "log_softmax")


class Block(nn.Module):
    """Attention and a plain feed-forward, each after a LayerNorm."""

    def __init__(self, hidden: int, heads: int, ffn: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_ffn = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.up, self.down = nn.Linear(hidden, ffn, bias=False), nn.Linear(ffn, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, hidden = x.shape
        qkv = self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.down(functional.gelu(self.up(self.before_ffn(x))))


class Decoder(nn.Module):
    """Byte embedding and learned positions, `depth` blocks, an untied head."""

    def __init__(self, asked: Any) -> None:
        super().__init__()
        self.tokens = nn.Embedding(corpora.VOCABULARY, asked.hidden)
        self.positions = nn.Embedding(asked.sequence_length, asked.hidden)
        self.blocks = nn.ModuleList(Block(asked.hidden, asked.heads, asked.ffn) for _ in range(asked.depth))
        self.norm = nn.LayerNorm(asked.hidden)
        self.head = nn.Linear(asked.hidden, corpora.VOCABULARY, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Trainer:
    """One model, its optimizer and its order of batches."""

    def __init__(self, asked: Any, data: bytes) -> None:
        torch.manual_seed(asked.seed)
        self.asked = asked
        self.data = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
        self.model = Decoder(asked).to(DTYPES[asked.dtype])
        self.parameters = sum(parameter.numel() for parameter in self.model.parameters())
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=asked.learning_rate, betas=(0.9, 0.95), weight_decay=0.1, fused=True
        )
        self.call = torch.compile(self.model, fullgraph=True) if asked.posture == "whole_graph" else self.model
        self.order = torch.Generator().manual_seed(asked.seed)

    def step(self) -> tuple[float, float]:
        """One optimizer step. Returns loss (nats a token) and the gradient norm before clipping."""
        length = self.asked.sequence_length
        starts = torch.randint(len(self.data) - length - 1, (self.asked.micro_batch,), generator=self.order)
        rows = torch.stack([self.data[start : start + length + 1] for start in starts])
        logits = self.call(rows[:, :-1])
        loss = functional.cross_entropy(logits.float().flatten(0, 1), rows[:, 1:].flatten())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.asked.clip)
        self.optimizer.step()
        return loss.item(), norm.item()


def train(trainer: Trainer, asked: Any, raw: dict[str, Any]) -> None:
    """Warm-up, window, profiled steps; everything is written into `raw` as it happens, so a failure leaves it there."""
    durations, losses, norms = raw["durations"], raw["losses"], raw["gradient_norms"]
    for index in range(asked.warmup + asked.steps):
        raw["phase"] = "first_window" if index == 0 else "steady"
        began = time.perf_counter()
        loss, norm = trainer.step()
        durations.append(time.perf_counter() - began)
        losses.append(loss)
        norms.append(norm)
        if index == 0:
            raw["memory"]["post_step0"] = facts.memory()
        if index + 1 == asked.warmup:
            raw["compile"]["at_window_start"] = compile_counters()
            raw["usage"]["at_window_start"] = facts.usage()
    raw["memory"]["steady"] = facts.memory()
    raw["usage"]["at_window_end"] = facts.usage()
    raw["compile"]["at_window_end"] = compile_counters()


def compile_counters() -> dict[str, Any]:
    """What torch._dynamo counted in this process so far; no frames where nothing was compiled."""
    from torch._dynamo.utils import compilation_time_metrics, counters

    return {
        "frames": counters["frames"]["total"],
        "unique_graphs": counters["stats"]["unique_graphs"],
        "graph_breaks": sum(counters["graph_break"].values()),
        "fx_cache_hits": counters["inductor"]["fxgraph_cache_hit"],
        "fx_cache_misses": counters["inductor"]["fxgraph_cache_miss"],
        "seconds": round(sum(compilation_time_metrics.get("_compile.compile_inner", [])), 4),
    }


def witness(trainer: Trainer, asked: Any, raw: dict[str, Any]) -> dict[str, Any]:
    """Profile a few steps after the window: names, types and counts of the operators that the dispatcher really ran."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiled:
        for _ in range(asked.profile_steps):
            began = time.perf_counter()
            loss, norm = trainer.step()
            raw["durations"].append(time.perf_counter() - began)
            raw["losses"].append(loss)
            raw["gradient_norms"].append(norm)
    seen: Counter[str] = Counter()
    kinds: dict[str, set[str]] = {}
    for event in profiled.profiler.kineto_results.events():
        name = event.name()
        if name.startswith("aten::") and any(part in name for part in WITNESSED):
            seen[name] += 1
            kinds.setdefault(name, set()).update(kind for kind in event.dtypes() if kind not in ("", "Scalar"))
    return {
        "launch": asked.launch,
        "producer": "torch.profiler",
        "version": torch.__version__,
        "steps": asked.profile_steps,
        "layers": asked.depth,
        "devices": sorted({str(parameter.device) for parameter in trainer.model.parameters()}),
        "operators": {name: {"count": seen[name], "types": sorted(kinds[name])} for name in sorted(seen)},
        "dynamo_graphs": raw["compile"]["at_window_end"]["unique_graphs"],
    }


def main() -> int:
    """Train, and write the raw facts whatever happens."""
    parser = shared.parser("A small decoder in PyTorch on the CPU.")
    parser.add_argument("--attention", choices=sorted(BACKENDS), default="math", help="backend asked for")
    parser.add_argument("--inner-attention", choices=sorted(BACKENDS), help="another backend, chosen nearer the call")
    parser.add_argument("--posture", choices=("eager", "whole_graph"), default="eager")
    parser.add_argument("--address-space-limit-bytes", type=int, help="RLIMIT_AS once torch is imported")
    asked = parser.parse_args()
    text = corpora.read()
    raw: dict[str, Any] = {
        "framework": "torch",
        "code": dict(zip(("imported_digest", "files"), facts.imported_digest(), strict=True)),
        "launch": asked.launch,
        "started": facts.now(),
        "command": shared.command("train_torch.py", sys.argv[1:]),
        "context": shared.context(parser),
        "configuration": shared.configuration(asked),
        "host": facts.host(asked.host_label),
        "environment": facts.environment(),
        "python": sys.version.split()[0],
        "wheels": facts.wheels(),
        "threads": {"intra": torch.get_num_threads(), "inter": torch.get_num_interop_threads()},
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
    if asked.address_space_limit_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (asked.address_space_limit_bytes,) * 2)
    try:
        run(asked, text.data, raw)
    except (RuntimeError, MemoryError) as error:
        raw["failure"] = failure(error)
        raise
    finally:
        finish(asked, raw)
    return 0


def run(asked: Any, data: bytes, raw: dict[str, Any]) -> None:
    """Build and train under the backend that was asked for."""
    with contextlib.ExitStack() as chosen:
        chosen.enter_context(sdpa_kernel(BACKENDS[asked.attention]))
        if asked.inner_attention:
            chosen.enter_context(sdpa_kernel(BACKENDS[asked.inner_attention]))
        trainer = Trainer(asked, data)
        raw["parameters"] = trainer.parameters
        raw["memory"]["post_init"] = facts.memory()
        train(trainer, asked, raw)
        if asked.profile_steps:
            seen = witness(trainer, asked, raw)
            content = (json.dumps(seen, indent=1) + "\n").encode()
            asked.evidence.write_bytes(content)
            raw["evidence"] = {"name": asked.evidence.name, "sha256": hashlib.sha256(content).hexdigest(), **seen}


def failure(error: BaseException) -> dict[str, Any]:
    """The message, where it was raised, and what the process held at that moment."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_frame.f_code.co_name}")
        trace = trace.tb_next
    return {"type": type(error).__name__, "message": str(error), "frames": frames, "memory": facts.memory()}


def finish(asked: Any, raw: dict[str, Any]) -> None:
    """Write what is known. Losses that are not finite become null, since JSON has no word for them."""
    raw["finished"] = facts.now()
    raw["durations"] = facts.rounded(raw["durations"])
    raw["memory"]["end"] = facts.memory()
    raw["host"]["load_average_at_end"] = list(os.getloadavg())
    for name in ("losses", "gradient_norms"):
        raw[name] = [round(value, 6) if math.isfinite(value) else None for value in raw[name]]
    asked.output.write_text(json.dumps(raw, allow_nan=False) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
