"""Reading a journal back, whatever became of the process that wrote it: torn ends, holes, foreign bytes."""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from binascii import crc32

from receipts.emit import journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MAX_BYTES = 128 << 20  # four million steps; it is held whole
MAX_EVENT = 1 << 20
MAX_STEPS = 20_000_000


class NotAJournal(Exception):
    """The file is no journal, or its first frame is gone; the text says which and what to do."""


class Replay:
    """What a journal holds. ``words`` has two numbers a step, end and duration; ``torn`` says what was lost."""

    def __init__(self, head: dict[str, Any]) -> None:
        self.head = head
        self.digest = ""
        self.events: list[list[Any]] = []
        self.words = array("q")
        self.gauges = array("q", bytes(8 * journal.GAUGES))
        self.floats = array("d", bytes(8 * journal.GAUGES))
        self.torn: list[str] = []

    def __repr__(self) -> str:
        return f"Replay({len(self.events)} events, {len(self.words) // 2} steps)"


def read(path: str) -> Replay:
    """Read a journal. Raises NotAJournal, and OSError where the file cannot be read."""
    size = os.path.getsize(path)
    if size > MAX_BYTES:
        raise NotAJournal(f"it has {size} bytes; a journal has at most {MAX_BYTES}")
    with open(path, "rb") as stream:
        data = stream.read(len(journal.MARK))
        if data != journal.MARK:
            raise NotAJournal("this is not a journal of the recorder; name the file that ends in .journal")
        data += stream.read(MAX_BYTES)
    replayed: Replay | None = None
    torn: list[str] = []
    for kind, body, words in _frames(memoryview(data), torn):
        if kind == b"H" and replayed is None:
            replayed = Replay(_object(body))
        elif replayed is None:
            raise NotAJournal("its first frame is broken: nothing says which run it is of")
        elif kind == b"E":
            _event(replayed, body, torn)
        elif kind == b"G":
            page = words[: 8 * journal.GAUGES].ljust(8 * journal.GAUGES, b"\0")
            replayed.gauges, replayed.floats = array("q", page), array("d", page)
        elif kind == b"S":
            _steps(replayed, words, torn)
    if replayed is None:
        raise NotAJournal("its first frame is broken: nothing says which run it is of")
    replayed.torn, replayed.digest = torn, hashlib.sha256(data).hexdigest()
    return replayed


def _frames(data: memoryview, torn: list[str]) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Kind, body and words of every whole frame; behind a broken one, from the next that is whole."""
    at, size = 0, journal.HEAD.size
    while at + size <= len(data):
        mark, kind, _, length, check = journal.HEAD.unpack_from(data, at)
        stop = at + size + length
        if mark == journal.MARK and kind in (b"G", b"S") and at + size <= check <= stop <= len(data) + length:
            # A block that was announced just before the machine went down may be shorter than it says.
            yield kind, b"", bytes(data[check : min(stop, len(data))])
            at = stop
            continue
        if mark == journal.MARK and kind in (b"H", b"E") and length <= MAX_EVENT and stop <= len(data):
            body = bytes(data[at + size : stop])
            if crc32(body) == check:
                yield kind, body, b""
                at = stop + 1
                continue
        if not any(data[at:]):
            return  # blocks that were reserved and not yet announced
        following = _next(data, at + 1)
        lost = (following if following >= 0 else len(data)) - at
        torn.append(f"{lost} bytes at {at} of the journal are torn and were left out")
        if following < 0:
            return
        at = following
    if any(data[at:]):
        torn.append(f"{len(data) - at} bytes at {at} of the journal are torn and were left out")


def _next(data: memoryview, at: int) -> int:
    """Where the next whole frame begins; -1 where none does."""
    raw = bytes(data[at:])
    place = raw.find(journal.MARK)
    while place >= 0 and place + journal.HEAD.size <= len(raw):
        _, kind, line, length, check = journal.HEAD.unpack_from(raw, place)
        start = place + journal.HEAD.size
        if line == b"\n" and kind == b"E" and length <= MAX_EVENT and crc32(raw[start : start + length]) == check:
            return at + place
        if line == b"\n" and kind in (b"G", b"S") and at + start <= check <= at + start + length <= len(data):
            return at + place
        place = raw.find(journal.MARK, place + 1)
    return -1


def _object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict) or parsed.get("format") != journal.FORMAT:
        raise NotAJournal(f"it is not of format {journal.FORMAT}; read it with the version that wrote it")
    return parsed


def _event(replayed: Replay, body: bytes, torn: list[str]) -> None:
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        event = None
    if isinstance(event, list) and event and isinstance(event[0], str):
        replayed.events.append(event)
    else:
        torn.append("an event of the journal is not one, and was left out")


def _steps(replayed: Replay, raw: bytes, torn: list[str]) -> None:
    words = array("q", raw[: len(raw) // 16 * 16])
    if len(words) < 2:
        return
    if words[0] != len(replayed.words) // 2:
        torn.append(f"steps from {len(replayed.words) // 2} to {words[0]} are not in the journal")
        return
    body = words[2:]
    # A step has ended once its duration is there; it is written last.
    ended = next((at for at in range(0, len(body), 2) if not body[at + 1]), len(body))
    if len(replayed.words) // 2 + ended // 2 <= MAX_STEPS:
        replayed.words.extend(body[:ended])
