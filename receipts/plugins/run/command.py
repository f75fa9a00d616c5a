"""The command that a plan is launched with: its words, some of which hold leaves of the plan, and its process.

``{batch.micro_batch}`` is the leaf's value in the attempt's plan, ``{plan}`` for the plan's file and ``{dir}`` for
the attempt's folder. Any other brace is the command's own: JSON and shell words pass as they are. One that begins
with a section of the receipt and names no leaf of it is a slip.

The process writes its output to a file, which is shown as it grows; signals are passed on. A runner that is killed
neither takes the process down nor loses a line of it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from receipts.base.errors import InputError, Problem, UsageError, near
from receipts.receipt import Parsed
from receipts.receipt.leaves import find_leaf, leaves

_PLACE: Final = re.compile(r"\{([a-z_]+(?:\.[A-Za-z0-9_.\-]+)?)\}")
PLAN, FOLDER = "plan", "dir"


class CommandWords:
    """The words of a command as they were typed."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        named = dict.fromkeys(name for word in self.words for name in _PLACE.findall(word))
        self.leaves = tuple(name for name in named if name not in (PLAN, FOLDER) and find_leaf(name) is not None)
        sections = {leaf.path.partition(".")[0] for leaf in leaves()}
        self.slips = tuple(
            name for name in named if "." in name and name.partition(".")[0] in sections and find_leaf(name) is None
        )
        self.reads_plan = PLAN in named

    def __repr__(self) -> str:
        return f"CommandWords({list(self.words)!r})"

    def filled(self, plan: Parsed, places: Mapping[str, Path]) -> list[str]:
        """The words for one attempt. Raises InputError with every leaf that the plan does not state or that is none."""
        if self.slips:
            known = [leaf.path for leaf in leaves()]
            raise InputError(
                "the command",
                [Problem(f"{{{name}}}", f"there is no such leaf{near(name, known)}") for name in self.slips],
            )
        missing = [name for name in self.leaves if plan.stated.get(name) is None]
        if missing:
            raise InputError(
                plan.source, [Problem(name, "the command takes it, and the plan does not state it") for name in missing]
            )
        values = {name: _text(plan.stated[name]) for name in self.leaves}
        values |= {name: str(place) for name, place in places.items()}
        return [_PLACE.sub(lambda match: values.get(match[1], match[0]), word) for word in self.words]

    def untaken(self, changes: Iterable[str]) -> list[str]:
        """Changed leaves that no word carries to the command; none where it reads the plan itself."""
        if self.reads_plan:
            return []
        return [path for path in changes if path not in self.leaves]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


POLL: Final = 0.05
# Writes how the command ended, even if nobody waits for it; a caught signal is the default again in its child.
_SHELL: Final = 'trap : INT TERM HUP; "$@"; code=$?; echo $code > "$0.part" && mv "$0.part" "$0"; exit $code'
CHUNK: Final = 1 << 16
_PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ChildLimits(NamedTuple):
    """When a child is ended: after ``silence`` seconds without a line, ``grace`` seconds to go before it is killed.

    ``stop`` is asked now and then, and gives a reason to end it, or None.
    """

    silence: float | None = None
    grace: float = 30.0
    stop: Callable[[], str | None] | None = None


class Ended(NamedTuple):
    """How a child ended: a negative ``exit_code`` is a signal's; ``by`` says who ended it, a signal or `silence`."""

    exit_code: int
    by: str | None = None


def run(
    words: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    limits: ChildLimits,
    began: Callable[[int], None],
    show: bool = True,
) -> Ended:
    """Run a command until it ends; ``began`` gets its process id. Raises UsageError where it cannot be run."""
    if shutil.which(words[0], path=environment.get("PATH")) is None:
        raise UsageError(f"{words[0]} cannot be run: there is no such program; check the command after --")
    with log.open("ab") as stream:
        # A session of its own, so that what a launcher started ends with it.
        child = subprocess.Popen(
            ["/bin/sh", "-c", _SHELL, str(_code(log)), *words],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=dict(environment),
            start_new_session=True,
        )
    began(child.pid)
    by: str | None = None
    killing: float | None = None
    with log.open("rb") as printed, passing(lambda number: _end(child.pid, number)) as received:
        heard = time.monotonic()
        while True:
            code = child.poll()
            piece = printed.read(CHUNK)
            if piece and show:
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
            if piece:
                heard = time.monotonic()
                continue
            if code is not None:
                _end(child.pid, signal.SIGKILL)  # what it left behind holds the chips
                ended = exit_code(log)
                first = signal.Signals(received[0]).name if received else None
                return Ended(code if ended is None else ended, by or first)
            now = time.monotonic()
            if by is None and not received:
                silent = limits.silence is not None and now - heard > limits.silence
                by = "silence" if silent else limits.stop() if limits.stop is not None else None
                if by is not None:
                    _end(child.pid, signal.SIGTERM)
            if (by is not None or received) and killing is None:
                killing = now + limits.grace
            if killing is not None and now > killing:
                _end(child.pid, signal.SIGKILL)
                killing = now + limits.grace
            time.sleep(POLL)


def exit_code(log: Path) -> int | None:
    """How the command that wrote a log ended, negative for a signal; None where nobody was left to write it down."""
    try:
        code = int(_code(log).read_text())
    except (OSError, ValueError):
        return None
    return 128 - code if code > 128 else code


def _code(log: Path) -> Path:
    return log.with_suffix(".exit")


@contextmanager
def passing(send: Callable[[signal.Signals], None]) -> Iterator[list[int]]:
    """Pass signals on by ``send`` while the context is open; gives those that came."""
    received: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        send(signal.Signals(number))

    before = {number: signal.signal(number, handle) for number in _PASSED_ON}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: int, how: signal.Signals) -> None:
    try:
        os.killpg(process, how)
    except (ProcessLookupError, PermissionError):
        return


def alive(process: tuple[int, str]) -> bool:
    """Whether that very process is still there."""
    return started(process[0]) == process[1] != ""


def started(process: int) -> str:
    """When a process was started, by the kernel's clock; empty where it is gone, or the system does not tell."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stream:
            # The name is in parentheses and may hold anything.
            fields = stream.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""
