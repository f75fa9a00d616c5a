"""Bytes of a stream by count, and the checksums of record files. Nothing here holds more than one record."""

from __future__ import annotations

from functools import cache
from typing import Final

from receipts.ingest.evidence.stream import Source, Stream

_POLYNOMIAL: Final = 0x82F63B78
_MASK: Final = 0xA282EAD8
_PIECE: Final = 1 << 16


class Bytes:
    """Reads exact counts from a source. ``at`` counts the bytes taken."""

    __slots__ = ("_buffer", "_offset", "_stream", "at", "source")

    def __init__(self, source: Source, stream: Stream) -> None:
        self.source = source
        self._stream = stream
        self._buffer = b""
        self._offset = 0
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes, or fewer at the end."""
        buffer = bytearray()
        while len(buffer) < count and not self.ended():
            piece = self._buffer[self._offset : self._offset + count - len(buffer)]
            buffer += piece
            self._pass(len(piece))
        return bytes(buffer)

    def skip(self, count: int) -> bool:
        """Pass over bytes; False where the file ends before."""
        while count > 0 and not self.ended():
            step = min(count, len(self._buffer) - self._offset)
            self._pass(step)
            count -= step
        return count <= 0

    def ended(self) -> bool:
        """Whether nothing is left; reads on where something is."""
        if self._offset < len(self._buffer):
            return False
        self._buffer = self.source.block(self._stream, _PIECE)
        self._offset = 0
        self.source.bytes_read += len(self._buffer)
        return not self._buffer

    def _pass(self, count: int) -> None:
        self._offset += count
        self.at += count


@cache
def _table() -> tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


def masked_crc32c(data: bytes) -> int:
    """CRC-32C rotated and offset as TFRecord files keep it (tensorflow/core/lib/hash/crc32c.h)."""
    table = _table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF
