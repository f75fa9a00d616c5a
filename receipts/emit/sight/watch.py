"""A watch: what one recorder sees of the loop around it, with nothing typed.

Its parts see steps, tokens, losses and the model; this binds them together. It runs among the probes of its recorder,
so that it is asked after the warm-up and at the end, and what its caller states wins over it.
"""

from __future__ import annotations

import os
import sys
import weakref
from _thread import get_ident

from receipts.emit import profiling
from receipts.emit.clock import perf_counter_ns
from receipts.emit.losses import Kept, Losses, StepLoss, StepNorm, gradient_norm
from receipts.emit.probes import imported, torch_xla
from receipts.emit.sight import layout, model, root, witness
from receipts.emit.sight.hooks import Hooks
from receipts.emit.sight.inputs import Models, failing_batch
from receipts.emit.sight.look import Checkpoints, Glances, Look
from receipts.emit.sight.steps import Anchor, Moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.probing import ProbeOutput
    from receipts.emit.recorder import Recorder
    from receipts.emit.steps import TimedSpan

# A gradient norm that nobody computes is computed once in so many steps.
NORM_EVERY = 50
# Ranges that the recorder's own trace opens around steps, and a profiler's schedule.
OWN_SCOPES = ("ProfilerStep#", "receipts.step#")


class Nothing:
    """What no object is of."""


class Watch:
    """Sees the loop of a process. ``recorder`` gives the recorder when the first step has ended, or None to stand back.

    ``tokens`` are those of a step over all chips, where the job states them. ``after_warmup`` are called with the
    number of steps that have ended when the warm-up is over.
    """

    NAME = "sight"

    def __init__(
        self,
        torch: Any,
        recorder: Callable[[], Recorder | None],
        models: tuple[Any, ...] = (),
        optimizers: Any = (),
        tokens: int | None = None,
    ) -> None:
        self.after_warmup: list[Callable[[int], None]] = []
        self.rec: Recorder | None = None
        self._optimizers = [weakref.ref(item) for item in optimizers]
        self.losses, self.norms = Losses(), Kept()
        self.glances = Glances(torch, self)
        self.anchor = Anchor(self._ended)
        self.models = Models(torch, self.anchor, models)
        self.driver = self.lazy = ""
        self.ranks: int | None = None
        self.look: Look | None = None
        self.pipeline: layout.Pipeline | None = None
        self.skipped = 0
        self.checkpoints = Checkpoints()
        self.steps: list[tuple[int, int, int, int]] = []
        self._torch, self._recorder, self._tokens = torch, recorder, tokens
        self._process = os.getpid()
        self._met = self._closed = self._own = self._due = self._looked = False
        self._thread, self._scopes, self.in_backward = get_ident(), 0, False
        self._latest: tuple[int, Moment] = (0, Moment())
        self._before = Moment()
        self._since = self._until = self._first = 0
        self._scaling: list[Any] | None = None
        self._scaled = self._skipping = self._stepping = False
        self._span: TimedSpan | None = None
        self._asides = self._aside = 0
        self._given = [0, 0]
        self._stated: ProbeOutput | None = None  # until a trace was read
        profiling.attention.clear()
        profiling.matmuls.clear()
        profiling.attention_passes, profiling.attention_calls = (0, 0), 0.0
        self.hooks = Hooks(torch, self)
        self.hooks.install()

    def fault(self, where: str, error: Exception) -> None:
        """A note in the receipt, once there is one."""
        if self.rec is not None:
            self.rec.stated_by(self.NAME).fault(f"{where}: {type(error).__name__}: {error}"[:500])

    def close(self) -> None:
        """Look no more; what was put into torch is taken out."""
        self._closed = True
        self.hooks.remove()
        if self.look is not None:
            self.look.remove()
        self.glances.remove()
        self.models.remove()

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has made its step; within GradScaler's, `scaler_update` ends it."""
        if self._closed or os.getpid() != self._process:
            return
        now = perf_counter_ns()
        if not self._met:
            self._meet([optimizer])
        self._stepping = True
        if self._scaling is None:
            self._mark(optimizer, now)

    def meet_failed(self, error: BaseException) -> Recorder | None:
        """The recorder of a job that has an optimizer and failed before its first step; None for any other process."""
        if self._met or self._closed:
            return None
        self._meet([])
        if not self.anchor.counts or not self._begin():
            return None
        chained = [module for item in self.models.roots for module in root.chain(item)]
        batch = failing_batch(error.__traceback__, chained, self._torch.Tensor)
        if batch is not None and self.rec is not None:
            inferred = self.rec.stated_by(model.INFERRED)
            inferred.put("batch.micro_batch", batch[0])
            inferred.put("batch.sequence_length", batch[1])
        return self.rec

    def _mark(self, optimizer: Any, now: int) -> None:
        moment = Moment(self.losses.count, self.norms.count, self.models.totals())
        key, before = self._latest
        self._latest = (id(optimizer), moment)
        if key != id(optimizer) or not moment.same(before):
            # Several calls of one optimizer with nothing computed between them are one step, group by group.
            self.anchor.stepped(optimizer, now, moment)

    def _meet(self, optimizers: list[Any]) -> None:
        """Find the models and the optimizers of the job, and look at what the models are called with from here on."""
        self._met = True
        self.hooks.install()  # what has been imported since torch was: DeepSpeed, checkpoints, safetensors
        torch = self._torch
        parts = [imported.part(*name) or Nothing for name in layout.PARTS]
        modules, others, pipes, schedules = root.living(torch.nn.Module, torch.optim.Optimizer, *parts)
        if pipes:
            self.pipeline = layout.Pipeline(pipes, schedules)
            self.models.set([self.pipeline.model])
        given = [*optimizers, *(item for ref in self._optimizers if (item := ref()) is not None)]
        if self.models.roots:
            # Those of another model, which lives on from before, end none of its steps.
            own = {id(item) for model in self.models.roots for item in model.parameters()}
            others = [item for item in others if root.parameters_of(item) & own]
        known = root.apart(given, others)
        if not self.models.roots:
            tops = [top for item in known for top in root.roots(modules, root.parameters_of(item))]
            self.models.set(root.once(tops))
        self.anchor.known(known)
        self.driver = root.driver(sys._getframe(1))
        self.models.hook(self._aside_call, self._resumed, self.fault)

    def _begin(self) -> bool:
        """Take the recorder; whether there is one."""
        rec = self._recorder()
        if rec is None:
            self.close()
            return False
        self.rec = rec
        self._own = not rec.in_step
        record = rec._run.record
        if self._own:
            rec._run.warm_up()
        if self._own and self.anchor.late >= (record.warmup or 0):
            # What follows the warm-up is done in the job's own time, and not for steps that are over.
            record.warmup = self.anchor.late + 1
            rec._run.tell(["warmup", record.warmup])
        return True

    def _ended(self, now: int, moment: Moment) -> None:
        """A step of the loop has ended."""
        if self.rec is None and not self._begin():
            return
        rec, before = self.rec, self._before
        assert rec is not None
        self._before = moment
        self._asides, self._aside = self._asides + (self._aside > 0), 0
        if self._span is not None:
            self._leave_aside()
        losses = self.losses.take(moment.backwards)
        norms = self.norms.take(moment.norms)
        totals = self.models.step_totals(before.totals, moment.totals)
        self.steps.append((moment.backwards - before.backwards, *totals))
        live = moment is self._latest[1]
        if self.glances.open is not None:
            self.glances.end(totals[1], whole=live)
        if live and not self._looked and self.models.roots:
            self._look()
        if self.pipeline is not None:
            self.pipeline.join()
        if self._own:
            tokens = self._tokens or totals[1] * (self._ranks() if self.ranks is None else self.ranks)
            begun = self._since if self._since <= now else self._until  # a step of before the anchor was known
            if self._due and (rec.steps == 1 or live):
                self.settle()
            # Of the first step what lies before the recorder's start is not the run's.
            first = min(now, max(self._first, rec._run.record.head["begun_ns"]))
            rec.step_past(begun or first, now, tokens or None)
            self._until, self._due = now, True
        # Whether the job that marks its steps gives loss and norm too shows when the first one has ended.
        if self._own or len(self.steps) > 1:
            several, series = len(self.models.readers) > 1, (rec._losses, rec._norms)
            if losses and series[0].given == self._given[0]:
                rec.loss(losses[-1] if self.models.one_batch else StepLoss.of(losses, self.losses.divided))
                self._given[0] = series[0].given
            if series[1].given == self._given[1]:
                if norms and not self._skipping:
                    rec.gradient_norm(StepNorm(norms[-1:] if several else norms, scaled=self._scaled))
                elif rec.steps % NORM_EVERY == 1 and not self._skipping:
                    every = self.anchor.optimizers()
                    if (norm := gradient_norm(self._torch, every[:1] if several else every)) is not None:
                        rec.gradient_norm(norm)
                self._given[1] = series[1].given
        if self._own:
            if not self.hooks.ranges:
                self.settle()
            # What the recorder did since is not the next step's.
            self._since = perf_counter_ns()
            rec.step_begin()

    def tokens_unlike(self, ranks: int | None) -> int | None:
        """Tokens of the usual step where the job marks its steps, and states another number of them."""
        if self._own or self.rec is None or not ranks or len(self.steps) < 2:
            return None
        stated = {tokens for _, tokens in self.rec._run.record.tokens}
        seen = sorted(step[2] for step in self.steps[1:])[len(self.steps[1:]) // 2] * ranks
        return seen if seen and stated and seen not in stated else None

    def _look(self) -> None:
        """Look at the second step module by module."""
        if not self.lazy and "_XLAC" in sys.modules:
            self.lazy = torch_xla.posture()
        if self.look is None and self.models.readers:
            self.look = Look(self._torch, self.models.trained, self.models.reader)
        elif self.look is not None:
            self.look.remove()
            self._looked = True

    def attention(self) -> set[tuple[int, int | None, int | None]]:
        """Heads, those of keys, and their width, as attention was called: of the looked-at step, else of the trace."""
        return (self.look.attention if self.look is not None else None) or profiling.attention

    def layers(self) -> int:
        """How often one call of the model attends; 0 where that does not show, or parts are computed again."""
        if self.look is None or self.look.layers or self.look.again or not self.steps:
            return self.look.layers if self.look is not None else 0
        calls = profiling.attention_calls / max(1, self.steps[-1][1])
        return int(calls) if calls.is_integer() else 0

    def _ranks(self) -> int:
        """By how much tokens of this rank are multiplied; 0 where ranks are joined in a way that is not known."""
        if self.ranks is None:
            world = layout.world_of(self.rec._run.record.place.world if self.rec is not None else 1)
            plan = self.layout(world) if self.models.roots else None
            later = self.pipeline is not None and not self.pipeline.first
            self.ranks = 0 if later else (plan.data if plan is not None else None) or (0 if world > 1 else 1)
        return self.ranks

    def layout(self, world: int) -> layout.Layout:
        """How the ranks divide the model."""
        held = list(root.innermost(self.models.trained).parameters())
        return layout.layout(root.chain(self.models.trained), held, world, self.pipeline)

    # What else the hooks tell.

    def backward(self, begins: bool, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """A backward pass begins or ends. What is called in it computes again."""
        self.in_backward = begins
        for reader in self.models.readers:
            reader.backward = begins
        if not self._scopes:
            self.settle()
        self._first = self._first or perf_counter_ns()
        if begins and (given or "tensors" in named):
            base = given[0] if given else named["tensors"]
            several = isinstance(base, list | tuple)
            if self.glances.open is not None:
                self.glances.graph(base if several else [base])
            self.losses.backward(base[0] if several and len(base) == 1 else base)

    def scope(self, begins: bool, scope: Any) -> None:
        """A range of the profiler's begins or ends in the job, as `Optimizer.step` is one around the hooks of it."""
        if get_ident() != self._thread or str(getattr(scope, "name", "")).startswith(OWN_SCOPES):
            return
        self._scopes = max(0, self._scopes + (1 if begins else -1))
        if not self._scopes and not self.in_backward:
            self.settle()

    def settle(self) -> None:
        """Do what follows a step that has ended, outside of every range of the profiler's.

        A trace that ends within an open range leaves that range to close into what is freed: about one job in five
        then died of SIGSEGV at its end (2.13, with nothing but torch).
        """
        if self._due and self.rec is not None:
            self._due = False
            begun = perf_counter_ns()
            self.rec.step_told()
            self.hooks.ranges = self.rec._run.traces.possible
            if self._stated is not None and profiling.matmuls:
                # What the trace shows of the model is stated while the job still holds it.
                model.state(self, self._stated)
                self._stated = None
            self._since += perf_counter_ns() - begun  # it is not the next step's

    def prepared(self, *_: Any) -> None:
        """A profiler is prepared, and warms up."""
        profiling.note_prepared(True)

    def enabled(self, *_: Any) -> None:
        """It runs."""
        profiling.note_prepared(False)

    def clipped(self, result: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Gradients were clipped, by their norm."""
        norm = named.get("total_norm", given[2] if len(given) > 2 else None)
        if norm is not None:
            self.norms.keep(norm.detach())

    def scaler_scale(self, result: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """GradScaler multiplies a loss."""
        if len(given) > 1 and given[0].is_enabled():
            self.losses.scaled(result, given[1])

    def scaler_step(self, begins: bool, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """GradScaler lets an optimizer step, or skips its step."""
        if given[0].is_enabled():
            if begins:
                self._scaling = self._scaling or []
            elif len(given) > 1:
                assert self._scaling is not None
                self._scaling.append(given[1])

    def scaler_update(self, result: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """GradScaler has finished a step; where no optimizer made its own, it has skipped it."""
        scaling, self._scaling = self._scaling, None
        self._skipping = bool(scaling) and not self._stepping
        self.skipped += self._skipping
        self._stepping, self._scaled = False, True
        for optimizer in scaling or ():
            if not self._met:
                self._meet([optimizer])
            self._mark(optimizer, perf_counter_ns())

    def engine_step(self, begins: bool, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """DeepSpeed's engine steps: at the end of an accumulation it is a step of the loop, whatever steps within."""
        engine = given[0]
        if begins:
            self._scaling = [engine.optimizer] if engine.is_gradient_accumulation_boundary() else []
        else:
            self.scaler_update(None, given, named)

    def called(self, function: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """A compiled function is called."""
        if self._met:
            self.models.called(function, given, named)

    def checkpointed(self, function: Any, named: dict[str, Any]) -> None:
        """The compiler traces what is to be computed again."""
        self.checkpoints.take(self._torch.nn.Module, function, named)

    def saving(self) -> None:
        """A checkpoint is being written; an evaluation before it is over."""
        self._leave_aside()
        self._aside_span("checkpoint")

    def saved(self) -> None:
        """It has been written."""
        self._leave_aside()

    def _aside_call(self) -> None:
        """The model is called without training: an evaluation, unless that is done in most steps."""
        self._aside += 1
        if self.rec is not None and self._asides * 2 < max(2, len(self.steps)):
            self._aside_span("eval")

    def _resumed(self) -> None:
        if self._span is not None:
            self._leave_aside()
        self.glances.begin()

    def _aside_span(self, name: Any) -> None:
        if self.rec is not None and self._own and self._span is None:
            self._span = self.rec.span(name)
            self._span.__enter__()

    def _leave_aside(self) -> None:
        span, self._span = self._span, None
        if span is not None:
            span.__exit__(None, None, None)

    # What the recorder asks, as it does of a probe.

    def at_warm(self, stated: ProbeOutput) -> None:
        """The warm-up is over: state the model, and call those who waited for it."""
        if self.rec is None and not self._begin():
            return
        model.state(self, stated)
        self._stated = stated
        if self.lazy:
            torch_xla.report()
        for listener in self.after_warmup:
            listener(stated.steps)

    def at_finish(self) -> None:
        """The run is over: what has waited to be decided is."""
        self.anchor.give_up()
        self.settle()
        if self.lazy:
            torch_xla.report()

    def at_end(self, stated: ProbeOutput) -> None:
        """State what is known now, and take out what was put into torch."""
        self._leave_aside()
        if self.rec is not None and self._own:
            self.rec.abandon_step()
        if self.skipped:
            stated.counter("torch.GradScaler.skipped_steps", self.skipped)
        if self.rec is not None or self._begin():
            model.state(self, stated)
        if self.rec is not None and self.lazy:
            for kind, text in torch_xla.texts(len(self.steps)):
                witness.keep(self.rec, kind, text)
        self.close()
