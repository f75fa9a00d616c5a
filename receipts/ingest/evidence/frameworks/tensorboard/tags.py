"""Names of metrics by the framework that writes them to TensorBoard and Weights & Biases.

The same word means other things elsewhere (`throughput` is TFLOP/s a GPU in Megatron-LM, tokens a second in others), so
a dialect is known by names that only it writes, and only then do its other names mean anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_FOREIGN = re.compile(r"[^-/\w.]")
GB: Final = 1e9
GIB: Final = float(2**30)


@dataclass(frozen=True, slots=True)
class Metric:
    """What a name stands for: a field of a step, the factor to its unit, or one over it where ``inverse``."""

    field: str
    factor: float = 1.0
    inverse: bool = False

    def value(self, raw: float) -> float | None:
        """The figure in the field's unit; None where one over zero would be."""
        if not self.inverse:
            return raw * self.factor
        return self.factor / raw if raw > 0 else None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One framework's names. One of ``signs`` shows it; the first of several names of one field stands.

    ``step`` are names under which it logs the training step beside its metrics; ``source`` is where they were read.
    ``mean``: a record averages over the steps since the last one.
    """

    framework: str
    signs: tuple[str, ...]
    metrics: Mapping[str, Metric]
    source: str
    memory: Mapping[str, Metric] = field(default_factory=dict)
    validation: tuple[str, ...] = ()
    step: tuple[str, ...] = ()
    mean: bool = False


_PER_CHIP: Final = "tokens_per_second_per_chip"
_TFLOPS: Final = "tflops_per_second_per_chip"

DIALECTS: Final = (
    Dialect(
        "torchtitan",
        ("loss_metrics/global_avg_loss", "time_metrics/end_to_end(s)"),
        {
            "loss_metrics/global_avg_loss": Metric("loss"),
            "grad_norm": Metric("grad_norm"),
            "throughput(tps)": Metric(_PER_CHIP),
            "wps": Metric(_PER_CHIP),
            "tflops": Metric(_TFLOPS),
            "mfu(%)": Metric("mfu", 0.01),
            "time_metrics/end_to_end(s)": Metric("step_seconds"),
        },
        "torchtitan/components/metrics.py, 0.1 to 0.3; wps before 2025",
        memory={
            "memory/max_active(GiB)": Metric("peak_bytes", GIB),
            "memory/max_reserved(GiB)": Metric("peak_reserved_bytes", GIB),
        },
        validation=("validation_metrics/loss",),
        mean=True,
    ),
    Dialect(
        "nanotron",
        ("elapsed_time_per_iteration_ms", "model_tflops_per_gpu", "tokens_per_sec_per_gpu"),
        {
            "lm_loss": Metric("loss"),
            "grad_norm": Metric("grad_norm"),
            "elapsed_time_per_iteration_ms": Metric("step_seconds", 1e-3),
            "tokens_per_sec": Metric("tokens_per_second"),
            "tokens_per_sec_per_gpu": Metric(_PER_CHIP),
            "model_tflops_per_gpu": Metric(_TFLOPS),
            "global_batch_size": Metric("global_batch"),
        },
        "nanotron/trainer.py, train_step_logs",
        step=("iteration_step",),
        mean=True,
    ),
    Dialect(
        "megatron-bridge",
        ("throughput/tflops/device", "memory/peak_allocated_gigabytes"),
        {
            "lm loss": Metric("loss"),
            "grad-norm": Metric("grad_norm"),
            "iteration-time": Metric("step_seconds"),
            "throughput/tflops/device": Metric(_TFLOPS),
            "throughput/tokens_per_sec": Metric("tokens_per_second"),
            "throughput/device/tokens_per_sec": Metric(_PER_CHIP),
            "batch-size": Metric("global_batch"),
        },
        "megatron/bridge/training/utils/train_utils.py",
        memory={
            "memory/peak_allocated_gigabytes": Metric("peak_bytes", GB),
            "memory/peak_reserved_gigabytes": Metric("peak_reserved_bytes", GB),
        },
        validation=("lm loss validation",),
        mean=True,
    ),
    Dialect(
        "megatron-lm",
        ("lm loss", "lm loss vs samples", "iteration-time", "mem-max-allocated-bytes"),
        {
            "lm loss": Metric("loss"),
            "grad-norm": Metric("grad_norm"),
            "iteration-time": Metric("step_seconds"),
            "throughput": Metric(_TFLOPS),
            "batch-size": Metric("global_batch"),
        },
        "megatron/training/training.py, training_log",
        memory={
            "mem-max-allocated-bytes": Metric("peak_bytes"),
            "mem-allocated-bytes": Metric("bytes_used"),
        },
        validation=("lm loss validation",),
        mean=True,
    ),
    Dialect(
        "nemo",
        ("reduced_train_loss", "train_step_timing in s"),
        {
            "reduced_train_loss": Metric("loss"),
            "grad_norm": Metric("grad_norm"),
            "train_step_timing in s": Metric("step_seconds"),
            "tflops_per_sec_per_gpu": Metric(_TFLOPS),
            "TFLOPS_per_GPU": Metric(_TFLOPS),
            "global_batch_size": Metric("global_batch"),
        },
        "nemo/lightning, NeMo 1.x and 2.x",
        validation=("val_loss",),
        step=("trainer/global_step", "global_step"),
    ),
    Dialect(
        "maxtext",
        ("perf/step_time_seconds", "perf/per_device_tflops_per_sec", "learning/loss"),
        {
            "learning/loss": Metric("loss"),
            "learning/grad_norm": Metric("grad_norm"),
            "perf/step_time_seconds": Metric("step_seconds"),
            "perf/per_device_tflops_per_sec": Metric(_TFLOPS),
            "perf/per_device_tokens_per_sec": Metric(_PER_CHIP),
        },
        "MaxText metric_logger.py",
        validation=("eval/avg_loss",),
    ),
    Dialect(
        "t5x",
        ("timing/target_tokens_per_second", "loss_per_nonpadding_target_token", "timing/steps_per_second"),
        {
            "loss_per_nonpadding_target_token": Metric("loss"),
            "timing/target_tokens_per_second": Metric("tokens_per_second"),
            "timing/steps_per_second": Metric("step_seconds", inverse=True),
        },
        "t5x/models.py; a core there is a JAX device",
        mean=True,
    ),
    Dialect(
        "hf-trainer",
        ("train/learning_rate", "train/epoch", "train/global_step"),
        {"train/loss": Metric("loss"), "train/grad_norm": Metric("grad_norm")},
        "transformers/integrations: TensorBoardCallback, WandbCallback",
        validation=("eval/loss",),
        step=("train/global_step",),
        mean=True,
    ),
    Dialect(
        "olmo",
        ("train/CrossEntropyLoss", "optim/total_grad_norm", "throughput/device/tokens_per_second"),
        {
            "train/CrossEntropyLoss": Metric("loss"),
            "optim/total_grad_norm": Metric("grad_norm"),
            "throughput/device/tokens_per_second": Metric(_PER_CHIP),
        },
        "olmo/train.py; its rates are means over a window of steps",
        mean=True,
    ),
    Dialect(
        "composer",
        ("loss/train/total", "throughput/device/batches_per_sec"),
        {
            "loss/train/total": Metric("loss"),
            "l2_norm/grad/global": Metric("grad_norm"),
            "throughput/tokens_per_sec": Metric("tokens_per_second"),
            "throughput/device/tokens_per_sec": Metric(_PER_CHIP),
            "throughput/batches_per_sec": Metric("step_seconds", inverse=True),
            "throughput/device/mfu": Metric("mfu"),
        },
        "composer/callbacks/speed_monitor.py; means over a window of batches",
        step=("trainer/global_step",),
        mean=True,
    ),
)


def cleaned(name: str) -> str:
    """The name as tensorboardX and older writers spell it: what is no word, dot, dash or stroke becomes ``_``."""
    return _FOREIGN.sub("_", name)


def dialect(names: set[str]) -> Dialect | None:
    """The framework whose own names are among these, however they are spelt, or None. The first that fits counts:
    nanotron has a name that Megatron-LM's is spelt as, and Megatron-Bridge writes Megatron-LM's names and more."""
    spelt = {cleaned(name) for name in names}
    return next((item for item in DIALECTS if any(cleaned(sign) in spelt for sign in item.signs)), None)
