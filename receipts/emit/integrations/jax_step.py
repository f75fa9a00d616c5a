"""JAX: a step function that records each of its calls, jitted or not; and MaxText's, which returns its metrics.

A call returns when the step is dispatched, and nothing waits for it here: the loop's own waiting (reading a loss, the
runtime's limit on what is in flight) lies between two calls, and so in the step that follows. `jax_step` was run with
JAX 0.10, and MaxText's with its own `train_loop` (maxtext 0.2.5, JAX 0.12). Where that is not installed the tests use a
stand-in of what its `train_step` returns: ``state, {"scalar": {"learning/loss": …}}``.
"""

from __future__ import annotations

from receipts.emit.integrations.loop import Loop, quietly, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.recorder import Recorder

_MAXTEXT = {
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

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the step function; what it raises is the job's, what the recorder raises a note."""
        loop = self._loop
        if not self._begun:
            self._begun = True
            quietly(loop, "start", loop.start)
        quietly(loop, "step", loop.begin)
        try:
            result = self._inner(*given, **named)
        except BaseException as error:
            quietly(loop, "step", loop.drop, f"{type(error).__name__} left it")
            raise
        quietly(loop, "step", loop.end, self._tokens)
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
    configuration = quietly(loop, "configuration", _configured, config) or {}
    quietly(loop, "configuration", loop.stated, configuration)
    if (keys := _keys(config)) is not None:
        quietly(loop, "configuration", loop.resolved, keys)
    batch, length = configuration.get("batch.global_batch"), configuration.get("batch.sequence_length")
    every = tokens or (batch * length if batch and length else None)
    return RecordedStep(loop, step, every, lambda result: _scalars(rec, result))


def _configured(config: Any) -> dict[str, int | None]:
    # Its configuration raises of its own kind for a key that a version does not have.
    leaves: dict[str, int | None] = {}
    for path, name in _MAXTEXT.items():
        try:
            leaves[path] = whole(getattr(config, name, None))
        except Exception:
            leaves[path] = None
    return leaves


def _keys(config: Any) -> Any:
    """All of its settings; None where there are none, or a version keeps them elsewhere."""
    try:
        return config.get_keys()
    except Exception:
        return None


def _scalars(rec: Recorder, result: Any) -> None:
    scalars = result[1]["scalar"]
    if "learning/loss" in scalars:
        rec.loss(scalars["learning/loss"])
    if "learning/grad_norm" in scalars:
        rec.gradient_norm(scalars["learning/grad_norm"])
