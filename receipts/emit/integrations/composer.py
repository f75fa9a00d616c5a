"""Composer and loops like it: a callback of events (`fit_start`, `batch_start`, `batch_end`, `eval_start`, …).

Composer's own class is its base where it can be imported; otherwise the same methods stand alone, for loops that call
them. Run with the Trainer of composer 0.32.1 (`composer/core/callback.py`, `trainer/trainer.py`), whose imports of
torchvision and of a cloud's client were stood in for; the tests that need no such environment call as it does.
"""

from __future__ import annotations

from importlib import import_module

from receipts.emit.integrations.loop import Hooked, Loop, guarded, spanned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.recorder import Recorder


def composer_callback(rec: Recorder, *, tokens: int | None = None) -> Any:
    """A `Callback`: ``Trainer(callbacks=[composer_callback(rec)])``. Tokens of a step over all chips follow from the
    timestamp's, where the loader counts them."""
    hooks = ComposerHooks(Loop(rec, "composer"), tokens)
    base: Any = object
    try:
        base = import_module("composer.core").Callback
    except Exception:  # its imports fail in many ways, and a loop like it needs the methods alone
        base = object
    members = {name: staticmethod(getattr(hooks, name)) for name in EVENTS}
    return type("RecorderCallback", (base,), members)()


EVENTS = ("fit_start", "batch_start", "batch_end", "eval_start", "eval_end", "fit_end")


class ComposerHooks(Hooked):
    """The events of one Trainer, by the names that it calls; each is given a state and a logger."""

    def __init__(self, loop: Loop, tokens: int | None) -> None:
        super().__init__(loop)
        self._tokens = tokens
        self._seen = 0
        self._savers: list[tuple[Any, Any]] = []

    @guarded
    def fit_start(self, state: Any, logger: Any = None) -> None:
        """Training begins."""
        self.loop.start()
        self._seen = _tokens(state)
        for saver in tuple(getattr(state, "callbacks", None) or ()):
            # No event says when a checkpoint is written: the saver is asked at every batch, and decides by itself.
            inner = getattr(saver, "_save_checkpoint", None)
            if inner is not None and not any(known is saver for known, _ in self._savers):
                saver._save_checkpoint = spanned(self.loop, inner, "checkpoint")
                self._savers.append((saver, inner))

    @guarded
    def batch_start(self, state: Any, logger: Any = None) -> None:
        """A step of all its micro-batches begins."""
        self.loop.begin()

    @guarded
    def batch_end(self, state: Any, logger: Any = None) -> None:
        """A step has ended, and the timestamp has moved."""
        seen = _tokens(state)
        counted, self._seen = seen - self._seen, seen
        self.loop.end(self._tokens or (counted if counted > 0 else None))
        loss = getattr(state, "loss", None)
        if isinstance(loss, list | tuple):
            loss = loss[0] if len(loss) == 1 else None
        if loss is not None and not hasattr(loss, "items"):
            self.loop.rec.loss(loss)

    @guarded
    def eval_start(self, state: Any, logger: Any = None) -> None:
        """Evaluation begins."""
        self.loop.enter("eval")

    @guarded
    def eval_end(self, state: Any, logger: Any = None) -> None:
        """Evaluation is over."""
        self.loop.leave()

    @guarded
    def fit_end(self, state: Any, logger: Any = None) -> None:
        """The last step has ended."""
        self.loop.rest()
        while self._savers:
            saver, inner = self._savers.pop()
            saver._save_checkpoint = inner


def _tokens(state: Any) -> int:
    token = getattr(getattr(state, "timestamp", None), "token", 0)
    return int(getattr(token, "value", token) or 0)
