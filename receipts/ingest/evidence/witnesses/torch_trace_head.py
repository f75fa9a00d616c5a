"""What a trace says of the machine before its events, and the stream of the rest."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from receipts.ingest.evidence.witnesses.gpus import state_gpus
from receipts.ingest.reader import JsonStream
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source, Stream

# A job of thousands of ranks lists its process groups before the events.
MAX_HEAD: Final = 8 << 20
BLOCK: Final = 1 << 20
_EVENTS: Final = b'"traceEvents"'
_MARK: Final = b'"ph"'
_NAME: Final = b'"traceName"'
_TRAILING = re.compile(rb"[\s,]+\Z")


class TraceBody:
    """The events of a trace as a file of their own, which a parser of JSON takes.

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
        self._pending = self._begin()

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

    def _begin(self) -> bytes:
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
        return gathered

    def _watch(self, block: bytes) -> None:
        self._tail = (self._tail + block)[-4096:]
        text = self._tail.rstrip()
        self.marks += block.count(_MARK)
        self.closed = _NAME in self._tail or text.endswith(b"]" if self.path == "item" else b"}")


def state_head(reading: Reading, body: TraceBody) -> tuple[dict[str, Any], int | None]:
    """State the devices, ranks and versions before the events; the head, empty if unread, and `state_gpus`' number."""
    head = _document(body.head)
    listed = head.get("deviceProperties")
    devices = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    gpus = ((item.get("name"), item.get("computeMajor"), item.get("computeMinor")) for item in devices)
    arch = state_gpus(reading, gpus, "deviceProperties")
    if devices:
        reading.counters["gpus"] = len(devices)
    sizes = {item["totalGlobalMem"] for item in devices if type(item.get("totalGlobalMem")) is int}
    if len(sizes) == 1:
        reading.counters["gpu.bytes_total"] = sizes.pop()
    _distributed(reading, head.get("distributedInfo"))
    runtime = head.get("cuda_runtime_version")
    if isinstance(runtime, int) and 1000 <= runtime < 1_000_000:
        text = f"{runtime // 1000}.{runtime % 1000 // 10}"
        reading.state("platform.cuda", text, str(runtime), record="cuda_runtime_version")
    if isinstance(version := head.get("PyTorch Version") or head.get("torch_version"), str):
        reading.state("wheels.torch", version[:100], record="head")
        reading.version = version[:100]
    return head, arch


def _distributed(reading: Reading, info: Any) -> None:
    if not isinstance(info, dict):
        return
    size, rank, nccl = info.get("world_size"), info.get("rank"), info.get("nccl_version")
    if isinstance(size, int) and 0 < size < 10_000_000:
        reading.state("hardware.chips", size, f"world_size {size}", record="distributedInfo")
    if isinstance(nccl, str) and nccl:
        reading.state("platform.nccl", nccl[:40], record="distributedInfo")
    if isinstance(rank, int):
        reading.remark("note", f"written by rank {rank}")


def _document(text: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(_TRAILING.sub(b"", text) + b"}")
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}
