"""One piece of work in a process of its own: how it ended, how long it took, and the most memory that it held."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

MEGABYTES: Final = 300  # the bar of issue 27 for any process
KILLED: Final = -signal.SIGKILL


class Ended(NamedTuple):
    """How a process ended. ``code`` is that of the process, negative a signal; ``hung`` that it had to be stopped."""

    code: int
    seconds: float
    megabytes: float
    text: str
    hung: bool

    @property
    def fault(self) -> str:
        """What is wrong with the way that it ended; empty where nothing is."""
        if self.hung:
            return f"hung for {self.seconds:.0f} s"
        if self.megabytes > MEGABYTES:
            return f"took {self.megabytes:,.0f} MB"
        if "Traceback (most recent call last)" in self.text:
            return "traceback: " + self.text.strip().splitlines()[-1 if self.code == 70 else -2][:160]
        return f"ended by signal {-self.code}" if self.code < 0 else ""


def forked(work: Callable[[], int], seconds: float, *, tick: float = 0.005) -> Ended:
    """Do some work in a fork of this process, with nothing on standard input and its output kept."""
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as output:
        begun = time.monotonic()
        child = os.fork()
        if child == 0:
            _work(work, output.fileno())
        hung = False
        while True:
            pid, status, usage = os.wait4(child, os.WNOHANG)
            if pid:
                break
            if not hung and time.monotonic() - begun > seconds:
                hung = True
                os.kill(child, signal.SIGKILL)
            time.sleep(tick)
        taken = time.monotonic() - begun
        output.seek(0)
        text = output.read(2_000_000).decode("utf-8", "replace")
    return Ended(os.waitstatus_to_exitcode(status), taken, usage.ru_maxrss / 1024, text, hung)


def _work(work: Callable[[], int], output: int) -> None:
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        # A machine is to survive this: whoever takes more than 4 GB gets a MemoryError, which is a fault as well.
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for an attack, gone when it is over."""
    return tempfile.TemporaryDirectory(prefix="attack-", dir=Path(tempfile.gettempdir()))
