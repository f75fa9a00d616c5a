"""Sight without a line of the script changed: `arm` waits for torch or JAX to be imported, and for the first step.

A process that makes no step, such as a launcher's agent or a loader's worker, never has a recorder, but for a job that
runs out of memory in its first; neither does a forked child. Where the job makes a recorder of its own, this stands
back.
"""

from __future__ import annotations

import os
import sys

from receipts.emit.termination import call_at_exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.recorder import Recorder
    from receipts.emit.sight.jax_watch import JitWatch
    from receipts.emit.sight.watch import Watch

FRAMEWORKS = ("torch", "torch_xla", "jax")


class Armed:
    """The state of a process that is armed: the watch, once torch is there."""

    def __init__(self, make: Callable[[], Recorder], ready: Callable[[Watch], None] | None) -> None:
        self._make, self._ready = make, ready
        self._process = os.getpid()
        self.watch: Watch | None = None
        self.jits: JitWatch | None = None
        self.rec: Recorder | None = None
        self.back = False
        call_at_exit(self.leave)

    def torch(self, torch: Any) -> None:
        """PyTorch has been imported."""
        if self.watch is None and not self.back:
            # Most processes never come here, and none of them pays for what a watch imports.
            from receipts.emit.sight.watch import Watch

            self.watch = Watch(torch, lambda: self._recorder(self.watch))
            if self._ready is not None:
                self._ready(self.watch)

    def torch_xla(self, _: Any = None) -> None:
        """torch_xla is being imported, and will read its flags."""
        from receipts.emit.probes.torch_xla import arm

        if not self.back:
            arm()

    def jax(self, jax: Any) -> None:
        """JAX has been imported; of two frameworks the one that makes a step first has the recorder."""
        from receipts.emit.sight.jax_watch import JitWatch

        if self.jits is None and not self.back:
            self.jits = JitWatch(jax, self._recorder)

    def _recorder(self, *probes: Any) -> Recorder | None:
        if self.back or self.rec is not None or os.getpid() != self._process:
            return None
        self.rec = self._make()
        return self.rec.start(*probes)

    def leave(self) -> None:
        """The process ends. A job that ran out of memory before its first step has failed as one of its size does."""
        error = getattr(sys, "last_value", None)  # what the interpreter printed a traceback of
        if error is None or self.rec is not None:
            return
        from receipts.emit.ending import failure_of_exception

        if failure_of_exception(error)[0] != "oom":
            return
        rec = None
        if self.jits is not None and type(error).__module__.startswith("jax"):
            rec = self._recorder()
        elif self.watch is not None:
            rec = self.watch.meet_failed(error)
        if rec is not None:
            rec._end(error)

    def stand_back(self, run: Any) -> None:
        """The job has a recorder of its own: this one goes, with what it has."""
        if self.rec is not None and self.rec._run is run:
            return
        self.back = True
        for watch in (self.watch, self.jits):
            if watch is not None:
                watch.close()
        if self.rec is not None:
            self.rec._run.withdraw()


armed: Armed | None = None


def arm(make: Callable[[], Recorder] | None = None, ready: Callable[[Watch], None] | None = None) -> Armed | None:
    """Arm this process. ``make`` makes its recorder, ``ready`` is given the watch when torch has been imported."""
    global armed
    if armed is None and os.environ.get("RECEIPTS_SIGHT") != "0":
        armed = Armed(make or recorder, ready)
        waits = [name for name in FRAMEWORKS if name not in sys.modules]
        for name in sys.modules.keys() & FRAMEWORKS:
            getattr(armed, name)(sys.modules[name])
        if waits:
            sys.meta_path.insert(0, Finder(armed, waits))
    return armed


def recorder() -> Recorder:
    """The recorder of a launch that names none: by the environment, on the lane of its machine."""
    from receipts.emit.recorder import Recorder
    from receipts.emit.run import WARMUP

    warmup = os.environ.get("RECEIPTS_WARMUP", "")
    return Recorder(
        os.environ.get("RECEIPTS_LANE") or lane(),
        warmup=int(warmup) if warmup.isdigit() else WARMUP,
    )


def lane() -> str:
    """The lane of the machine and the framework, as they are at the first step."""
    if "torch_xla" in sys.modules:
        return "tpu-torch-xla" if os.environ.get("PJRT_DEVICE", "").upper() == "TPU" else "cpu-torch-xla"
    from receipts.emit.probes import imported, pytorch

    if "torch" not in sys.modules:
        return "cpu-jax" if imported.part("jax", "default_backend")() == "cpu" else "unlisted"
    if not pytorch.cuda_begun():
        return "cpu-torch"
    return "nvidia-fsdp2" if "torch.distributed.fsdp" in sys.modules else "nvidia-torch"


class Finder:
    """Waits for frameworks on `sys.meta_path`; the others find them, and each loader is replaced for one import."""

    def __init__(self, state: Armed, waits: list[str]) -> None:
        self._state, self._waits = state, waits

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of torch or JAX by the other finders; nothing for any other module."""
        if name not in self._waits:
            return None
        if name == "torch_xla":
            self._waits.remove(name)
            self._state.torch_xla()
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None and spec.loader is not None:
                self._replace(name, spec.loader)
                return spec
        return None

    def _replace(self, name: str, loader: Any) -> None:
        inner = loader.exec_module

        # Most processes never come here, and none of them pays for what this imports.
        from receipts.emit.probes.environment import look_early

        def execute(module: Any) -> None:
            del loader.exec_module
            self._waits.remove(name)
            if not self._waits and self in sys.meta_path:
                sys.meta_path.remove(self)
            try:
                look_early()
            except Exception as error:
                sys.stderr.write(f"receipts: flags were not looked at: {type(error).__name__}: {error}\n")
            inner(module)
            try:
                getattr(self._state, name)(module)
            except Exception as error:
                sys.stderr.write(f"receipts: {name} is not watched: {type(error).__name__}: {error}\n")

        loader.exec_module = execute
