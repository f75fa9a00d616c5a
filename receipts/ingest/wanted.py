"""What was looked for and not found, and which switch, command or setting would give it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from receipts.evidence import FileEvidence
from receipts.ingest.draft import Draft, Missing
from receipts.ingest.options import Contract

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
    "path.intended.attention",
)
_TPU: Final = ("maxtext", "torch-xla", "t5x", "jax")
# By leaf; a framework's own way under its name.
_GET: Final[Mapping[str, Mapping[str, str]]] = {
    "run.started": {"": "--set run.started=2026-03-02T09:00:00Z"},
    "run.host": {"": "--set run.host=NAME"},
    "run.command": {"": "--set run.command='…', or add the launch script"},
    "hardware.accelerator": {"": "--set hardware.accelerator=h200-sxm (nvidia-smi -L names it)"},
    "hardware.chips": {"": "--set hardware.chips=N, the world size"},
    "batch.": {"": "add the part of the log with the configuration, or --set {path}=N"},
    "numerics.compute_dtype": {"": "add the part of the log with the configuration, or --set {path}=bf16"},
    "compile.posture": {"": "--set compile.posture=eager|regional|whole_graph|jit|xla_step"},
    "measurement.step_durations_seconds": {
        "": "log every step with its time",
        "megatron-lm": "--log-interval 1",
        "torchtitan": "--metrics.log_freq 1",
        "maxtext": "log_period=1",
        "hf-trainer": "--logging_steps 1, with include_num_input_tokens_seen",
        "deepspeed": '"steps_per_print": 1, "wall_clock_breakdown": true',
        "nanotron": "logging.iteration_step_info_interval: 1",
    },
    "measurement.window.start": {"": "--set measurement.window.start=N, the first step after warm-up"},
    "memory.chips": {
        "": "torch.cuda.max_memory_allocated() of every rank, or memory_stats() of every device",
        "megatron-lm": "--log-memory-interval 100, from every rank",
        "torchtitan": "the logs of all ranks (--log-rank, or the rank folders)",
        "maxtext": "Memstats lines of every host",
    },
    "path.intended.": {"": "--set {path}=…, what was asked for"},
    "path.witnessed.framework": {"": "the training log itself"},
    "path.witnessed.runtime": {"": "a profile or a compiled program; it names its device"},
    "path.witnessed.attention": {
        "": "a profile of one step (torch.profiler, nsys)",
        "megatron-lm": "NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 in a twin run, or a profile of one step",
        "maxtext": "XLA_FLAGS=--xla_dump_to=DIR, the program after optimisation",
        "torch-xla": "XLA_FLAGS=--xla_dump_to=DIR, the program after optimisation",
    },
    "path.witnessed.gemm": {"": "a profile of one step", "xla": "XLA_FLAGS=--xla_dump_to=DIR"},
    "path.witnessed.compute_dtype": {"": "a profile of one step", "xla": "XLA_FLAGS=--xla_dump_to=DIR"},
    "path.witnessed.sharding": {"": "XLA_FLAGS=--xla_dump_to=DIR, the program after optimisation"},
    "path.witnessed.posture": {"": "TORCH_LOGS=recompiles,graph_breaks, or a profile", "xla": "a profile of one step"},
    "path.witnessed.fallbacks": {
        "": "a profile of one step",
        "torch-xla": "torch_xla.debug.metrics.metrics_report() after warm-up and at the end",
        "xla": "the program after optimisation, or a profile of one step",
    },
    "path.witnessed.host_transfers_per_step": {
        "": "a profile of one step",
        "torch-xla": "torch_xla.debug.metrics.metrics_report() at the end",
    },
    "compile.compiles_after_warmup": {
        "": "TORCH_LOGS=recompiles",
        "xla": "JAX_LOG_COMPILES=1 JAX_EXPLAIN_CACHE_MISSES=1",
        "torch-xla": "metrics_report() after warm-up and at the end",
    },
}
_SAME: Final = {"megatron-core": "megatron-lm", "megatron-bridge": "megatron-lm", "nemo": "megatron-lm"}


def missing(draft: Draft, lane: Contract | None, _files: tuple[FileEvidence, ...]) -> tuple[Missing, ...]:
    """Leaves that the lane wants witnessed, and those that every comparison asks for, which no file states."""
    framework = str(draft.get("path.witnessed.framework") or draft.get("path.intended.framework") or "")
    wanted = list(_ALWAYS)
    failed = draft.get("run.outcome") not in (None, "ok")
    if failed:
        wanted = [path for path in wanted if not path.startswith("measurement.")]
    if draft.get("measurement.step_durations_seconds") is None and "measurement.window.start" in wanted:
        wanted.remove("measurement.window.start")
    if lane is not None:
        wanted += [f"path.witnessed.{name}" for name in lane.witness if name != "frameworks"]
    if framework in _TPU and not failed:
        wanted.append("compile.compiles_after_warmup")
    torn = {item.path for item in draft.contradictions if not item.stands}
    return tuple(
        Missing(path, how_to_get(path, framework)) for path in wanted if draft.get(path) is None and path not in torn
    )


def how_to_get(path: str, framework: str = "") -> str:
    """The switch, command or setting that would give a leaf; empty where none is known."""
    ways = _GET.get(path) or next(
        (ways for name, ways in _GET.items() if name[-1] == "." and path.startswith(name)), {}
    )
    own = ways.get(_SAME.get(framework, framework))
    if own is None and framework in _TPU:
        own = ways.get("xla")
    return (own or ways.get("", "")).replace("{path}", path)
