"""A trace of a few steps, by the profiler of the framework that the job has loaded. What it shows is read later.

The steps are flagged ``profile``, so that no rate counts them, and the file is listed with its digest: it is the trace
that this launch took.
"""

from __future__ import annotations

import os
from _thread import get_ident
from contextlib import suppress
from time import monotonic, sleep

from receipts.emit.probes import imported
from receipts.emit.steps import BITS, StepTimer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

# The mark of what the recorder timed as a step: `ProfilerStep` reaches from the end of one to the end of the next.
TIMED = "receipts.step#"
LOG_LEVEL = "KINETO_LOG_LEVEL"
# Seconds that a thread of the job which begins a trace waits until the step has ended that ours covers.
PATIENCE = 10.0

# Whether a profiler of the job is prepared and not enabled, as one that warms up: a watch takes note of it. Another
# one that began meanwhile would end its session, and both would read what is gone.
prepared = False
# Heads, those of keys, and their width, as the latest trace of torch shows attention; of keys None where it is by hand.
attention: set[tuple[int, int | None, int | None]] = set()
# Nanoseconds of matrix multiplications in that trace, by the type of what is multiplied.
matmuls: dict[str, int] = {}
# Passes of attention forward and backward in it, by kernels that have both.
attention_passes = (0, 0)
attention_calls = 0.0  # forward ones, of one of its steps
GEMMS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm")


def note_prepared(now: bool) -> None:
    """A profiler of this process was prepared, or enabled."""
    global prepared
    prepared = now


class TorchTrace:
    """One file of `torch.profiler`, with the shapes of operators, which bind it to its launch.

    A process has one session of Kineto. Where two overlap, the one that ends last reads what is gone, and the job dies
    of SIGSEGV (seen with 2.13). So ours waits for the job's own, and ends before the job begins another. Both the
    profilers of `torch.profiler` and of `torch.autograd` call the two functions that are replaced for that.
    """

    kind = "torch-profiler"

    def __init__(self, path: str, make_way: Callable[[], None], *, shapes: bool = True) -> None:
        from importlib import import_module

        profiler = import_module("torch.profiler")
        self.file = f"{path}.json.gz"
        self._make_way = make_way
        self._module: Any = import_module("torch.autograd.profiler")
        self._enabled: Callable[[], bool] = import_module("torch.autograd")._profiler_enabled
        self._prepare, self._enable = self._module._prepare_profiler, self._module._enable_profiler
        self._profile: Any = None
        self._is_prepared = False  # since ours began, whoever is enabled next
        self._new: Callable[[], Any] = lambda: profiler.profile(record_shapes=shapes)
        # Named as the profiler's own schedule names steps.
        self.step: Callable[[int], Any] = lambda number: profiler.record_function(f"ProfilerStep#{number}")
        self.timed: Callable[[int], Any] = lambda number: profiler.record_function(f"{TIMED}{number}")

    def busy(self) -> bool:
        """Whether the job's own profiler runs or warms up, in this thread or in another one."""
        return prepared or self._enabled() or bool(getattr(self._module, "_is_profiler_enabled", False))

    def start(self) -> None:
        """Begin; from now on whoever begins another trace ends this one first."""
        # Kineto says on the job's error stream that it begins and ends, by a level that it reads when it first begins.
        quiet = LOG_LEVEL not in os.environ
        if quiet:
            os.environ[LOG_LEVEL] = "6"
        try:
            self._profile = self._new()
            self._profile.start()
        finally:
            if quiet:
                del os.environ[LOG_LEVEL]
        self._module._prepare_profiler, self._module._enable_profiler = self._before_prepare, self._before_enable

    def _before_prepare(self, *given: Any, **named: Any) -> Any:
        self._give_way()
        self._is_prepared = True
        return self._prepare(*given, **named)

    def _before_enable(self, config: Any, activities: Any, *given: Any, **named: Any) -> Any:
        self._give_way()
        if not self._is_prepared:
            # It was prepared before ours began, which has used that up: a profiler that warmed up meanwhile.
            self._prepare(config, activities)
        return self._enable(config, activities, *given, **named)

    def _give_way(self) -> None:
        self._make_way()
        if self._module._prepare_profiler == self._before_prepare:
            self._module._prepare_profiler = self._prepare
        if self._module._enable_profiler == self._before_enable:
            self._module._enable_profiler = self._enable

    def stop(self) -> None:
        """End it. Raises RuntimeError where it no longer runs in this thread: another call would end the process."""
        if not self._enabled():
            raise RuntimeError("the profiler was stopped by another call than the recorder's")
        self._profile.stop()

    def drop(self) -> None:
        """Free what was recorded now: the next session, and the end of the job, free what it points to.

        The profiler is part of a circle, so that else the collector frees it, at any time: within a later session of
        the job that was a SIGSEGV in one launch of eight (2.13).
        """
        profile, self._profile = self._profile, None
        if (inner := getattr(profile, "profiler", None)) is not None:
            inner.kineto_results = inner._function_events = None

    def events(self) -> int:
        """How many events a trace that was ended holds. Raises AttributeError where this torch does not say."""
        return len(self._profile.profiler.kineto_results.events())

    def write(self, cut: int | None) -> list[str]:
        """The files of a trace that was ended; step ``cut`` was not whole and has no mark, so that nobody counts it."""
        global attention_calls, attention_passes
        with suppress(Exception):  # private names of this torch
            events = self._profile.profiler.kineto_results.events()
            # By the shapes of query and key, (batch, heads, length, width), or of weights, (batch, heads, length,
            # length).
            ran: set[tuple[int, int | None, int | None]] = set()
            for event in events:
                name = event.name()
                if name.startswith("aten::_scaled_dot_product") and "backward" not in name:
                    query, key = event.shapes()[:2]
                    if len(query) == len(key) == 4:
                        ran.add((int(query[1]), int(key[1]), int(query[3])))
                elif name == "aten::_softmax" and len(shape := event.shapes()[0]) == 4 and shape[2] == shape[3]:
                    ran.add((int(shape[1]), None, None))
            attention.clear()
            attention.update({item for item in ran if item[2] is not None} or ran)
            matmuls.clear()
            attending = [event.name() for event in events if event.name().startswith("aten::_scaled_dot_product")]
            back = {name for name in attending if name.endswith("_backward")}
            marks = sum(event.name().startswith("ProfilerStep#") for event in events) - (cut is not None)
            forward = sum("backward" not in name for name in attending)
            attention_calls = forward / marks if marks > 0 else 0.0
            attention_passes = (
                sum(f"{name}_backward" in back for name in attending),
                sum(name in back for name in attending),
            )
            for event in events:
                if event.name() in GEMMS:
                    kind = event.dtypes()[0]
                    matmuls[kind] = matmuls.get(kind, 0) + event.duration_ns()
        self._profile.export_chrome_trace(self.file)
        if cut is not None:
            import gzip

            with gzip.open(self.file) as stream:
                text = stream.read()
            with gzip.open(self.file, "wb", compresslevel=6) as stream:
                for mark in ("ProfilerStep#", TIMED):
                    text = text.replace(f'"{mark}{cut}"'.encode(), b'"cut short"')
                stream.write(text)
        self.drop()
        return [self.file]


class JaxTrace:
    """A folder of `jax.profiler`, with an XSpace for each host.

    A process has one trace, and a second start raises into the job. Each start first takes the lock of the profiler's
    state, which is where ours gives way.
    """

    kind = "jax-profiler"

    def __init__(self, path: str, make_way: Callable[[], None]) -> None:
        from importlib import import_module

        self._profiler = import_module("jax.profiler")
        self._state: Any = import_module("jax._src.profiler")._profile_state
        self._folder, self._make_way, self._lock = path, make_way, self._state.lock
        self.step: Callable[[int], Any] = lambda number: self._profiler.StepTraceAnnotation("step", step_num=number)
        self.timed: Callable[[int], Any] | None = None

    def busy(self) -> bool:
        """Whether the job's own trace runs."""
        return self._state.profile_session is not None

    def start(self) -> None:
        """Begin; from now on whoever begins another trace ends this one first."""
        self._profiler.start_trace(self._folder)
        self._state.lock = self

    def __enter__(self) -> Any:
        self._state.lock = self._lock
        self._make_way()
        return self._lock.__enter__()

    def __exit__(self, *error: object) -> Any:
        return self._lock.__exit__(*error)

    def stop(self) -> None:
        """End it. Raises RuntimeError where it no longer runs."""
        if self._state.lock is self:
            self._state.lock = self._lock
        if not self.busy():
            raise RuntimeError("the profiler was stopped by another call than the recorder's")
        self._profiler.stop_trace()

    def drop(self) -> None:
        """Nothing of it is kept in memory."""

    def write(self, cut: int | None) -> list[str]:
        """The files of a trace that was ended. It lists steps by what ran in them, so that a cut one has no entry."""
        every = [os.path.join(folder, name) for folder, _, names in os.walk(self._folder) for name in names]
        return sorted(path for path in every if path.endswith(".xplane.pb"))


def tracer(path: str, lane: str, make_way: Callable[[], None]) -> TorchTrace | JaxTrace:
    """The profiler of the loaded framework; of two, that of the lane. Raises RuntimeError where there is none.

    ``make_way`` is called before the job begins a trace of its own, and has to end ours.
    """
    has_jax = imported.module("jax") is not None
    if (
        imported.module("torch") is not None
        and imported.module("torch_xla") is None
        and not (has_jax and "jax" in lane)
    ):
        return TorchTrace(path, make_way)
    if has_jax:
        return JaxTrace(path, make_way)
    raise RuntimeError("neither torch nor JAX is loaded, whose profilers could take a trace")


def mark_steps(steps: StepTimer, timed: Callable[[int], Any]) -> Callable[[], None]:
    """Mark in a trace what the timer of steps times, so that the trace's clock says how long a step took.

    What it gives ends that.
    """
    mark: list[Any] = []

    def close() -> None:
        while mark:
            mark.pop().__exit__(None, None, None)

    def end() -> None:
        steps.__class__ = StepTimer
        close()

    class MarkedSteps(StepTimer):
        """Takes the place of the timer's class while a trace runs: the hot path knows nothing of traces."""

        __slots__ = ()

        def __enter__(self) -> StepTimer:
            close()
            mark.append(timed(self.count))
            mark[0].__enter__()
            return super().__enter__()

        def __exit__(self, kind: Any, error: Any, trace: Any) -> Literal[False]:
            if kind is not None or not self.inside:
                close()
            return super().__exit__(kind, error, trace)

        def _write(self, now: int) -> None:
            # Every step under a trace is flagged, and so comes here; what follows may end the trace.
            close()
            super()._write(now)

    steps.__class__ = MarkedSteps
    return end


class Profiling:
    """The steps that a trace covers; begins at once, or as soon as the job's own profiler has ended.

    All these steps are flagged, those too that ran under the job's own: a profiler slows them down.
    """

    by_itself = False  # whether the recorder began it, and the job did not ask

    def __init__(self, trace: TorchTrace | JaxTrace, steps: StepTimer, count: int) -> None:
        self.kind = trace.kind
        self._trace, self._steps, self._left = trace, steps, count
        self._whole = self._number = 0
        self._step: Any = None
        self._thread = get_ident()
        self._asked = False
        self._unmark: Callable[[], None] = lambda: None
        self._try()
        steps.held |= BITS["profile"]
        steps.flags |= BITS["profile"]

    def _try(self) -> None:
        if self._trace.busy():
            return
        self._trace.start()
        try:
            self._begin()
            if self._trace.timed is not None and not self._steps.inside:
                self._unmark = mark_steps(self._steps, self._trace.timed)
        except Exception:
            self.give_up()
            raise

    def _begin(self) -> None:
        self._number = self._steps.count
        self._step = self._trace.step(self._number)
        self._step.__enter__()

    def after_step(self) -> list[str] | None:
        """The files of the trace after its last step; None before."""
        if self._step is None:
            self._try()
            return None
        self._left -= 1
        self._whole += 1
        if self._left <= 0 or self._asked:
            return self._finish(None)
        self._step.__exit__(None, None, None)
        self._begin()
        return None

    def make_way(self) -> list[str] | None:
        """End before the job begins a trace of its own: the files, or None where there is no whole step yet.

        A session of Kineto can be ended by its own thread alone. Another one asks, and waits for the end of a step.
        """
        if self._step is None:
            return None
        if self._thread != get_ident():
            self._asked = True
            until = monotonic() + PATIENCE
            while self._step is not None and monotonic() < until:
                sleep(0.005)
            return None
        if self._whole:
            return self.stop()
        self._end()
        self._trace.drop()
        return None

    def stop(self) -> list[str] | None:
        """End the trace, wherever it is; its files."""
        return self._finish(self._number)

    def _finish(self, cut: int | None) -> list[str] | None:
        if not self._whole:
            raise RuntimeError("no step ended under it: the job's own profiler ran, or the run was over")
        self._unflag()
        self._end()
        return self._trace.write(cut)

    def _end(self) -> None:
        self._unmark()
        try:
            self._step.__exit__(None, None, None)
            self._trace.stop()
        finally:
            self._step = None

    def give_up(self) -> None:
        """Leave no profiler running, after one of its calls failed."""
        self._unflag()
        self._step = None
        with suppress(Exception):
            self._unmark()
        with suppress(Exception):
            self._trace.stop()
        self._trace.drop()

    def _unflag(self) -> None:
        self._steps.held &= ~BITS["profile"]
        if not self._steps.inside:
            self._steps.flags &= ~BITS["profile"]
