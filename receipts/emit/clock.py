"""The recorder's clocks: the interpreter's own, whatever the job has put into the module ``time``.

A job that replaces `time.perf_counter_ns` would time itself. The functions are taken when the recorder is imported;
where one is not the interpreter's own any more, the built-in module is made anew, and ``replaced`` names it. `elapsed`
is another clock of the kernel, which no function of ``time`` reads: both must agree on how long a run took.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_NAMES = ("perf_counter_ns", "time_ns")


def _is_own(name: str) -> bool:
    """Whether ``time`` still holds the function of that name that the interpreter brings."""
    function: Any = getattr(time, name, None)
    return type(function) is type(len) and function.__name__ == name and function.__self__ is time


def _own_module() -> ModuleType:
    """The built-in module, made anew. Raises ImportError where this interpreter cannot."""
    importer = sys.modules["_frozen_importlib"].BuiltinImporter
    spec = importer.find_spec("time")
    module: ModuleType = importer.create_module(spec)
    importer.exec_module(module)
    return module


replaced = tuple(name for name in _NAMES if not _is_own(name))
_own = time
if replaced:
    try:
        _own = _own_module()
    except Exception:  # no CPython: the job's functions are all there is, and `replaced` says so
        _own = time
refused = bool(replaced) and _own is time
perf_counter_ns = _own.perf_counter_ns
time_ns = _own.time_ns


def elapsed() -> float:
    """Seconds of the kernel's ticks since some moment; suspension does not count, as in `perf_counter_ns`."""
    return os.times().elapsed
