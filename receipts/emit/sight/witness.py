"""The traces of a run. The witness is one of a few steps after the warm-up, which the recorder takes by itself.

One step before it is traced without shapes and counted, and its trace is dropped: it tells what a step's trace costs,
and what a profiler's first start costs falls on it. Where a step has few events four are traced, which leaves three
whole windows from step to step; where it has more, one, which serves the path alone; where it has too many, none.
"""

from __future__ import annotations

import os

from receipts.emit import console, files
from receipts.emit.facts import CALLER
from receipts.emit.probes import imported
from receipts.emit.profiling import Profiling, TorchTrace, tracer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from receipts.emit.recorder import Recorder
    from receipts.emit.run import RunState
    from receipts.emit.steps import StepTimer

VARIABLE = "RECEIPTS_WITNESS"
STEPS, WHY_STEPS = 4, 8
# Events of one step: up to the first so many steps are traced, up to the second one.
MAX_EVENTS_FOR_FOUR, MAX_EVENTS = 50_000, 500_000
MAX_WAIT = 50
# Where no warm-up is stated, as `receipts.ingest.warmup` takes it.
WARM = 2
MAX_TEXT = 256 << 20  # of a compiled program


def wanted(asked: bool | int | None) -> int:
    """How many steps the witness is to trace: as the caller says, else RECEIPTS_WITNESS, else four; 0 is none.

    Raises ValueError for a variable that is no number of steps.
    """
    if asked is not None:
        return STEPS if asked is True else max(0, int(asked))
    text = os.environ.get(VARIABLE, "").strip().lower()
    if text in ("", "on", "true", "yes"):
        return STEPS
    if text in ("off", "false", "no"):
        return 0
    if text == "why":
        return WHY_STEPS
    if not text.isdigit():
        raise ValueError(f"{VARIABLE} is a number of steps, 0 for no witness; it is {text[:40]!r}")
    return int(text)


def possible() -> bool:
    """Whether torch itself is loaded, and neither XLA nor JAX, whose programs say what a trace of torch does not."""
    return imported.module("torch") is not None and not any(map(imported.module, ("torch_xla", "jax")))


class Witness(Profiling):
    """The step that is counted, and then the trace of so many more as its events allow."""

    by_itself = True

    def __init__(self, path: str, steps: StepTimer, count: int, make_way: Callable[[], None]) -> None:
        self._path, self._way, self._count = path, make_way, count
        self._sized = False
        self._way_for = 0  # steps that it still waits for a profiler of another thread, which it went for, to begin
        super().__init__(TorchTrace(path, make_way, shapes=False), steps, 1)

    def after_step(self) -> list[str] | None:
        """As of any trace; after it went for a profiler of another thread, it begins anew when that has ended.

        That it has begun has to be seen: two that begin at one time would overlap.
        """
        if self._step is None and self._way_for:
            self._way_for -= 1
            if self._trace.busy():
                self._way_for, self._asked, self._whole, self._left = 0, False, 0, 1
                self._trace = TorchTrace(self._path, self._way, shapes=False)
            elif not self._way_for:
                self._unflag()
                return []
            return None
        return super().after_step()

    def _finish(self, cut: int | None) -> list[str] | None:
        if self._sized and self._whole:
            return super()._finish(cut)
        if self._asked and not self._sized and cut is None:
            self._end()
            self._trace.drop()
            self._way_for = MAX_WAIT
            return None
        if self._step is not None:
            self._end()
        events = self._events() if cut is None and not self._sized and not self._asked else MAX_EVENTS + 1
        self._trace.drop()
        if events > MAX_EVENTS:  # or the run is over, or its own profiler begins: that is no fault
            self._unflag()
            return []
        self._sized, self._whole = True, 0
        self._left = self._count if events <= MAX_EVENTS_FOR_FOUR else 1
        self._trace = TorchTrace(self._path, self._way)
        self._try()
        return None

    def _events(self) -> int:
        try:
            return self._trace.events() if isinstance(self._trace, TorchTrace) else MAX_EVENTS + 1
        except AttributeError:
            # A torch that does not say: one step's trace is dear, and four may be too dear.
            return MAX_EVENTS_FOR_FOUR + 1


class Traces:
    """The traces of one run, one at a time, on its first rank: the witness, or those that the job asks for.

    ``witness`` is as `wanted` takes it.
    """

    def __init__(self, run: RunState, witness: bool | int | None) -> None:
        self._run, self._witness = run, witness
        self._open: Profiling | None = None

    @property
    def possible(self) -> bool:
        """Whether a trace is open, or the witness has still to begin."""
        return self._open is not None or self._witness is not False

    def profile(self, count: int) -> None:
        """Trace the next steps of a run that has begun. Raises what profilers do, and ValueError.

        The job's wish goes before the witness, which ends.
        """
        if self._open is not None and self._open.by_itself:
            self._open.give_up()
            self._open = None
        self._witness = False
        if count < 1 or self._open is not None or not self._run.running:
            raise ValueError(f"{count} steps of a run that has begun, and of one trace at a time")
        record = self._run.record
        if record.place.rank == 0:
            trace = tracer(self._path(), record.head["lane"], self._make_way)
            self._open = Profiling(trace, self._run.steps, count)

    def after_step(self, count: int) -> None:
        """Take note of a step that a trace covers; begin the witness with the last step of the warm-up."""
        self._turn("after_step")
        if self._witness is False or self._open is not None:
            return
        record = self._run.record
        if count < max(record.warmup or 0, WARM) - 1:
            return
        asked, self._witness = self._witness, False
        try:
            steps = wanted(asked)
            if steps and possible() and record.place.rank == 0:  # the other ranks wait for the first one anyway
                self._open = Witness(self._path(), self._run.steps, steps, self._make_way)
        except Exception as error:
            console.fault(self._run.fault, "the witness", error)

    def stop(self) -> None:
        """End the trace that is open: the run ends."""
        self._turn("stop")

    def _make_way(self) -> None:
        if self._run.running:
            self._turn("make_way")

    def _turn(self, turn: Literal["after_step", "make_way", "stop"]) -> None:
        """List the files of a trace that ends with this."""
        if (profiling := self._open) is None:
            return
        run = self._run
        try:
            traces = getattr(profiling, turn)()
        except Exception as error:
            traces = []
            profiling.give_up()
            console.fault(run.fault, "profile", error)
        if traces is not None:
            self._open = None
            rows = [{"kind": profiling.kind, "uri": path} for path in traces]
            # Digested at once: a run that is killed later still names them.
            files.digest_evidence(rows, lambda _: None, run.fault)
            for row in rows:
                run.facts.add_evidence(row, CALLER)

    def _path(self) -> str:
        """The name of a trace beside the receipt, without its ending; an older launch keeps its own."""
        names = files.named_after(self._run.record.head["out"], self._run.record.head["launch"], "trace")
        return next(name for name in names if not os.path.exists(name) and not os.path.exists(f"{name}.json.gz"))


def keep(rec: Recorder, kind: str, text: str) -> None:
    """Write a text that shows what ran, such as a compiled program, beside the receipt, as evidence of its kind."""
    import gzip

    if not 0 < len(text) <= MAX_TEXT:
        rec.note(f"{kind} has {len(text)} characters: its text is not kept")
        return
    path = rec.beside(f"{kind}.txt.gz")
    with gzip.open(path, "wt", compresslevel=3) as stream:
        stream.write(text)
    rec.attach(path, kind)
