"""The events of a trace of torch.profiler, read as a stream: what is before them, and each of them.

A trace of gigabytes is read a block at a time. Events are parsed a block at once as long as they begin as kineto writes
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import ijson
import orjson

from receipts.ingest.reader import JsonStream
from receipts.ingest.source import Source, Stream

# A job of thousands of ranks lists its process groups before the events.
MAX_HEAD: Final = 8 << 20
BLOCK: Final = 1 << 20
_EVENTS: Final = b'"traceEvents"'
_MARK: Final = b'"ph"'
_NAME: Final = b'"traceName"'
_OPENING = re.compile(rb'\s*(?:\{"traceEvents"\s*:\s*)?\[\s*')
_BETWEEN = re.compile(rb"\}\s*,\s*\{\s*\Z")
# A moment stays a text: doubles hold microseconds since 1970 to a quarter.
_TIME = re.compile(rb'("ts"\s*:\s*)(\d[\d.]*)')


class TraceBody:
    """The events of a trace, and a file of their own that a parser of JSON takes.

    Writers make mistakes outside the events (a missing value, a backslash in a file name): what is before them is
    kept in ``head``. ``closed`` tells afterwards whether the file ends as a trace does, and ``marks`` how many events
    were in it at least.
    """

    def __init__(self, stream: Stream, source: Source) -> None:
        self._stream = JsonStream(stream, source)
        self.source = source
        self.path = "traceEvents.item"
        self.head = b""
        self.closed = False
        self.marks = 0
        self._tail = b""
        gathered = b""
        while len(gathered) < MAX_HEAD:
            block = self._stream.read(BLOCK)
            gathered += block
            at = gathered.find(_EVENTS)
            if at >= 0:
                self.head = gathered[:at]
                gathered = b"{" + gathered[at:]
                break
            if not block or gathered.lstrip()[:1] == b"[":
                self.path = "item"
                break
        self._watch(gathered)
        self._pending = gathered

    def events(self) -> Iterator[Any]:
        """The events: as long as they begin as kineto writes them, a block at once; the last and others one by one."""
        pending = self.read()
        opening = match[0] if (match := _OPENING.match(pending)) else b""
        pending = pending[len(opening) :]
        while opening and (cut := _last_end(pending)):
            try:
                events = orjson.loads(b"[" + _TIME.sub(rb'\1"\2"', pending[:cut]) + b"]")
            except orjson.JSONDecodeError:
                break
            yield from events
            pending = pending[pending.index(b"{", cut) :] + self.read()
        self._pending = opening + pending + self._pending
        yield from ijson.items(self, self.path, buf_size=BLOCK)

    def read(self, size: int = BLOCK) -> bytes:
        """Up to ``size`` bytes; empty at the end, also where the file breaks off."""
        if size == 0:
            return b""
        size = BLOCK if size < 0 else size
        if not self._pending:
            self._pending = self._stream.read(BLOCK)
            self._watch(self._pending)
        piece, self._pending = self._pending[:size], self._pending[size:]
        return piece

    def _watch(self, block: bytes) -> None:
        self._tail = (self._tail + block)[-4096:]
        text = self._tail.rstrip()
        self.marks += block.count(_MARK)
        self.closed = _NAME in self._tail or text.endswith(b"]" if self.path == "item" else b"}")


def _last_end(text: bytes) -> int:
    """Where the last event but one ends; 0 where it does not show."""
    at = len(text)
    while (at := text.rfind(_MARK, 0, at)) > 0:
        if between := _BETWEEN.search(text, max(0, at - 64), at):
            return between.start() + 1
    return 0
