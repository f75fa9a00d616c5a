"""What ends the process from outside: SIGTERM, by which schedulers preempt, and the kernel's out-of-memory killer.

SIGTERM is noted in the journal at once, then passed to the previous handler. Kills are read from the files by which the
process's control group, and those around it, count them.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any


CGROUP_ROOT = "/sys/fs/cgroup"


def oom_kills(process: str = "self", root: str = CGROUP_ROOT) -> dict[str, int]:
    """Kills by the files that count them, for the process's control group and those around it; empty where none do."""
    counts: dict[str, int | None] = {}
    for second, path in control_groups(process):
        place, file = (root, "memory.events") if second else (f"{root}/memory", "memory.oom_control")
        # Inside a container the path may be that of the host, and only the mount's root is there.
        counts |= {name: _kill_count(name) for name in (f"{place}{path.rstrip('/')}/{file}", f"{place}/{file}")}
    return {file: count for file, count in counts.items() if count is not None}


def control_groups(process: str) -> list[tuple[bool, str]]:
    """The control groups of a process that may count its memory: whether of the second version, and the path.

    On a host of both versions memory is counted by the first, and the second has a row all the same.
    """
    try:
        with open(f"/proc/{process}/cgroup", encoding="utf-8", errors="replace") as stream:
            rows = [line.rstrip("\n").split(":", 2) for line in stream.read(1 << 14).splitlines()]
    except OSError:
        return []
    return [
        (row[0] == "0", row[2]) for row in rows if len(row) == 3 and (row[0] == "0" or "memory" in row[1].split(","))
    ]


def more_kills(before: dict[str, int]) -> int:
    """How many more there have been since ``before`` was read, by the same files; what is gone counts as none."""
    return max((max(0, (_kill_count(file) or 0) - count) for file, count in before.items()), default=0)


def _kill_count(file: str) -> int | None:
    try:
        with open(file, encoding="ascii", errors="replace") as stream:
            lines = [line.partition(" ") for line in stream.read(4096).splitlines()]
    except OSError:
        return None
    return next((int(count) for name, _, count in lines if name == "oom_kill" and count.isdigit()), None)


def call_in_children(method: Callable[[], None]) -> None:
    """Call a method in every child that is forked, as long as its object lives."""
    os.register_at_fork(after_in_child=_weak(method))


def call_at_exit(method: Callable[[], None]) -> None:
    """Call a method when the process ends, as long as its object lives."""
    import atexit

    at_exit = _weak(method)
    atexit.register(at_exit)
    if (module := sys.modules.get("multiprocessing.util")) is not None:
        # What a fork server starts runs the script before it is a child, and leaves by `os._exit`.
        own = method.__self__  # type: ignore[attr-defined] # a bound method
        module.register_after_fork(own, lambda _: module.Finalize(None, at_exit, exitpriority=-1))


def _weak(method: Callable[[], None]) -> Callable[[], None]:
    import weakref

    # Not `WeakMethod`: one whose object goes while the interpreter ends prints an error of its own.
    bound: Any = method
    own, function = weakref.ref(bound.__self__), bound.__func__

    def call() -> None:
        if (living := own()) is not None:
            function(living)

    return call


class Terminate:
    """The handler of SIGTERM while a run goes on.

    ``noted`` is called with the signal's number. Where the process would have died of the signal, ``ending`` is called
    and the process then dies of it, so that its exit status stays what the scheduler expects. A handler that the job
    installed before is called; one that it installs later replaces this one, as is its right.
    """

    def __init__(self, noted: Callable[[int], None], ending: Callable[[int], None]) -> None:
        self._noted = noted
        self._ending = ending
        self._before: Any = None
        self._process = os.getpid()
        self._installed = False
        self._ends = False

    def install(self) -> bool:
        """Take the signal; False outside the main thread, where Python installs no handlers."""
        import signal
        import threading

        if threading.current_thread() is not threading.main_thread():
            return False
        before = signal.getsignal(signal.SIGTERM)
        if before is None:
            return False  # installed by other than Python: it cannot be called from here
        self._before, self._process = before, os.getpid()
        signal.signal(signal.SIGTERM, self._handle)
        self._installed = True
        return True

    def remove(self) -> None:
        """Give the signal back, unless somebody took it since, or the process is dying of it."""
        import signal

        if not self._installed or self._ends or os.getpid() != self._process:
            return
        self._installed = False
        if signal.getsignal(signal.SIGTERM) == self._handle:
            signal.signal(signal.SIGTERM, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        import signal

        # A forked child, such as a loader of data, inherits the handler; the run is its parent's to end.
        own = os.getpid() == self._process and self._installed
        if own and self._ends:
            return  # a second one, while the receipt is written: the first ends the process
        if own and self._before != signal.SIG_IGN:
            self._noted(number)
        if callable(self._before):
            self._before(number, frame)
        elif self._before == signal.SIG_DFL:
            if own:
                self._ends = True
                self._ending(number)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
