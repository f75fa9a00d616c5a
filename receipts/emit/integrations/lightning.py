"""Lightning: a callback. Run with lightning 2.6 (`loops/training_epoch_loop.py`, `callbacks/callback.py`).

Lightning's batches are micro-batches: a step has ended when ``trainer.global_step`` has moved. Its hooks tell when a
checkpoint begins and never when it has been written, so that `Trainer.save_checkpoint` of this trainer is wrapped while
it trains.
"""

from __future__ import annotations

from importlib import import_module

from receipts.emit.integrations.loop import Hooked, Loop, guarded, spanned, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.recorder import Recorder

_PRECISION = {"32": "fp32", "32-true": "fp32", "bf16": "bf16", "16": "fp16"}


def lightning_callback(rec: Recorder, *, tokens: int | None = None) -> Any:
    """A `Callback`: ``Trainer(callbacks=[lightning_callback(rec, tokens=…)])``; tokens of a step over all chips."""
    try:
        base = import_module("lightning.pytorch.callbacks").Callback
    except ImportError:
        # The same under the name of the distribution that came before.
        base = import_module("pytorch_lightning.callbacks").Callback
    hooks = LightningHooks(Loop(rec, "lightning"), tokens)
    members = {name: staticmethod(getattr(hooks, name)) for name in dir(LightningHooks) if name.startswith("on_")}
    return type("RecorderCallback", (base,), members)()


class LightningHooks(Hooked):
    """The hooks of one Trainer, by the names that it calls."""

    def __init__(self, loop: Loop, tokens: int | None) -> None:
        super().__init__(loop)
        self._tokens = tokens
        self._optimized = 0
        self._saving: Callable[..., Any] | None = None

    @guarded
    def on_train_start(self, trainer: Any, module: Any) -> None:
        """State what the trainer knows of its batches."""
        self.loop.start()
        self._optimized = int(trainer.global_step)
        precision = str(getattr(trainer, "precision", ""))
        leaves = {
            "batch.accumulation": whole(getattr(trainer, "accumulate_grad_batches", None)),
            "numerics.compute_dtype": _PRECISION.get(precision.removesuffix("-mixed").removesuffix("-true")),
            "features.lightning.strategy": type(getattr(trainer, "strategy", None)).__name__,
        }
        parameters = list(module.parameters())
        if getattr(trainer, "world_size", 0) == 1:
            leaves["model.parameters_total"] = sum(int(parameter.numel()) for parameter in parameters)
        self.loop.stated(leaves)
        if self._saving is None:
            self._saving = trainer.save_checkpoint
            trainer.save_checkpoint = spanned(self.loop, trainer.save_checkpoint, "checkpoint")

    @guarded
    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        """Begin a step, with the first of its micro-batches."""
        self.loop.begin()

    @guarded
    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """End the step where the optimizer has made its own."""
        done = int(trainer.global_step)
        if done == self._optimized:
            return
        self._optimized = done
        self.loop.end(self._tokens)
        loss = outputs.get("loss") if hasattr(outputs, "get") else outputs
        if loss is not None:
            self.loop.rec.loss(loss)

    @guarded
    def on_validation_start(self, trainer: Any, module: Any) -> None:
        """Evaluation, which may begin while a micro-batch of a step is behind and others to come."""
        self.loop.enter("eval")

    @guarded
    def on_validation_end(self, trainer: Any, module: Any) -> None:
        """The evaluation is over."""
        self.loop.leave()

    @guarded
    def on_train_end(self, trainer: Any, module: Any) -> None:
        """The last step has ended."""
        self.loop.rest()
        if self._saving is not None:
            trainer.save_checkpoint, self._saving = self._saving, None
