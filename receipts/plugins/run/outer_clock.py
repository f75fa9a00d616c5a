"""The outer clock: when the launcher saw each step end, by clocks that the job cannot reach.

The recorder's journal is a page that the job writes and the launcher reads: the end of each step by the job's clock. An
*edge* is a step with the job's time of its end, and the moments between which the launcher saw it. Both processes run
on one kernel, so that the two agree whatever the machine does: one that is suspended, set by NTP or busy delays an
edge, and its bounds say by how much. `receipts.readers.recorder` computes rates of them.

Three clocks are read, since each is disturbed by something: CLOCK_BOOTTIME counts suspension, CLOCK_MONOTONIC is slewed
by NTP, CLOCK_MONOTONIC_RAW is neither and differs from both. The one that agrees best counts.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from receipts.emit.journal import DURATION_MASK, HEAD, MARK

FORMAT: Final = "receipts_outer_clock"
FASTEST, SLOWEST = 0.002, 0.02  # seconds between two looks
SHARE: Final = 0.001  # of the time since the first step: a look more seldom would add more than that
ENDS: Final = 20  # edges that are kept at each end
MAX_JOURNALS, MAX_EVENT = 64, 1 << 20
READ: Final = 1 << 16
_LINUX: Final = ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC_RAW", "CLOCK_MONOTONIC")
_IDS: Final = {name: number for name in _LINUX if (number := getattr(time, name, None)) is not None}
_PAIR: Final = struct.Struct("<qq")


def look() -> tuple[int, ...]:
    """The launcher's clocks, in nanoseconds."""
    return tuple(time.clock_gettime_ns(number) for number in _IDS.values())


class Edge(NamedTuple):
    """So many steps had ended, the last at ``inner`` by the job's clock; the launcher saw it between two looks."""

    steps: int
    inner: int
    after: tuple[int, ...]
    before: tuple[int, ...]


class FollowedJournal:
    """A journal that another process writes, read as it grows. Nothing in it is trusted: what is torn ends it."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self._at = 0  # where the next frame begins
        self._next = self._stop = 0  # what is unread of the steps' block
        self.head: dict[str, Any] = {}
        self.steps = 0
        self.first: list[Edge] = []
        self.last: deque[Edge] = deque(maxlen=ENDS)

    def __repr__(self) -> str:
        return f"FollowedJournal({self.steps} steps)"

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def step(self, after: tuple[int, ...]) -> None:
        """Take the steps that ended since the look ``after``."""
        before_steps, inner = self.steps, 0
        while True:
            if self._next >= self._stop and not self._find_block():
                break
            words = os.pread(self._file, min(READ, self._stop - self._next), self._next)
            ended = 0
            for end, duration in _PAIR.iter_unpack(words[: len(words) // 16 * 16]):
                if not duration & DURATION_MASK:
                    break
                ended, inner = ended + 1, end
            self.steps += ended
            self._next += 16 * ended
            if 16 * ended < len(words) or not words:
                break
        if self.steps > before_steps:
            edge = Edge(self.steps, inner, after, look())
            if len(self.first) < ENDS:
                self.first.append(edge)
            else:
                self.last.append(edge)

    def _find_block(self) -> bool:
        """Go on to the next block of steps; False while there is none."""
        while True:
            header = os.pread(self._file, HEAD.size, self._at)
            if len(header) < HEAD.size:
                return False
            mark, kind, _, length, check = HEAD.unpack(header)
            if mark != MARK or (kind in (b"H", b"E") and length > MAX_EVENT):
                return False
            start = self._at + HEAD.size
            if kind == b"H" and not self.head:
                with suppress(ValueError, RecursionError):
                    head = json.loads(os.pread(self._file, length, start))
                    self.head = head if isinstance(head, dict) else {}
            self._at = start + length + (kind in (b"H", b"E"))
            if kind == b"S":
                # Two words of its own come before the steps.
                self._next, self._stop = check + 16, start + length
                return True

    def as_data(self) -> dict[str, Any]:
        """What the file of evidence says of it."""
        edges = (*self.first, *self.last)
        names = ("launch", "host", "process", "rank", "out")
        return {
            **{name: self.head.get(name) for name in names},
            "steps": self.steps,
            "edges": [
                [edge.steps, edge.inner, *map(list, zip(edge.after, edge.before, strict=True))] for edge in edges
            ],
        }


class OuterClock:
    """Follows the journals that a job's recorders write in a folder. ``kept`` is where a second name of each lies."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self._folder, self._kept = folder, kept
        self._seen: set[str] = set()
        self._listed = 0.0
        self._began: float | None = None
        self._looked = look()
        self.journals: list[FollowedJournal] = []

    def __repr__(self) -> str:
        return f"OuterClock({self.journals!r})"

    def step(self) -> float:
        """Look once; gives the seconds until the next look."""
        now = time.monotonic()
        if now - self._listed > (0.05 if not self.journals else 1.0):
            self._listed = now
            for path in sorted(self._folder.glob("*.journal")):
                if path.name in self._seen or len(self._seen) >= MAX_JOURNALS:
                    continue
                self._seen.add(path.name)
                with suppress(OSError):
                    # The recorder removes its own name when the receipt is written.
                    os.link(path, self._kept / path.name)
                with suppress(OSError):
                    self.journals.append(FollowedJournal(path))
        after, self._looked = self._looked, look()
        for journal in self.journals:
            with suppress(OSError):
                journal.step(after)
        if self._began is None:
            if not any(journal.steps for journal in self.journals):
                return SLOWEST if not self.journals else FASTEST
            self._began = now
        return min(SLOWEST, max(FASTEST, SHARE * (now - self._began)))

    def close(self) -> None:
        """Take what ended since the last look, and let go of the files."""
        self._listed = 0.0
        self.step()
        for journal in self.journals:
            journal.close()

    def write(self, place: Path, journal: FollowedJournal, cpu_seconds: float | None) -> Path:
        """Write the evidence of one launch into a folder."""
        launch = journal.head.get("launch")
        path = place / f"{str(launch)[:8]}.outer-clock.json"
        tree = {FORMAT: 1, "clocks": list(_IDS), **journal.as_data(), "cpu_seconds": cpu_seconds}
        path.write_text(json.dumps(tree) + "\n", encoding="utf-8")
        return path
