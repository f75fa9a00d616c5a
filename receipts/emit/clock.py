"""The recorder's clocks: the interpreter's own, whatever the job has put into the module ``time``.

A job that replaces `time.perf_counter_ns` would time itself. The functions are taken when the recorder is imported;
where one is not the interpreter's own any more, the built-in module is made anew. `refused` says that it could not be.
`elapsed` is another clock of the kernel, which no function of ``time`` reads: both must agree on how long a run took.
`JobClocks` tells how fast the functions run that the job has put there, and `replaced` how many of the recorder's own
the job has put others in place of.
"""

from __future__ import annotations

import os
import sys
import time
from types import FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CLOCKS = ("perf_counter_ns", "perf_counter", "monotonic_ns", "monotonic", "time_ns", "time")
MIN_SECONDS = 1.0  # seconds: two calls in a row are microseconds apart


def _is_own(name: str) -> bool:
    """Whether ``time`` still holds the function of that name that the interpreter brings."""
    function: Any = getattr(time, name, None)
    kind = type(function) is type(len)
    return kind and (function.__name__, getattr(function, "__self__", None)) == (name, time)


_own: Any = time
refused = False
if not all(_is_own(name) for name in CLOCKS):
    try:
        # The built-in module, made anew.
        _importer = sys.modules["_frozen_importlib"].BuiltinImporter
        _anew = _importer.create_module(_importer.find_spec("time"))
        _importer.exec_module(_anew)
        _own = _anew
    except Exception:  # no CPython: the job's functions are all there is
        refused = True
_clocks = {name: getattr(_own, name) for name in CLOCKS}
perf_counter_ns = _own.perf_counter_ns
time_ns = _own.time_ns


def elapsed() -> float:
    """Seconds of the kernel's ticks since some moment; suspension does not count, as in `perf_counter_ns`."""
    return os.times().elapsed


class JobClocks:
    """The clocks of ``time`` as the job sees them, each beside the interpreter's own."""

    def __init__(self) -> None:
        self._begun = self._look()

    def _look(self) -> dict[str, tuple[float, float]]:
        return {name: (getattr(time, name)(), own()) for name, own in _clocks.items()}

    def ratio(self) -> float | None:
        """How fast the one ran that is furthest from the interpreter's own; None where the job replaced none."""
        if refused or all(_is_own(name) for name in CLOCKS):
            return None
        rates = []
        for name, (theirs, own) in self._look().items():
            unit = 1e9 if name.endswith("_ns") else 1.0
            seconds = (own - self._begun[name][1]) / unit
            if seconds >= MIN_SECONDS:
                rates.append((theirs - self._begun[name][0]) / unit / seconds)
        worst = max(rates, key=lambda rate: abs(rate - 1), default=None)
        return None if worst is None else round(min(max(worst, 0.0), 1e9), 6)


def replaced() -> int:
    """How many functions of the recorder's modules and classes are neither its own nor Python's."""
    package = __name__.rpartition(".")[0]
    known = {package.partition(".")[0], *sys.stdlib_module_names}
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(package)]
    spaces: list[Any] = [getattr(module, "__dict__", {}) for module in modules]
    kinds = [kind for space in spaces for kind in space.values() if isinstance(kind, type)]
    spaces += [vars(kind) for kind in kinds if kind.__module__.startswith(package)]
    functions = {id(item): item for space in spaces for item in list(space.values()) if isinstance(item, FunctionType)}
    homes = (str(function.__globals__.get("__name__") or "") for function in functions.values())
    # What a named tuple makes is Python's.
    return sum(not home.startswith("namedtuple_") and home.partition(".")[0] not in known for home in homes)
