"""Train a small decoder or hybrid with torch_xla on one processor, recorded, clean or broken on purpose.

    export PJRT_DEVICE=CPU PT_XLA_DEBUG_LEVEL=2 PT_XLA_DEBUG_FILE=xla-debug.txt
    export XLA_FLAGS="--xla_dump_to=xla-dump --xla_dump_hlo_as_text"
    python examples/recorder/train_xla.py --model decoder --variant clean
    CPU_NUM_DEVICES=8 python examples/recorder/train_xla.py --model hybrid --devices 8

The variables make torch_xla say what it compiles and runs, and XLA write down its programs: both are the evidence. They
stand in the environment, since they are read when torch_xla is imported.

``lazy`` ends its steps with ``torch_xla.sync()``; all others run in ``torch_xla.compile``. Several devices are virtual
ones of one processor, over which batch and parameters are split (SPMD). ``item`` reads the loss in every step, before
the optimizer's; ``fallback`` takes a median, which torch_xla leaves to the host; ``shapes`` changes the sequence's
length once the warm-up is over; ``recompiles`` writes a number of Python's that changes every 25 steps into the
program; ``drift`` forgets the annotation of the parameters, which stand whole on every device.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import common
import torch
import torch.nn.functional as functional
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr
from model_torch import Stack

LANE = "cpu-torch-xla"
VARIANTS = ("clean", "lazy", "item", "fallback", "shapes", "recompiles", "drift")
DUMP, DEBUG = Path("xla-dump"), Path("xla-debug.txt")
ROLLED = 25


def batches(data: bytes, variant: str) -> Iterator[torch.Tensor]:
    """Rows of bytes, one longer than the sequence."""
    text = torch.frombuffer(bytearray(data), dtype=torch.uint8).long()
    order = torch.Generator().manual_seed(1)
    for step in range(common.WARMUP + common.STEPS):
        late = step - common.WARMUP
        length = common.LENGTH - (8 * (late // 50 + 1) if variant == "shapes" and late >= 0 else 0)
        starts = torch.randint(len(text) - length - 1, (common.BATCH,), generator=order)
        yield torch.stack([text[start : start + length + 1] for start in starts])


def main() -> None:
    """One launch."""
    asked = common.options(VARIANTS, __doc__ or "", devices=True)
    several = asked.devices > 1
    if several:
        xr.use_spmd()
    if xr.global_runtime_device_count() != asked.devices:
        raise SystemExit(f"torch_xla has {xr.global_runtime_device_count()} devices: set CPU_NUM_DEVICES")
    torch.manual_seed(1)
    data = common.corpus()
    with common.recorder(LANE, asked, synchronisation="device") as rec:
        mesh = xs.Mesh(range(asked.devices), (asked.devices,), ("data",)) if several else None
        if mesh is not None:
            xs.set_global_mesh(mesh)
        model = Stack(common.PATTERNS[asked.model][0]).to(torch_xla.device())
        if mesh is not None and asked.variant != "drift":
            split_parameters(model, mesh)
        count = sum(item.numel() for item in model.parameters())
        common.state(rec, asked, data, parameters=count, chips=asked.devices)
        rec.path(framework="torch-xla", runtime="cpu", attention="xla_unfused")
        if several:
            rec.path(sharding="fsdp")
        rec.state("compile.posture", "xla_lazy" if asked.variant == "lazy" else "xla_step")
        train(rec, asked, model, batches(data, asked.variant), mesh)
        witness(rec, asked, model)


def split_parameters(model: Stack, mesh: xs.Mesh) -> None:
    """Split each matrix over the first dimension that divides; vectors stay whole."""
    devices = mesh.size()
    for parameter in model.parameters():
        at = next((at for at, extent in enumerate(parameter.shape) if extent % devices == 0), None)
        if parameter.dim() > 1 and at is not None:
            names = ["data" if dimension == at else None for dimension in range(parameter.dim())]
            xs.mark_sharding(parameter, mesh, tuple(names))


def train(rec: Any, asked: argparse.Namespace, model: Stack, rows: Iterator[torch.Tensor], mesh: Any) -> None:
    """Take the steps, and write torch_xla's counters when the warm-up ends and at the end."""
    optimizer = torch.optim.SGD(model.parameters(), lr=common.RATE)
    split = None if mesh is None else xs.ShardingSpec(mesh, ("data", None))

    def take(rows: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        if asked.variant == "recompiles":
            rows = rows.roll(step // ROLLED, 0)
        scores = model(rows[:, :-1])
        loss = functional.cross_entropy(scores.flatten(0, 1), rows[:, 1:].flatten())
        if asked.variant == "fallback":
            loss = loss + 1e-6 * scores.detach().median()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if asked.variant == "item" and loss.item() > 1e9:
            raise FloatingPointError("the loss overflows")
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), common.CLIP)
        optimizer.step()
        return loss.detach(), norm

    def lazily(rows: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        found = take(rows, step)
        torch_xla.sync()
        return found

    call: Callable[..., tuple[torch.Tensor, torch.Tensor]] = lazily
    if asked.variant != "lazy":
        # A read in the middle, and an operator of the host, end a graph: the whole one is asked for where there is one.
        whole = asked.variant not in ("item", "fallback")
        call = torch_xla.compile(take, full_graph=whole, name="train_step")
    reports = []
    for step, batch in enumerate(rows):
        with rec.step(tokens=common.BATCH * (batch.shape[1] - 1)):
            batch = xm.send_cpu_data_to_device([batch], torch_xla.device(), input_sharding=split)[0]
            loss, norm = call(batch, step)
            xm.wait_device_ops()
        rec.loss(loss)
        rec.gradient_norm(norm)
        if step + 1 in (common.WARMUP, common.WARMUP + common.STEPS):
            reports.append(f"[MetricsData; step={step + 1}]\n{met.metrics_report()}\n")
    written(rec, asked, "metrics.txt", "".join(reports), kind="torch-xla-metrics")


def witness(rec: Any, asked: argparse.Namespace, model: Stack) -> None:
    """State what the programs, the debug blocks and the arrays themselves show."""
    largest = max(DUMP.glob("*after_optimizations.txt"), key=lambda path: path.stat().st_size)
    program = common.bare(largest.read_text(encoding="utf-8"))
    written(rec, asked, "hlo.txt", program, kind="hlo")
    dots = re.findall(r"= (\w+)\[[^\]]*\]\S* dot\(", program)
    fused = re.findall(r'custom_call_target="[^"]*(?:attention|mha)[^"]*"', program)
    blocks = common.bare(DEBUG.read_text(encoding="utf-8"))
    written(rec, asked, "debug.txt", blocks, kind="pt-xla-debug")
    # The cause stands behind every execution; what is pending when a step begins is none of its own.
    causes = re.findall(r"Execution Analysis: (?:Execution )?Cause\n.*?Execution Analysis:\s+(.*)", blocks)
    ended = [cause for cause in causes[-common.STEPS :] if not cause.startswith("most likely")]
    steps = {"torch_xla.compile": "xla_step", "user torch_xla.sync": "xla_lazy"}
    rec.observe(
        attention=None if fused or not dots else "xla_unfused",
        compute_dtype="fp32" if set(dots) == {"f32"} else None,
        posture=steps.get(ended[-1]) if len(set(ended)) == 1 else None,
    )
    if asked.devices > 1:
        placed(rec, asked, model, program)


def placed(rec: Any, asked: argparse.Namespace, model: Stack, program: str) -> None:
    """State how the parameters lie over the devices, by the partition that each array has now."""
    matrices = {name: item for name, item in model.named_parameters() if item.dim() > 1}
    specs = {name: torch_xla._XLAC._get_xla_sharding_spec(item) for name, item in matrices.items()}
    replicated = [name for name, spec in specs.items() if "devices=" not in spec]
    gathers = len(re.findall(r" all-gather(?:-start)?\(", program))
    seen = {"specifications": specs, "all_gathers": gathers, "launch": rec.launch, "producer": "torch_xla"}
    uri = common.write(asked.out, asked, LANE, seen)
    kept = "dp" if len(replicated) == len(specs) else "fsdp" if gathers else None
    rec.observe(sharding=kept, replicated=replicated, kind="torch-xla-sharding", level="backend", uri=uri)


def written(rec: Any, asked: argparse.Namespace, what: str, text: str, *, kind: str) -> None:
    """One file of evidence, compressed, relative to the working folder."""
    path = Path("evidence") / f"{common.named(LANE, asked)}.{what}.gz"
    (asked.out / path).parent.mkdir(parents=True, exist_ok=True)
    (asked.out / path).write_bytes(gzip.compress(text.encode(), mtime=0))
    level = "kernels" if kind == "hlo" else "backend"
    rec.observe(kind=kind, level=level, producer="torch_xla", version=torch_xla.__version__, uri=os.fspath(path))


if __name__ == "__main__":
    main()
