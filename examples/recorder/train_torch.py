"""Train a small decoder or hybrid with PyTorch on one processor, recorded, clean or broken on purpose.

    python examples/recorder/train_torch.py --model hybrid --variant clean

``sdpa`` asks for flash attention and runs math; ``item`` reads the loss in every step; ``compiled`` compiles the whole
model; ``breaks`` compiles it with a number of Python's read before and after its blocks, ``loop`` with one read in the
loop over them; ``eager`` asks for the compiled model with torch.compile switched off; ``shapes`` compiles it, and
changes the sequence's length once the warm-up is over.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import Any

import common
import torch
import torch.nn.functional as functional
from model_torch import Stack
from torch._dynamo.utils import counters
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile

LANE = "cpu-torch"
COMPILED = ("compiled", "breaks", "loop", "eager", "shapes")
CHECKS = {"breaks": "ends", "loop": "loop"}
FLASH = "aten::_scaled_dot_product_flash_attention_for_cpu"
MATH = "aten::_scaled_dot_product_attention_math"


def batches(data: bytes, variant: str) -> Iterator[torch.Tensor]:
    """Rows of bytes, one longer than the sequence."""
    text = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
    order = torch.Generator().manual_seed(1)
    for step in range(common.WARMUP + common.STEPS + common.PROFILED):
        late = step - common.WARMUP
        length = common.LENGTH - (8 * (late // 50 + 1) if variant == "shapes" and late >= 0 else 0)
        starts = torch.randint(len(text) - length - 1, (common.BATCH,), generator=order)
        yield torch.stack([text[start : start + length + 1] for start in starts])


def main() -> None:
    """One launch."""
    asked = common.options(("clean", "item", "sdpa", *COMPILED), __doc__ or "")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    data = common.corpus()
    if asked.variant == "eager":
        torch.compiler.set_stance("force_eager")
    read = asked.variant == "item"
    ends = "loss read" if read else "device"
    with common.recorder(LANE, asked, synchronisation=ends) as rec, sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        inner = SDPBackend.MATH if asked.variant == "sdpa" else None
        model = Stack(common.PATTERNS[asked.model][0], inner=inner, checks=CHECKS.get(asked.variant, ""))
        call = torch.compile(model, dynamic=False) if asked.variant in COMPILED else model
        optimizer = torch.optim.SGD(model.parameters(), lr=common.RATE)
        common.state(rec, asked, data, parameters=sum(item.numel() for item in model.parameters()))
        rec.path(framework="torch", runtime="cpu", attention="sdpa_flash")
        rec.state("compile.posture", "whole_graph" if asked.variant in COMPILED else "eager")

        def train(rows: torch.Tensor) -> tuple[torch.Tensor | float, torch.Tensor]:
            loss = functional.cross_entropy(call(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), common.CLIP)
            optimizer.step()
            return loss.item() if read else loss.detach(), norm

        rows = batches(data, asked.variant)
        for _ in range(common.WARMUP + common.STEPS):
            with rec.step(tokens=common.BATCH * common.LENGTH):
                with rec.span("data"):
                    batch = next(rows)
                loss, norm = train(batch)
            rec.loss(loss)
            rec.gradient_norm(norm)
        with rec.span("profile"), profile(activities=[ProfilerActivity.CPU], record_shapes=True) as seen:
            for batch in rows:
                with rec.step(tokens=common.BATCH * common.LENGTH):
                    train(batch)
        witness(rec, asked, seen)


def witness(rec: Any, asked: argparse.Namespace, profiled: Any) -> None:
    """State what the dispatcher ran in the profiled steps, by the operators' own names."""
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for event in profiled.profiler.kineto_results.events():
        counts[event.name()] += 1
        if event.name() in ("aten::mm", "aten::bmm", "aten::addmm"):
            kinds.update(kind for kind in event.dtypes() if kind not in ("", "Scalar"))
    operators = {name: count for name, count in sorted(counts.items()) if name.startswith("aten::")}
    content: dict[str, Any] = {"operators": operators, "matrix_types": dict(kinds), "steps": common.PROFILED}
    frames = counters["frames"]
    content["dynamo"] = {
        "graphs": counters["stats"]["unique_graphs"],
        "breaks": sum(counters["graph_break"].values()),
        "frames_skipped": frames["total"] - frames["ok"],
    }
    posture = compiled(content)
    uri = common.write(asked.out, asked, LANE, {**content, "launch": rec.launch, "producer": "torch.profiler"})
    ran = [name for name, operator in (("sdpa_flash", FLASH), ("sdpa_math", MATH)) if counts[operator]]
    dtype = "fp32" if set(kinds) == {"float"} else None
    one = ran[0] if len(ran) == 1 else None
    rec.observe(attention=one, compute_dtype=dtype, posture=posture, kind="torch-profile", level="backend", uri=uri)
    attending = sum(letter in "*A" for letter in common.PATTERNS[asked.model][0])
    for operator, wanted in ((FLASH, common.PROFILED * attending), (MATH, 0)):
        rec.counter(operator, counts[operator], expected=wanted, steps=common.PROFILED, layers=attending)


def compiled(content: dict[str, Any]) -> str:
    """The posture by torch.compile's own counters: graphs that it made, and places where it left one."""
    if not content["dynamo"]["graphs"]:
        return "eager"
    left = content["dynamo"]["breaks"] or content["dynamo"]["frames_skipped"]
    return "regional" if left else "whole_graph"


if __name__ == "__main__":
    main()
