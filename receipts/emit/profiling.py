"""A trace of a few steps, by the profiler of the framework that the job has loaded. What it shows is read later.

The steps are flagged ``profile``, so that no rate counts them, and the file is listed with its digest: it is the trace
that this launch took.
"""

from __future__ import annotations

import os
from contextlib import suppress

from receipts.emit.probes import loaded
from receipts.emit.steps import BITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.steps import StepTimer


class TorchTrace:
    """One file of `torch.profiler`, with the shapes of operators, which bind it to its launch."""

    kind = "torch-profiler"

    def __init__(self, path: str) -> None:
        from importlib import import_module

        profiler = import_module("torch.profiler")
        self.file = f"{path}.json.gz"
        self._profile = profiler.profile(record_shapes=True)
        self.start, self._stop = self._profile.start, self._profile.stop
        # Named as the profiler's own schedule names steps.
        self.step: Callable[[int], Any] = lambda number: profiler.record_function(f"ProfilerStep#{number}")

    def stop(self) -> list[str]:
        """End it; the files that it wrote."""
        self._stop()
        self._profile.export_chrome_trace(self.file)
        return [self.file]


class JaxTrace:
    """A folder of `jax.profiler`, with an XSpace for each host."""

    kind = "jax-profiler"

    def __init__(self, path: str) -> None:
        from importlib import import_module

        profiler = import_module("jax.profiler")
        self.start: Callable[[], None] = lambda: profiler.start_trace(path)
        self._folder, self._stop = path, profiler.stop_trace
        self.step: Callable[[int], Any] = lambda number: profiler.StepTraceAnnotation("step", step_num=number)

    def stop(self) -> list[str]:
        """End it; the files that it wrote."""
        self._stop()
        every = [os.path.join(folder, name) for folder, _, names in os.walk(self._folder) for name in names]
        return sorted(path for path in every if path.endswith(".xplane.pb"))


def tracer(path: str, lane: str) -> TorchTrace | JaxTrace:
    """The profiler of the loaded framework; of two, that of the lane. Raises RuntimeError where there is none."""
    has_jax = loaded.module("jax") is not None
    if loaded.module("torch") is not None and loaded.module("torch_xla") is None and not (has_jax and "jax" in lane):
        return TorchTrace(path)
    if has_jax:
        return JaxTrace(path)
    raise RuntimeError("neither torch nor JAX is loaded, whose profilers could take a trace")


class Profiling:
    """The steps that a trace covers; begins at once, and with them the flag."""

    def __init__(self, trace: TorchTrace | JaxTrace, steps: StepTimer, count: int) -> None:
        self.kind = trace.kind
        self._trace, self._steps, self._left = trace, steps, count
        self._step: Any = None
        trace.start()
        try:
            self._begin()
        except Exception:
            self.give_up()
            raise
        steps.held |= BITS["profile"]
        steps.flags |= BITS["profile"]

    def __repr__(self) -> str:
        return f"Profiling({self.kind}, {self._left} steps to go)"

    def _begin(self) -> None:
        self._step = self._trace.step(self._steps.count)
        self._step.__enter__()

    def after_step(self) -> list[str] | None:
        """The files of the trace after its last step; None before."""
        self._left -= 1
        if self._left <= 0:
            return self.stop()
        self._step.__exit__(None, None, None)
        self._begin()
        return None

    def stop(self) -> list[str]:
        """End the trace, wherever it is; its files."""
        self._unflag()
        self._step.__exit__(None, None, None)
        return self._trace.stop()

    def give_up(self) -> None:
        """Leave no profiler running, after one of its calls failed."""
        self._unflag()
        with suppress(Exception):
            self._trace.stop()

    def _unflag(self) -> None:
        self._steps.held &= ~BITS["profile"]
        if not self._steps.inside:
            self._steps.flags &= ~BITS["profile"]
