"""How much one caller may ask of the server."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Final

from receipts.receipt.load import MAX_BYTES
from receipts.store.evidence import MOST_BYTES

THREADS: Final = 8  # requests that work at once; the others wait
_WBITS: Final = 31  # gzip alone
PIECE: Final = 1 << 20  # bytes of a body that are unpacked at once


@dataclass(frozen=True)
class Limits:
    """``body`` and ``evidence`` (one file) in bytes, unpacked.

    ``rate`` and ``failures`` are written as the library `limits` writes them.
    """

    body: int = MAX_BYTES
    toml: int = 1 << 18  # its parser is slow
    evidence: int = MOST_BYTES
    rate: str = "1000/second"
    failures: str = "20/minute"
    comparisons: int = 4  # at once
    hops: int = 500  # that a bridge may judge
    seconds: float = 60.0
    swept: int = 12  # runs of one sweep
    shapes: int = 12  # tables of an envelope


class TooLarge(Exception):
    """A body is longer than it may be, as it came or unpacked."""


class BadEncoding(Exception):
    """A body is not packed as it says."""


class Busy(Exception):
    """Too much is asked at once; ``seconds`` until it may be asked again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class TooSlow(Exception):
    """A question took longer than ``seconds``, and was ended."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


async def unpacked(chunks: AsyncIterator[bytes], encoding: str, most: int) -> AsyncIterator[bytes]:
    """A request's body in pieces, unpacked if it is gzip, never more than ``most`` bytes of it.

    Raises TooLarge and BadEncoding.
    """
    if encoding not in ("", "identity", "gzip"):
        raise BadEncoding(f"Content-Encoding {encoding!r}: send it as it is, or as gzip")
    unpack = zlib.decompressobj(_WBITS) if encoding == "gzip" else None
    held = 0
    async for chunk in chunks:
        for part in _pieces(unpack, chunk) if unpack is not None else (chunk,):
            held += len(part)
            if held > most:
                raise TooLarge
            yield part
    if unpack is not None and not unpack.eof:
        raise BadEncoding("the gzip body is cut off")


def _pieces(unpack: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    """What a chunk unpacks to, a thousand times as much where it was made for that, in pieces."""
    part = b""
    while chunk or len(part) == PIECE:
        try:
            part = unpack.decompress(chunk, PIECE)
        except zlib.error as error:
            raise BadEncoding(f"the body is no gzip: {error}") from None
        if unpack.unused_data:  # held in memory, and no part of what is counted
            raise BadEncoding("more follows the end of the gzip body")
        chunk = unpack.unconsumed_tail
        yield part


class ComparisonSlots:
    """Lets so many comparisons run at once; the next one is refused, since a queue of them helps nobody."""

    def __init__(self, most: int) -> None:
        self._free = BoundedSemaphore(most)
        self.running = 0

    def __enter__(self) -> None:
        if not self._free.acquire(blocking=False):
            raise Busy(2)
        self.running += 1

    def __exit__(self, *_: object) -> None:
        self.running -= 1
        self._free.release()
