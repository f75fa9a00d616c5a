"""What was looked for and not found, and which switch, command or setting would give it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from receipts.axes.lane import Lane
from receipts.ingest import vocabulary
from receipts.ingest.draft import MissingLeaf, ReceiptDraft
from receipts.receipt.document import UNFAILED
from receipts.receipt.measurement import BEFORE_STEPS, SEEN_IN_STEPS
from receipts.receipt.names import ANYTHING, parts

_ALWAYS: Final = (
    "run.started",
    "run.host",
    "run.command",
    "hardware.accelerator",
    "hardware.chips",
    "batch.global_batch",
    "batch.micro_batch",
    "batch.sequence_length",
    "numerics.compute_dtype",
    "compile.posture",
    "measurement.step_durations_seconds",
    "measurement.window.start",
    "memory.chips",
)
# What a rule holds a witnessed leaf against and asks for. Of the other parts of the path, the lane is the intent.
_ASKED: Final = {
    "posture": "compile.posture",
    "compute_dtype": "numerics.compute_dtype",
    "sharding": "path.intended.sharding",
}
# Switches of which rules ask whether they acted.
_SWITCHES: Final = ("compile.cuda_graph_implementation", "numerics.recompute", "numerics.adapters.kind")
_APPLIED: Final = {
    "compile.cuda_graph_implementation": "path.witnessed.cuda_graphs",
    "numerics.recompute": "numerics.recompute_applied",
    "path.intended.overlap": "path.witnessed.overlap",
}
# By leaf: the general way, and that of programs of a compiler. A framework's own is a switch in its reader's folder.
_GET: Final[Mapping[str, Mapping[str, str]]] = {
    "run.started": {"": "--set run.started=2026-03-02T09:00:00Z"},
    "run.host": {"": "--set run.host=NAME"},
    "run.command": {"": "--set run.command='…', or add the launch script"},
    "hardware.accelerator": {"": "--set hardware.accelerator=h200-sxm (nvidia-smi -L names it)"},
    "hardware.chips": {"": "--set hardware.chips=N, the world size"},
    "batch.": {"": "add the part of the log with the configuration, or --set {path}=N"},
    "numerics.compute_dtype": {"": "add the part of the log with the configuration, or --set {path}=bf16"},
    "compile.posture": {"": "--set compile.posture=eager, regional, whole_graph, jit or xla_step"},
    "measurement.step_durations_seconds": {"": "log every step with its time"},
    "measurement.window.start": {"": "--set measurement.window.start=N, the first step after warm-up"},
    "memory.chips": {"": "torch.cuda.max_memory_allocated() of every rank, or memory_stats() of every device"},
    "path.intended.sharding": {"": "--set path.intended.sharding=fsdp (dp where nothing is to be split)"},
    "compile.regions": {"": "--set compile.regions='[\"…\"]', the functions that are compiled"},
    "compile.cuda_graph_implementation": {"": "--set compile.cuda_graph_implementation=none, or what makes them"},
    "numerics.recompute_applied": {"": "--set numerics.recompute_applied=…, what the modules really do"},
    "numerics.recompute": {"": "--set numerics.recompute=none|selective|full"},
    "numerics.adapters.kind": {"": "--set numerics.adapters.kind=none|lora"},
    "path.witnessed.cuda_graphs": {"": "a profile of one step: cudaGraphLaunch stands in it, or nothing does"},
    "path.witnessed.overlap": {"": "a profile of one step with the communication's kernels"},
    "path.witnessed.replicated": {"": "XLA_FLAGS=--xla_dump_to=DIR, the program after optimisation"},
    "path.witnessed.framework": {"": "the training log itself"},
    "path.witnessed.runtime": {"": "a profile or a compiled program; it names its device"},
    "path.witnessed.attention": {"": "a profile of one step (torch.profiler, nsys)"},
    "path.witnessed.gemm": {"": "a profile of one step", "xla": "XLA_FLAGS=--xla_dump_to=DIR"},
    "path.witnessed.compute_dtype": {"": "a profile of one step", "xla": "XLA_FLAGS=--xla_dump_to=DIR"},
    "path.witnessed.sharding": {"": "XLA_FLAGS=--xla_dump_to=DIR, the program after optimisation"},
    "path.witnessed.posture": {
        "": "a whole torch.profiler trace with the host's operators, and at least one step mark",
        "xla": "XLA_FLAGS=--xla_dump_to=DIR, the program after optimisation",
    },
    "path.witnessed.fallbacks": {
        "": "a whole torch.profiler trace of host and device, best with record_shapes=True",
        "xla": "the program after optimisation, or a profile of one step",
    },
    "path.witnessed.host_transfers_per_step": {"": "a profile of one step"},
    "compile.compiles_after_warmup": {
        "": "TORCH_LOGS=recompiles",
        "xla": "JAX_LOG_COMPILES=1 JAX_EXPLAIN_CACHE_MISSES=1",
    },
}


def missing(draft: ReceiptDraft, lane: Lane | None) -> tuple[MissingLeaf, ...]:
    """Leaves that the lane wants witnessed, and those that every comparison asks for, which no file states."""
    framework = str(draft.get("path.witnessed.framework") or draft.get("path.intended.framework") or "")
    wanted = list(_ALWAYS)
    failed = draft.get("run.outcome") not in (None, *UNFAILED)
    if failed:
        wanted = [path for path in wanted if not path.startswith("measurement.")]
    if draft.get("measurement.step_durations_seconds") is None and "measurement.window.start" in wanted:
        wanted.remove("measurement.window.start")
    if lane is not None:
        wanted += [f"path.witnessed.{name}" for name in lane.witness if name != "frameworks"]
        wanted += _required(draft, lane)
    if failed and draft.get("failure.phase") in BEFORE_STEPS:
        wanted = [path for path in wanted if not path.startswith(SEEN_IN_STEPS)]
    if vocabulary.framework(framework).compiler and not failed:
        wanted.append("compile.compiles_after_warmup")
    return tuple(
        MissingLeaf(path, _of_rates(draft, path) or how_to_get(path, framework))
        for path in dict.fromkeys(wanted)
        if draft.get(path) is None and not draft.torn(path)
    )


def _of_rates(draft: ReceiptDraft, path: str) -> str:
    """What turns rates of every step into times: the tokens of a step. Empty where steps or rates lack."""
    steps = draft.get("measurement.loss.steps") or ()
    rates = any(draft.get(f"measurement.stated.{name}") for name in ("tokens_per_second", "tokens_per_second_per_chip"))
    each = len(steps) > 1 and all(after - before == 1 for before, after in pairwise(steps))
    if path != "measurement.step_durations_seconds" or not (each and rates):
        return ""
    lacks = [name for name in ("batch.global_batch", "batch.sequence_length", "hardware.chips") if not draft.get(name)]
    return f"--set {'=N --set '.join(lacks)}=N: each step prints its tokens/s" if lacks else ""


def _required(draft: ReceiptDraft, lane: Lane) -> Iterator[str]:
    """What was asked for, of every leaf that the lane wants witnessed or that was seen; and switches to be seen."""

    def exists(path: str) -> bool:
        return not any(path == name or path.startswith(f"{name}.") for name in (*lane.not_applicable, *lane.unprinted))

    for name, path in _ASKED.items():
        asked = name in lane.witness or (name == "sharding" and draft.get("path.witnessed.sharding") is not None)
        if asked and exists(path) and (name != "sharding" or exists("path.sharding")):
            yield path
    if "sharding" in lane.witness and draft.get("hardware.chips") != 1 and exists("path.sharding"):
        yield "path.witnessed.replicated"
    if draft.get("path.witnessed.posture") == "regional" and lane.compile_exceptions:
        yield "compile.regions"
    yield from (path for path in _SWITCHES if exists(path))
    for path, applied in _APPLIED.items():
        intended = draft.get(path)
        alone = path == "path.intended.overlap" and draft.get("hardware.chips") == 1
        if intended is not None and parts(intended) - ANYTHING and not alone:
            yield applied


def how_to_get(path: str, framework: str = "") -> str:
    """The switch, command or setting that would give a leaf; empty where none is known."""
    ways = _GET.get(path) or next(
        (ways for name, ways in _GET.items() if name[-1] == "." and path.startswith(name)), {}
    )
    traits = vocabulary.framework(framework)
    own = vocabulary.framework(traits.like or framework).switches.get(path) or ways.get(traits.compiler)
    return (own or ways.get("", "")).replace("{path}", path)
