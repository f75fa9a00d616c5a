"""The journal: what the run has stated and every step that has ended, in a file that outlives the process.

One append-only file of frames. A frame is a header (mark, kind, length, CRC-32) and its body:

    H  the run: a JSON object with process, host, clocks; the first frame, and written once
    E  an event: a JSON list, see `receipts.emit.facts`
    G  gauges: two pages of 64-bit words that are written in place, see `BEGUN` and those after it
    S  steps: pages of 64-bit words, the number of the first step and then two words a step, its end and its duration

Gauges and steps are mapped into memory, so that a step costs two stores and no system call; what is stored so is in the
kernel's hands, and survives ``kill -9``, the out-of-memory killer and preemption of the process. Only a crash of the
machine can lose the last seconds. A word that was not written is zero, and a step without a duration has not ended.
The file's blocks are reserved before they are mapped: a full disk is then an error here, and no signal in the job.
"""

from __future__ import annotations

import mmap
import os
import struct
from _thread import RLock
from binascii import crc32
from contextlib import suppress

from receipts.emit.files import file_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MARK = b"rJ"
HEAD = struct.Struct("<2sccII")
PAGE = 4096
FORMAT = 1
# 32 KiB: the first 2,047 steps; a longer run takes larger blocks.
FIRST_BLOCK = 8 * PAGE
MAX_BLOCK = 64 * PAGE
FLAG_SHIFT = 56
DURATION_MASK = (1 << FLAG_SHIFT) - 1
# Words of the gauges' page. Times are nanoseconds of the process's clock (perf_counter).
SPANS = ("compile", "checkpoint", "eval", "data", "profile")
BEGUN, SPAN_TIME, SPAN_COUNT, OPEN_SPAN, LAST = 0, 1, 6, 11, 12
LOSSES, LOSS, NOT_FINITE, NORMS, NORM, NORM_NOT_FINITE = 13, 14, 15, 16, 17, 18
MAX_NORM = 19
SPANS_IN_STEPS = 20
# Tables of the losses and norms that are kept, two words each: the step and one, and the value.
LOSS_TABLE, NORM_TABLE, TABLE = 32, 288, 128
GAUGES = 1024


class Journal:
    """A journal that is being written. Every method may raise OSError; the recorder then goes on without it.

    ``gauges`` and ``floats`` are the same words, seen as whole numbers and as floating-point numbers.
    """

    def __init__(self, path: str, head: dict[str, Any]) -> None:
        self.path = path
        # Not inherited by children that are executed, and never over another run's journal.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
        mode = file_mode(os.path.dirname(path) or ".")
        self._file = os.open(path, flags, mode)
        if mode & 0o077:
            os.fchmod(self._file, mode)  # the umask is for folders that nobody shared
        self._end = 0
        self._maps: list[mmap.mmap] = []
        self._blocks: list[memoryview] = []
        self._next_block = FIRST_BLOCK
        try:
            self._frame(b"H", _json(head))
            page = self._mapped(b"G", 8 * GAUGES)
        except BaseException:
            os.close(self._file)
            os.unlink(path)
            raise
        self.gauges = page.cast("q")
        self.floats = page.cast("d")

    def event(self, event: list[Any]) -> None:
        """Append one event."""
        self._frame(b"E", _json(event))

    def block(self, first: int) -> memoryview:
        """A new block for steps from number ``first`` on, as whole numbers, two a step; room for some thousands."""
        view = self._mapped(b"S", self._next_block).cast("q")
        self._next_block = min(2 * self._next_block, MAX_BLOCK)
        view[0] = first
        view[1] = FORMAT
        self._blocks.append(view)
        return view[2:]

    def sync(self) -> None:
        """Give everything to the disk, so that a crash of the machine loses nothing before this."""
        for item in self._maps:
            item.flush()
        os.fsync(self._file)

    def close(self) -> None:
        """Let go of the file. What was mapped stays mapped as long as somebody holds a view of it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _frame(self, kind: bytes, body: bytes) -> None:
        data = HEAD.pack(MARK, kind, b"\n", len(body), crc32(body)) + body + b"\n"
        view, at = memoryview(data), self._end
        while view:
            written = os.pwrite(self._file, view, at)
            view, at = view[written:], at + written
        self._end = at

    def _mapped(self, kind: bytes, size: int) -> memoryview:
        """Reserve, announce and map ``size`` bytes at the next boundary at which this system maps files."""
        grain = max(PAGE, mmap.ALLOCATIONGRANULARITY)
        start = -(-(self._end + HEAD.size) // grain) * grain
        reserve(self._file, start, size)
        flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
        mapped = mmap.mmap(self._file, size, flags=flags, offset=start)
        length = start + size - self._end - HEAD.size
        os.pwrite(self._file, HEAD.pack(MARK, kind, b"\n", length, start), self._end)
        self._end = start + size
        self._maps.append(mapped)
        return memoryview(mapped)


class RunJournal:
    """The journal of a run, for as long as it can be written on; what is told before it is open waits for that.

    ``path`` is empty without one; ``lost`` is whether it was given up: what it holds then stays mapped, and steps go on
    into it as far as its block reaches. ``say`` and ``fault`` take what could not be written.
    """

    def __init__(self, say: Callable[[str], None], fault: Callable[[str], None]) -> None:
        self._say, self._fault = say, fault
        self._lock = RLock()
        self._journal: Journal | None = None
        self._waiting: list[list[Any]] = []
        self._opens, self._writing = True, False
        self.path, self.lost = "", False

    def open(self, path: str, head: dict[str, Any]) -> Journal:
        """Begin a file. Raises OSError."""
        self._journal = Journal(path, head)
        self.path = path
        return self._journal

    def opened(self) -> None:
        """Write what has waited; where none is open by now, there will be none."""
        with self._lock:
            self._opens = False
            self._write()

    def tell(self, event: list[Any]) -> None:
        """Write an event."""
        with self._lock:
            if self._opens or self._journal is not None:
                self._waiting.append(event)
            self._write()

    def _write(self) -> None:
        # A signal's handler may come between: what it tells is written by the call that it interrupted.
        if self._writing:
            return
        self._writing = True
        try:
            while self._waiting and self._journal is not None:
                try:
                    self._journal.event(self._waiting[0])
                except (TypeError, ValueError, RecursionError) as error:
                    # What JSON cannot hold is lost by itself, and holds up nothing behind it.
                    self._say(f"the journal does not hold {self._waiting[0][:1]!s}: {error}")
                del self._waiting[0]
        except OSError as error:
            self._waiting.clear()
            self.lost = True
            with suppress(OSError):
                self.close()
            self._fault(f"the journal could not be written on: {error.strerror or error}")
        finally:
            self._writing = False

    def block(self, first: int) -> memoryview | None:
        """Room for steps from number ``first`` on; None without a journal, and where it has none."""
        if self._journal is None:
            return None
        try:
            return self._journal.block(first)
        except (OSError, ValueError) as error:
            self._fault(f"the journal has no room for more steps: {getattr(error, 'strerror', None) or error}")
            return None

    def close(self) -> None:
        """Let go of the file, and of what waits. Raises OSError."""
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    def forget(self) -> None:
        """In a forked child: the file is the parent's."""
        self._journal, self._opens, self.path = None, False, ""


def reserve(file: int, start: int, size: int) -> None:
    """Make the file longer by blocks that are really there. Raises OSError where the disk has no room for them."""
    try:
        os.posix_fallocate(file, start, size)
        return
    except AttributeError:
        pass  # macOS has no such call
    except OSError as error:
        import errno

        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
    zeros, at = bytes(PAGE), start
    while at < start + size:
        at += os.pwrite(file, zeros[: start + size - at], at)


def _json(value: Any) -> bytes:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
