"""What every integration does with a loop that is not its own, and the callbacks of trainers that call hooks by name.

A watch sees the loop itself: its steps, evaluation, checkpoints and model. What a callback adds is when training
begins, and what the trainer alone knows: seeds, schedules, and the settings that it resolved. Never raises.

transformers was run with 5.24, Lightning with 2.6. Composer's own class is the base where it can be imported; the tests
have a stand-in that calls as `composer/trainer/trainer.py` of 0.32 does.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from importlib import import_module

from receipts.emit.clock import perf_counter_ns
from receipts.emit.console import guarded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Literal

    from receipts.emit.recorder import Recorder
    from receipts.emit.steps import TimedSpan

__all__ = ["Loop", "guarded", "noting", "part", "quietly", "spanned", "stepped", "whole"]


class Loop:
    """One framework's loop as the recorder sees it.

    ``name`` is the framework's, as `path.witnessed.framework` has it. A step that `begin` begins has run since the end
    of the step before it, or since the end of a span that lay between the two.
    """

    def __init__(self, rec: Recorder, name: str) -> None:
        self.rec = rec
        self.name = name
        self._door = rec.stated_by(name)
        self._since = 0
        self._span: TimedSpan | None = None

    def start(self) -> None:
        """Start the recorder where no with block has, and name the framework as the one that drives the loop.

        Who attached the integration intends that framework; its hooks being called is the evidence that it ran.
        """
        self.rec.start()
        self.stated(
            {
                "path.intended.framework": self.name,
                "path.witnessed.framework": self.name,
                "path.witnessed.frameworks": [self.name],
            }
        )

    def stated(self, leaves: Mapping[str, Any]) -> None:
        """State leaves by their paths; None is skipped, and the caller's statements win."""
        for path, value in leaves.items():
            self._door.put(path, value)

    def resolved(self, configuration: Any) -> None:
        """State the settings that the framework resolved, on the first rank: those of the others name themselves."""
        from receipts.emit.configuration import object_settings

        if self.rec.stated_by(self.name).rank == 0:
            self._door.inputs("resolved", object_settings(configuration))

    def begin(self) -> None:
        """Begin a step, where none is running."""
        if not self.rec.in_step:
            self.leave()
            self.rec.step_begin(self._since)

    def end(self, tokens: int | None = None, steps: int = 1) -> None:
        """End the step that is running; of several in one call each has its share of the time."""
        rec = self.rec
        if not rec.in_step:
            return
        begun, share = rec._steps.begun, (perf_counter_ns() - rec._steps.begun) // steps
        for at in range(steps - 1):
            rec.step_past(begun + at * share, begun + (at + 1) * share, tokens or None)
            rec.step_told()
        if steps > 1:
            rec.step_begin(begun + (steps - 1) * share)
        rec.step_end(tokens or None)
        self._since = perf_counter_ns()

    def drop(self, reason: str = "") -> None:
        """Forget the step that is running: it has failed, or was none."""
        self.rec.abandon_step(reason)
        self._since = perf_counter_ns()

    def rest(self) -> None:
        """The loop is over: what comes now belongs to no step."""
        self.leave()
        self.rec.abandon_step()
        self._since = 0

    def enter(self, name: Literal["eval", "checkpoint"]) -> None:
        """Begin a span, where none is open."""
        if self._span is None:
            self._span = self.rec.span(name)
            self._span.__enter__()

    def leave(self) -> None:
        """End the span that is open; the next step begins here."""
        span, self._span = self._span, None
        if span is not None:
            span.__exit__(None, None, None)
            self._since = perf_counter_ns()

    def fault(self, where: str, error: Exception) -> None:
        """A note in the receipt instead of an exception in the job."""
        self._door.fault(f"{where}: {type(error).__name__}: {error}")

    def __repr__(self) -> str:
        return f"Loop({self.name!r}, {self.rec!r})"


@contextmanager
def noting(loop: Loop, where: str) -> Iterator[None]:
    """What fails here is noted, and no exception of the job."""
    try:
        yield
    except Exception as error:
        loop.fault(where, error)


def quietly(loop: Loop, where: str, work: Callable[..., Any], *given: Any) -> Any:
    """What ``work`` returns; None, and a note, where it raises. Every step comes by, so it is no with block."""
    try:
        return work(*given)
    except Exception as error:
        loop.fault(where, error)
        return None


def spanned(loop: Loop, inner: Callable[..., Any], name: Literal["eval", "checkpoint"]) -> Callable[..., Any]:
    """A function of the framework's, whose time is a span."""

    @wraps(inner)
    def call(*given: Any, **named: Any) -> Any:
        quietly(loop, name, loop.enter, name)
        try:
            return inner(*given, **named)
        finally:
            quietly(loop, name, loop.leave)

    return call


def stepped(loop: Loop, inner: Callable[..., Any], tokens: Callable[[], int | None]) -> Callable[..., Any]:
    """A function of the framework's that is one step; ``tokens`` is asked before it, since a batch may ramp up."""

    @wraps(inner)
    def call(*given: Any, **named: Any) -> Any:
        quietly(loop, "step", loop.begin)
        every = quietly(loop, "tokens", tokens)
        try:
            result = inner(*given, **named)
        except BaseException as error:
            quietly(loop, "step", loop.drop, f"{type(error).__name__} left it")
            raise
        quietly(loop, "step", loop.end, every)
        return result

    return call


def part(loop: Loop, of: Any, name: str) -> Any:
    """An attribute; None where there is none, or where asking for it fails."""
    return quietly(loop, name, lambda: getattr(of, name, None))


def whole(value: Any) -> int | None:
    """A whole number above zero, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


_HF_ATTENTION = {
    "eager": "math",
    "flash_attention_2": "flash2",
    "flash_attention_3": "flash3",
    "flex_attention": "flex",
}


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


class TrainerHooks:
    """What is told when a trainer begins, by the name that it calls (``BEGINS``)."""

    BEGINS = ""

    def __init__(self, loop: Loop, tokens: int | None, sequence_length: int | None = None) -> None:
        self.loop = loop
        self._fault = loop.fault
        self._tokens, self._length = tokens, sequence_length
        self._begun = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.loop!r})"

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
        device = str(getattr(args, "device", "")).partition(":")[0]
        self.loop.stated(
            {
                "batch.sequence_length": self._length,
                "numerics.schedule": None if schedule is None else str(getattr(schedule, "value", schedule)),
                "numerics.seed": getattr(args, "seed", None),
                "data.order_seed": getattr(args, "data_seed", None),
                "features.hf.attn_implementation": attention if isinstance(attention, str) else None,
                "path.intended.attention": _HF_ATTENTION.get(str(attention)),
                "path.intended.runtime": device if device in ("cpu", "cuda") else None,
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
