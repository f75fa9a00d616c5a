"""Callbacks of trainers that call hooks by their names: transformers, Lightning, Composer.

A watch sees the loop itself: its steps, evaluation, checkpoints and model. What a callback adds is when training
begins, and what the trainer alone knows: seeds, schedules, and the settings that it resolved.

transformers was run with 5.24, Lightning with 2.6. Composer's own class is the base where it can be imported; the tests
have a stand-in that calls as `composer/trainer/trainer.py` of 0.32 does.
"""

from __future__ import annotations

from importlib import import_module

from receipts.emit.integrations.loop import Hooked, Loop, guarded, quietly

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.recorder import Recorder

_HF_ATTENTION = {
    "eager": "math",
    "flash_attention_2": "flash2",
    "flash_attention_3": "flash3",
    "flex_attention": "flex",
}
_HF_RUNTIMES = {"cpu": "cpu", "cuda": "cuda"}


def hf_callback(rec: Recorder, *, tokens: int | None = None, sequence_length: int | None = None) -> Any:
    """A `TrainerCallback`: ``trainer.add_callback(hf_callback(rec))``.

    ``tokens`` of a step over all chips and ``sequence_length`` are what the model is called with, unless given.
    """
    return _callback(
        "transformers", "TrainerCallback", HfTrainerHooks(Loop(rec, "hf-trainer"), tokens, sequence_length)
    )


def lightning_callback(rec: Recorder, *, tokens: int | None = None) -> Any:
    """A `Callback`: ``Trainer(callbacks=[lightning_callback(rec)])``; ``tokens`` as in `hf_callback`."""
    hooks = LightningHooks(Loop(rec, "lightning"), tokens)
    try:
        return _callback("lightning.pytorch.callbacks", "Callback", hooks)
    except ImportError:  # the same under the name of the distribution that came before
        return _callback("pytorch_lightning.callbacks", "Callback", hooks)


def composer_callback(rec: Recorder, *, tokens: int | None = None) -> Any:
    """A `Callback`: ``Trainer(callbacks=[composer_callback(rec)])``; ``tokens`` as in `hf_callback`."""
    hooks = ComposerHooks(Loop(rec, "composer"), tokens)
    try:
        return _callback("composer.core", "Callback", hooks)
    except Exception:  # its imports fail in many ways, and a loop like it needs the method alone
        return hooks


def _callback(module: str, base: str, hooks: TrainerHooks) -> Any:
    """An object of the trainer's own class of callbacks, whose one hook is that of ``hooks``."""
    kind = getattr(import_module(module), base)
    return type("RecorderCallback", (kind,), {hooks.BEGINS: staticmethod(getattr(hooks, hooks.BEGINS))})()


class TrainerHooks(Hooked):
    """What is told when a trainer begins, by the name that it calls (``BEGINS``)."""

    BEGINS = ""

    def __init__(self, loop: Loop, tokens: int | None, sequence_length: int | None = None) -> None:
        super().__init__(loop)
        self._tokens, self._length = tokens, sequence_length
        self._begun = False

    def begin(self) -> None:
        """Start the recorder, and watch the loop; training may begin again in one run."""
        self.loop.start()
        if not self._begun:
            self._begun = True
            self.loop.rec._run.watch(self.loop.rec, (), None, self._tokens)


class HfTrainerHooks(TrainerHooks):
    """transformers' Trainer."""

    BEGINS = "on_train_begin"

    @guarded
    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """State what the arguments say, and the path that they ask for."""
        self.begin()
        quietly(self.loop, "configuration", self.loop.resolved, args)
        schedule = getattr(args, "lr_scheduler_type", None)
        attention = getattr(getattr(more.get("model"), "config", None), "_attn_implementation", None)
        self.loop.stated(
            {
                "batch.sequence_length": self._length,
                "numerics.schedule": None if schedule is None else str(getattr(schedule, "value", schedule)),
                "numerics.seed": getattr(args, "seed", None),
                "data.order_seed": getattr(args, "data_seed", None),
                "features.hf.attn_implementation": attention if isinstance(attention, str) else None,
                "path.intended.attention": _HF_ATTENTION.get(str(attention)),
                "path.intended.runtime": _HF_RUNTIMES.get(str(getattr(args, "device", "")).partition(":")[0]),
            }
        )


class LightningHooks(TrainerHooks):
    """Lightning's Trainer."""

    BEGINS = "on_train_start"

    @guarded
    def on_train_start(self, trainer: Any, module: Any) -> None:
        """State how it distributes the model."""
        self.begin()
        self.loop.stated({"features.lightning.strategy": type(getattr(trainer, "strategy", None)).__name__})


class ComposerHooks(TrainerHooks):
    """Composer's Trainer, whose events are given a state and a logger."""

    BEGINS = "fit_start"

    @guarded
    def fit_start(self, state: Any, logger: Any = None) -> None:
        """Training begins."""
        self.begin()
