"""torchtitan: its trainer's step, validation, checkpoints and metric hook. Run with the Trainer of torchtitan 0.3.

``Trainer.train`` looks its parts up at every step, so that parts of the object are wrapped and nothing of the package
is changed. `MetricsProcessor.log` is called at the steps that log, with numbers that were read for it.
"""

from __future__ import annotations

from functools import wraps

from receipts.emit.integrations.loop import Loop, part, quietly, spanned, stepped, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.recorder import Recorder


def record_torchtitan(rec: Recorder, trainer: Any, *, tokens: int | None = None) -> None:
    """Record a `torchtitan.trainer.Trainer`, before ``trainer.train()``. Tokens of a step over all chips follow from
    its configuration."""
    loop = Loop(rec, "torchtitan")
    quietly(loop, "start", loop.start)
    leaves = quietly(loop, "configuration", _configured, trainer) or {}
    quietly(loop, "configuration", loop.stated, leaves)
    quietly(loop, "configuration", loop.resolved, part(loop, trainer, "config") or part(loop, trainer, "job_config"))
    batch, length = leaves.get("batch.global_batch"), leaves.get("batch.sequence_length")
    every = tokens or (batch * length if batch and length else None)
    quietly(loop, "train_step", _wrap_step, loop, trainer, every)
    quietly(loop, "metrics", _wrap_log, loop, part(loop, trainer, "metrics_processor"))
    quietly(loop, "checkpointer", _wrap_save, loop, part(loop, trainer, "checkpointer"))
    quietly(loop, "validator", _wrap_validate, loop, part(loop, trainer, "validator"))


def _configured(trainer: Any) -> dict[str, Any]:
    training = trainer.config.training
    local, whole_batch = whole(training.local_batch_size), whole(getattr(training, "global_batch_size", None))
    groups = whole(getattr(trainer, "gradient_accumulation_steps", None))
    mesh = getattr(trainer, "parallel_dims", None)
    if whole_batch is None and local and mesh is not None:
        replicas, shards = whole(getattr(mesh, "dp_replicate", None)), whole(getattr(mesh, "dp_shard", None))
        whole_batch = local * replicas * shards if replicas and shards else None
    degrees = {"tensor": "tp", "pipeline": "pp", "context": "cp", "expert": "ep", "replicate": "dp_replicate"}
    degrees["shard"] = "dp_shard"
    leaves = {f"parallelism.{name}": whole(getattr(mesh, short, None)) for name, short in degrees.items()}
    return {
        **leaves,
        "batch.micro_batch": local,
        "batch.global_batch": whole_batch,
        "batch.accumulation": groups,
        "batch.sequence_length": whole(training.seq_len),
    }


def _wrap_step(loop: Loop, trainer: Any, tokens: int | None) -> None:
    trainer.train_step = stepped(loop, trainer.train_step, lambda: tokens)


def _wrap_log(loop: Loop, metrics: Any) -> None:
    if metrics is None:
        return
    inner = metrics.log

    @wraps(inner)
    def log(*given: Any, **named: Any) -> Any:
        quietly(loop, "metrics", _logged, loop, given, named)
        return inner(*given, **named)

    metrics.log = log


def _logged(loop: Loop, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    # log(step, global_avg_loss, global_max_loss, grad_norm, extra_metrics): of three numbers in all versions since 0.1.
    values = dict(zip(("step", "global_avg_loss", "global_max_loss", "grad_norm"), given, strict=False)) | named
    if values.get("global_avg_loss") is not None:
        loop.rec.loss(values["global_avg_loss"])
    if values.get("grad_norm") is not None:
        loop.rec.gradient_norm(values["grad_norm"])


def _wrap_save(loop: Loop, checkpointer: Any) -> None:
    due = getattr(checkpointer, "_should_save", None)
    if checkpointer is None or due is None:
        # `save` is called at every step: without its own answer, its time belongs to the step that follows.
        return
    inner = checkpointer.save
    saving = spanned(loop, inner, "checkpoint")

    @wraps(inner)
    def save(*given: Any, **named: Any) -> Any:
        saves = quietly(loop, "checkpoint", lambda: due(*given, **named))
        return saving(*given, **named) if saves else inner(*given, **named)

    checkpointer.save = save


def _wrap_validate(loop: Loop, validator: Any) -> None:
    if validator is not None:
        validator.validate = spanned(loop, validator.validate, "eval")
