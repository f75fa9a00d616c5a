"""The recorder: what a training script calls. Nothing here raises into the job, waits for a device, or imports one."""

from __future__ import annotations

import os

from receipts.emit.console import fault, guarded
from receipts.emit.contract import unknown_argument
from receipts.emit.ending import caught_failure
from receipts.emit.facts import CALLER, flattened
from receipts.emit.probing import ProbeOutput
from receipts.emit.run import RunState
from receipts.emit.steps import StepTimer, TimedSpan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Literal, Unpack

    from receipts.emit.contract import UnstatedFact
    from receipts.emit.facts import MemoryFields
    from receipts.emit.run_record import RunRecord

    SpanName = Literal["compile", "checkpoint", "eval", "data", "profile"]
    Flag = Literal["warmup", "compile", "recompile", "checkpoint", "eval", "profile", "data"]
    Phase = Literal["post_init", "post_compile", "post_step0", "steady"]
    Level = Literal["intent", "backend", "kernels"]


class Recorder:
    """Records one launch and writes its receipt at the end.

        with Recorder("cpu-torch", context="decoder.py", warmup=20) as rec:
            rec.state("model", {"depth": 8, "hidden": 64})
            for batch in batches:
                with rec.step(tokens=4096):
                    train(batch)

    ``lane`` is the contract that the launch means to keep (`receipts lanes`). ``out`` is the receipt's file or folder,
    else RECEIPTS_OUT, else ``run.json``; an older file stays, and the new one is named beside it. With several ranks
    each writes its part, and ``receipts merge`` makes the receipt.

    ``warmup`` is how many steps come before the measured window. ``synchronisation`` says what a step's end waits for:
    ``device``, ``loss read`` or ``none``. ``context`` names the base configuration, ``launch`` the launch, where ranks
    cannot agree on one by themselves (RECEIPTS_LAUNCH does so too). ``journal`` is a folder for the journal, or False
    for none; it is kept where ``keep_journal`` says so, or where the receipt could not be written. ``probes`` False
    reads nothing of the job by itself. ``witness`` is how many steps of a job of torch are traced after the warm-up
    (None: RECEIPTS_WITNESS, else four), False none; docs/recorder.md says what it costs. ``deliver`` sends the receipt
    to the server that RECEIPTS_STORE names, when the run has ended; RECEIPTS_DELIVER=1 does so too. What cannot be
    delivered stays a file.
    """

    def __init__(
        self,
        lane: str,
        *,
        out: str | os.PathLike[str] | None = None,
        kind: str = "training",
        label: str | None = None,
        context: str | None = None,
        tags: Sequence[str] = (),
        site: str | None = None,
        warmup: int | None = None,
        synchronisation: str | None = None,
        launch: str | None = None,
        witness_for: str | None = None,
        resumed_from: str | None = None,
        start_step: int | None = None,
        journal: bool | str | os.PathLike[str] = True,
        keep_journal: bool = False,
        probes: bool | Sequence[Any] = True,
        quiet: bool = False,
        deliver: bool | None = None,
        witness: bool | int | None = None,
        **unknown: Any,
    ) -> None:
        label = label or os.environ.get("RECEIPTS_LABEL") or None  # of `receipts record --name`
        self._tokens: int | None = None
        self._spans: dict[str, TimedSpan] = {}
        about = {"lane": lane, "kind": kind, "label": label, "context": context, "tags": tags, "site": site}
        links = {"witness_for": witness_for, "resumed_from": resumed_from, "start_step": start_step}
        self._run = RunState(
            {**about, **links, "warmup": warmup, "synchronisation": synchronisation, "launch": launch},
            out=_path(out),
            journal=journal if isinstance(journal, bool) else _path(journal) or True,
            keep_journal=keep_journal is True,
            probes=probes,
            quiet=quiet is True,
            deliver=deliver if isinstance(deliver, bool) else None,
            witness=witness if isinstance(witness, int) else None,
        )
        self._steps = self._run.steps
        for name in unknown:
            self._run.fault(unknown_argument(name, list(Recorder.__init__.__kwdefaults__ or ())))
        for name, value in (("out", out), ("journal", journal)):
            if value is not None and not isinstance(value, bool) and _path(value) is None:
                self._run.fault(f"{name}: a path is a text, and this is {type(value).__name__}")

        self._own = ProbeOutput(self._run.facts, CALLER, steps=self._steps)
        self._losses = self._run.record.losses
        self._norms = self._run.record.norms

    def start(self, *probes: Any) -> Recorder:
        """Begin; the with block does. Where no block fits, call `finish` at the end, or leave it to the process's.

        ``probes`` are asked beside the recorder's own.
        """
        try:
            self._run.start(*probes)
        except Exception as error:
            self._fault("start", error)
        return self

    def finish(self) -> None:
        """End well and write; the with block does."""
        self._end(None)

    def __enter__(self) -> Recorder:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self._end(error)
        return False

    def _end(self, error: BaseException | None) -> None:
        try:
            self._run.finish(error)
        except Exception as fault:
            self._run.lost(fault)

    def step(self, tokens: int | None = None, flag: Flag | None = None) -> StepTimer:
        """One step: ``with rec.step(tokens=…):``, tokens over all chips. A step that raises does not count."""
        try:
            if tokens != self._tokens and tokens is not None:
                self._new_tokens(tokens)
            if flag is not None:
                self.flag(flag)
        except Exception as error:
            self._fault("step", error)
        return self._steps

    def step_begin(self, since: int = 0) -> None:
        """Begin a step where no with block fits, as in a callback; ``since`` is when it began, by `perf_counter_ns`."""
        self._steps.__enter__()
        if type(since) is int and 0 < since < self._steps.begun:
            self._steps.begun = since

    def step_end(self, tokens: int | None = None) -> None:
        """End the step that `step_begin` began."""
        self.step(tokens)
        if self._steps.inside:
            self._steps.__exit__(None, None, None)

    def step_past(self, begun: int, ended: int, tokens: int | None = None) -> None:
        """Take a step that has ended, by `perf_counter_ns`: whoever watches a loop learns of it afterward.

        `step_told` has to follow, before the next one.
        """
        self.step(tokens)
        self._steps.past(begun, ended)

    def step_told(self) -> None:
        """Do what follows a step: probes, and the trace's begin or end."""
        self._steps.follow()

    @guarded
    def watch(self, model: Any, optimizer: Any = None) -> None:
        """See what the loop does, so that nothing has to be stated: steps, tokens, loss, gradient norm, the model.

        Call it before the loop. ``model`` is an `nn.Module`, in whatever wrappers, or several; ``optimizer`` follows
        from the first step. Where the job marks its steps with `step`, these count. What it states itself wins, and a
        difference is noted.
        """
        self._run.watch(self, model, optimizer)

    @guarded
    def abandon_step(self, reason: str = "") -> None:
        """Forget the step that is running: it failed and the job goes on, or it was none. It does not count.

        ``reason`` becomes a note. Where no step is running this does nothing.
        """
        if self._steps.inside:
            self._steps.abandon()
            if reason:
                self.note(f"step {self.steps} was abandoned: {reason}")

    def _new_tokens(self, tokens: int) -> None:
        try:
            count = int(tokens)
            if count < 1:
                raise ValueError(f"a step has {count} tokens")
            self._tokens = tokens
            self._run.tokens(count)
        except Exception as error:
            self._fault("tokens", error)

    @property
    def steps(self) -> int:
        """Steps that have ended."""
        return self._steps.count

    @property
    def in_step(self) -> bool:
        """Whether a step is running."""
        return self._steps.inside

    def span(self, name: SpanName) -> TimedSpan:
        """Wall time that is spent on something: ``with rec.span("checkpoint"):``, inside a step or between two."""
        try:
            known = self._spans.get(name)
            if known is None or known.open:
                known = self._spans[name] = TimedSpan(name, self._steps, self._run.at_span)
        except Exception as error:
            self._fault("span", error)
            return TimedSpan("data", StepTimer(self._run.more, lambda _: None), lambda *_: None)
        return known

    @guarded
    def flag(self, name: Flag) -> None:
        """Flag the step that is running, or else the next one."""
        self._steps.mark(name)

    @guarded
    def profile(self, steps: int = 2) -> None:
        """Trace the next steps with the profiler of torch or JAX, whichever is loaded; `submit --evidence` reads it.

        The file is written beside the receipt, and listed with its SHA-256. The steps are flagged, and count in no
        rate. Of several ranks the first one takes the trace.
        """
        self._run.traces.profile(int(steps))

    def jit(
        self,
        step: Callable[..., Any] | None = None,
        *,
        tokens: int | None = None,
        loss: Callable[[Any], Any] | int | str | None = None,
        norm: Callable[[Any], Any] | int | str | None = None,
        **options: Any,
    ) -> Any:
        """The step function of JAX, jitted with ``options`` where it is not yet, recorded: ``step = rec.jit(step)``.

        Each call is a step, and the program states batch, model, types and memory. ``loss`` and ``norm`` (of the
        gradients) say where they are in what the step returns: a position, a key, or a function of the result.
        """
        from receipts.emit.sight.jax_step import jit

        if step is None:
            return lambda step: jit(self, step, tokens, loss, norm, options)
        return jit(self, step, tokens, loss, norm, options)

    @guarded
    def window(self, start: int, stop: int | None = None) -> None:
        """State the measured window as positions of steps; ``stop`` is the step after its last."""
        self._run.window(int(start), None if stop is None else int(stop))

    @guarded
    def state(self, path: str | Mapping[str, Any], value: Any = None) -> None:
        """State a leaf (``"model.depth", 52``), a section (``"model", {…}``) or several (``{"model": {…}}``)."""
        if isinstance(path, str) and not hasattr(value, "items"):
            self._run.facts.put(path, value)
            return
        for name, item in flattened(path if not isinstance(path, str) else {path: value}):
            self._run.facts.put(name, item)

    @guarded
    def inputs(self, settings: Mapping[str, Any], *, whole: bool = True) -> None:
        """State what the program was started with, where it knows better: ``rec.inputs(vars(args) | config)``.

        Nested settings become dotted keys. ``whole`` says that nothing else decides what the run does, as in a
        notebook, whose own words say nothing; False, that these are some of the settings.
        """
        from receipts.emit import configuration, own_launch

        lost = self._own.inputs("options", configuration.object_settings(settings))
        if lost:
            raise ValueError(f"{lost} settings are beyond what a receipt holds")
        if whole:
            self._run.facts.put("inputs.capture", "whole")
            self._run.facts.put("inputs.program", own_launch.notebook())

    @guarded
    def path(self, **intended: str) -> None:
        """State the path that is meant: ``rec.path(framework="torch", attention="sdpa_flash")``."""
        for name, value in intended.items():
            self._run.facts.put(f"path.intended.{name}", value)

    @guarded
    def observe(
        self,
        *,
        kind: str = "",
        level: Level | None = None,
        producer: str | None = None,
        version: str | None = None,
        uri: str | os.PathLike[str] | None = None,
        sha256: str | None = None,
        observed: Mapping[str, bool | int | float | str] | None = None,
        **witnessed: Any,
    ) -> None:
        """State what was seen of the path, and what shows it: ``rec.observe(attention="te_fused", kind="te-debug")``.

        A file named by ``uri`` that lies here is given its SHA-256 when the run ends.
        """
        for name, value in witnessed.items():
            self._run.facts.put(f"path.witnessed.{name}", value)
        if kind:
            row = {"kind": kind, "level": level, "producer": producer, "version": version, "observed": observed}
            row |= {"uri": None if uri is None else os.fspath(uri), "sha256": sha256}
            self._run.facts.add_evidence(row, CALLER)

    @guarded
    def attach(self, uri: str | os.PathLike[str], kind: str | None = None, *, level: Level | None = None) -> None:
        """Name a file that belongs to the run; with a ``kind`` it is evidence, with its SHA-256 where it lies here."""
        if kind is None:
            self._run.facts.add_note("attachments", os.fspath(uri))
        else:
            self._run.facts.add_evidence({"kind": kind, "level": level, "uri": os.fspath(uri)}, CALLER)

    @guarded
    def note(self, text: str, topic: str = CALLER) -> None:
        """Say something for people."""
        self._run.facts.add_note(topic, text)

    def stated_by(self, name: str) -> ProbeOutput:
        """Where a framework's integration states what it knows: a caller's statement wins, as it does over probes'."""
        record = self._run.record
        lane, rank = str(record.head.get("lane") or ""), record.place.rank
        return ProbeOutput(record.facts, name, lane=lane, rank=rank, world=record.place.world, steps=self._steps)

    def loss(self, value: float | Callable[[], float] | Any) -> None:
        """Take the step's loss: a number, or what lies on a device or can be called, which is read at the end only."""
        # Called every step, with the processor's caches full of other things: what mostly comes is taken in one call.
        series = self._losses
        given = series.given + 1
        if type(value) is series.lazy and given != series.due:
            series.given, series.latest = given, value
            return
        try:
            series.add(self._steps, value)
        except Exception as error:
            self._fault("loss", error)

    def gradient_norm(self, value: float | Callable[[], float] | Any) -> None:
        """Take the step's gradient norm, as `loss` does."""
        try:
            self._norms.add(self._steps, value)
        except Exception as error:
            self._fault("gradient_norm", error)

    @guarded
    def memory(self, phase: Phase, **row: Unpack[MemoryFields]) -> None:
        """State a chip's memory in bytes: ``chip`` over all hosts, or ``device`` as this process numbers it.

        With it any of ``bytes_used``, ``bytes_limit``, ``peak_bytes`` (live) and ``peak_reserved_bytes`` (the pool).
        """
        row.setdefault("step", max(0, self.steps - 1))
        self._own.memory_row(phase, **row)

    @guarded
    def counter(
        self,
        name: str,
        count: int,
        *,
        expected: int | None = None,
        steps: int | None = None,
        layers: int | None = None,
    ) -> None:
        """State how often a kernel or route ran, and how often it must: steps times layers, or 0 for a fallback."""
        row = {"name": name, "count": count, "expected": expected, "steps": steps, "layers": layers}
        self._run.facts.add_counter(row)

    @guarded
    def failure(self, error: BaseException | str, outcome: str | None = None) -> None:
        """Say that the run failed although the block will end without an exception: an error that the job caught."""
        caught_failure(self._run, error, outcome)

    def missing(self) -> tuple[UnstatedFact, ...]:
        """What the lane asks for and nobody has stated yet, each with the call that states it."""
        try:
            return self._run.missing()
        except Exception as error:
            self._fault("missing", error)
            return ()

    @property
    def launch(self) -> str:
        """The launch's identity, once the run has started."""
        return str(self._run.record.head.get("launch") or "")

    @property
    def record(self) -> RunRecord:
        """What the receipt is built from, for the parts of the recorder itself."""
        return self._run.record

    def beside(self, ending: str) -> str:
        """The path of a new file that belongs to the receipt, beside it and named after it."""
        return self._run.beside(ending)

    def ask(self, probe: Any) -> None:
        """Ask a probe beside the recorder's own, in a run that has begun or will."""
        self._run.ask(probe)

    @property
    def written(self) -> str:
        """The file that was written, once the run has ended; empty before, and where it could not be."""
        return self._run.written

    def __repr__(self) -> str:
        return f"Recorder({self._run.record.head.get('lane')!r}, {self.steps} steps)"

    def _fault(self, where: str, error: Exception) -> None:
        fault(self._run.fault, where, error)


def _path(value: Any) -> str | None:
    """The path as a text; None for what is no path, so that a wrong argument costs the file's name alone."""
    try:
        path = os.fspath(value)
    except Exception:
        return None
    return os.fsdecode(path)
