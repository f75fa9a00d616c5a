"""Wrapped functions of loops that have no hooks: Megatron-LM, torchtitan, a step function of JAX, and MaxText's.

Megatron-LM: functions of `megatron.training.training` that its loop looks up at every step are wrapped in place.
`train_step` is the step, `training_log` has the loss and the gradient norm, `evaluate_and_print_results` and
`save_checkpoint_and_time` are spans. The first three were run on a CPU, as the wheel of megatron-core 0.19.2 has them.
Its loop around them waits for CUDA: the tests have a stand-in, as `megatron/training/training.py` of core 0.9 to 0.15
has it. Its arguments are read by a probe (`probes/megatron.py`).

torchtitan: step, validation, checkpoints and metric hook of its trainer, run with the Trainer of torchtitan 0.3.
``Trainer.train`` looks its parts up at every step, so that parts of the object are wrapped and nothing of the package
is changed. `MetricsProcessor.log` is called at the steps that log, with numbers that were read for it.

JAX: a step function that records each of its calls, jitted or not; and MaxText's, which returns its metrics. A call
returns when the step is dispatched, and nothing waits for it here: the loop's own waiting (reading a loss, the
runtime's limit on what is in flight) lies between two calls, and so in the step that follows. `jax_step` was run with
JAX 0.10, and MaxText's with its own `train_loop` (maxtext 0.2.5, JAX 0.12). Where that is not installed the tests use a
stand-in of what its `train_step` returns: ``state, {"scalar": {"learning/loss": …}}``.
"""

from __future__ import annotations

import inspect
import sys
from contextlib import suppress
from functools import wraps

from receipts.emit.integrations.loop import Loop, noting, part, quietly, spanned, stepped, whole
from receipts.emit.probes import megatron

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.recorder import Recorder


MEGATRON_MODULE = "megatron.training.training"


def patch_megatron(rec: Recorder, module: Any = None, *, tokens: int | None = None) -> Callable[[], None]:
    """Record Megatron-LM's loop, before ``pretrain(…)``; the call that is returned takes the patch back.

    ``module`` has the loop, else `megatron.training.training`, which has to be imported. Tokens of a step
    over all chips follow from Megatron's arguments.
    """
    loop = Loop(rec, "megatron-lm")
    quietly(loop, "start", loop.start)
    where = module if module is not None else sys.modules.get(MEGATRON_MODULE)
    if where is None:
        rec.note(f"{MEGATRON_MODULE} is not imported: import it, then call patch_megatron(rec)")
        return lambda: None
    before: dict[str, Any] = {}

    def logged(inner: Any) -> Any:
        parameters = list(inspect.signature(inner).parameters)

        @wraps(inner)
        def training_log(*given: Any, **named: Any) -> Any:
            with noting(loop, "training_log"):
                values = dict(zip(parameters, given, strict=False)) | named
                losses = values.get("loss_dict") or {}
                _scalars(rec, losses.get("lm loss", next(iter(losses.values()), None)), values.get("grad_norm"))
            return inner(*given, **named)

        return training_log

    wrappers: dict[str, Callable[[Any], Any]] = {
        "train_step": lambda inner: stepped(loop, inner, lambda: tokens or _megatron_tokens(where)),
        "training_log": logged,
        "evaluate_and_print_results": lambda inner: spanned(loop, inner, "eval"),
        "save_checkpoint_and_time": lambda inner: spanned(loop, inner, "checkpoint"),
    }
    for name, make in wrappers.items():
        inner = part(loop, where, name)
        if inner is None:
            rec.note(f"{where!r:.100} has no {name}: what it did is not recorded")
            continue
        before[name] = inner
        setattr(where, name, make(inner))

    def restore() -> None:
        for name, inner in before.items():
            setattr(where, name, inner)

    return restore


def _scalars(rec: Recorder, loss: Any, norm: Any) -> None:
    if loss is not None:
        rec.loss(loss)
    if norm is not None:
        rec.gradient_norm(norm)


def _megatron_tokens(where: Any) -> int | None:
    """The sequences of a step times their length, as Megatron's arguments have them."""
    arguments = megatron.arguments()
    if arguments is None:
        return None
    given = megatron.MegatronArguments(arguments)
    current = getattr(where, "get_current_global_batch_size", None)
    batch = whole(current()) if current is not None else None
    if batch is None and given.off("rampup_batch_size"):
        batch = given.whole("global_batch_size")
    length = given.whole("seq_length", "encoder_seq_length")
    return batch * length if batch and length else None


def record_torchtitan(rec: Recorder, trainer: Any, *, tokens: int | None = None) -> None:
    """Record a `torchtitan.trainer.Trainer`, before ``trainer.train()``. Tokens of a step over all chips follow from
    its configuration."""
    loop = Loop(rec, "torchtitan")
    quietly(loop, "start", loop.start)
    leaves = quietly(loop, "configuration", _torchtitan_leaves, trainer) or {}
    quietly(loop, "configuration", loop.stated, leaves)
    quietly(loop, "configuration", loop.resolved, part(loop, trainer, "config") or part(loop, trainer, "job_config"))
    batch, length = leaves.get("batch.global_batch"), leaves.get("batch.sequence_length")
    every = tokens or (batch * length if batch and length else None)
    with noting(loop, "train_step"):
        trainer.train_step = stepped(loop, trainer.train_step, lambda: every)
    quietly(loop, "metrics", _wrap_titan_log, loop, part(loop, trainer, "metrics_processor"))
    quietly(loop, "checkpointer", _wrap_titan_save, loop, part(loop, trainer, "checkpointer"))
    if (validator := part(loop, trainer, "validator")) is not None:
        with noting(loop, "validator"):
            validator.validate = spanned(loop, validator.validate, "eval")


def _torchtitan_leaves(trainer: Any) -> dict[str, Any]:
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


def _wrap_titan_log(loop: Loop, metrics: Any) -> None:
    if metrics is None:
        return
    inner = metrics.log

    @wraps(inner)
    def log(*given: Any, **named: Any) -> Any:
        with noting(loop, "metrics"):
            # log(step, global_avg_loss, global_max_loss, grad_norm, …): of three numbers in all versions since 0.1.
            values = dict(zip(("step", "global_avg_loss", "global_max_loss", "grad_norm"), given, strict=False)) | named
            _scalars(loop.rec, values.get("global_avg_loss"), values.get("grad_norm"))
        return inner(*given, **named)

    metrics.log = log


def _wrap_titan_save(loop: Loop, checkpointer: Any) -> None:
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


_MAXTEXT_LEAVES = {
    "batch.global_batch": "global_batch_size_to_train_on",
    "batch.sequence_length": "max_target_length",
    "batch.accumulation": "gradient_accumulation_steps",
    "model.depth": "num_decoder_layers",
    "model.hidden": "emb_dim",
    "model.heads": "num_query_heads",
    "model.kv_heads": "num_kv_heads",
    "model.head_dim": "head_dim",
    "model.ffn": "mlp_dim",
    "model.vocabulary": "vocab_size",
}


class RecordedStep:
    """A step function with its own attributes (`lower`, `trace`) that records each call."""

    def __init__(
        self, loop: Loop, inner: Callable[..., Any], tokens: int | None, read: Callable[[Any], Any] | None
    ) -> None:
        self._loop = loop
        self._inner = inner
        self._tokens = tokens
        self._read = read
        self._begun = False
        # What a method is bound to, and how many steps one call makes.
        self._bound: tuple[Any, ...] = ()
        self._steps = 1
        # What looks at the arguments of a call before it, and at its result before its step has ended.
        self._look: Callable[[tuple[Any, ...], dict[str, Any]], None] | None = None
        self._landed: Callable[[Any], None] | None = None

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the step function; what it raises is the job's, what the recorder raises a note."""
        loop, given = self._loop, (*self._bound, *given)
        if not self._begun:
            self._begun = True
            quietly(loop, "start", loop.start)
        quietly(loop, "step", loop.begin)
        if self._look is not None:
            quietly(loop, "program", self._look, given, named)
        try:
            result = self._inner(*given, **named)
        except BaseException as error:
            quietly(loop, "step", loop.drop, f"{type(error).__name__} left it")
            raise
        if self._landed is not None:
            quietly(loop, "program", self._landed, result)
        quietly(loop, "step", loop.end, self._tokens, self._steps)
        if self._read is not None:
            quietly(loop, "loss", self._read, result)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return f"RecordedStep({self._inner!r})"


def jax_step(
    rec: Recorder,
    step: Callable[..., Any],
    *,
    tokens: int | None = None,
    loss: Callable[[Any], Any] | None = None,
    framework: str = "jax",
) -> Any:
    """The step function, recorded: ``step = jax_step(rec, jax.jit(step), tokens=…, loss=lambda result: result[1])``.

    ``loss`` finds the loss in what the step returns; it is kept on its device and read when the run has ended.
    """
    read = None if loss is None else lambda result: rec.loss(loss(result))
    return RecordedStep(Loop(rec, framework), step, tokens, read)


def maxtext_step(rec: Recorder, step: Callable[..., Any], config: Any = None, *, tokens: int | None = None) -> Any:
    """MaxText's ``p_train_step``, recorded, with what its configuration states: ``maxtext_step(rec, step, config)``."""
    loop = Loop(rec, "maxtext")
    leaves: dict[str, int | None] = {}
    for path, name in _MAXTEXT_LEAVES.items():
        with suppress(Exception):  # raised of its own kind for a key that a version does not have
            leaves[path] = whole(getattr(config, name, None))
    quietly(loop, "configuration", loop.stated, leaves)
    keys = None
    with suppress(Exception):  # a version may keep them elsewhere
        keys = config.get_keys()
    if keys is not None:
        quietly(loop, "configuration", loop.resolved, keys)
    batch, length = leaves.get("batch.global_batch"), leaves.get("batch.sequence_length")
    every = tokens or (batch * length if batch and length else None)

    def read(result: Any) -> None:
        scalars = result[1]["scalar"]
        _scalars(rec, scalars.get("learning/loss"), scalars.get("learning/grad_norm"))

    return RecordedStep(loop, step, every, read)
