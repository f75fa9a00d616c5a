"""Bytes of a stream by count, and the checksums of record files. Nothing here holds more than one record."""

from __future__ import annotations

from functools import cache
from typing import Final

from receipts.ingest.evidence.stream import BROKEN, Source, Stream

_POLYNOMIAL: Final = 0x82F63B78
_MASK: Final = 0xA282EAD8
_PIECE: Final = 1 << 16


class Bytes:
    """Reads exact counts from a source. ``broken`` says why it ended where that was not its end."""

    def __init__(self, source: Source, stream: Stream) -> None:
        self._source = source
        self._stream = stream
        self.at = 0
        self.broken = ""

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes, or fewer at the end."""
        found = bytearray()
        try:
            while len(found) < count and (piece := self._stream.read(min(count - len(found), _PIECE))):
                found += piece
        except BROKEN as error:
            self.broken = f"breaks off after {self.at + len(found):,} bytes: {error}"
        self.at += len(found)
        self._source.bytes_read += len(found)
        return bytes(found)

    def skip(self, count: int) -> bool:
        """Pass over bytes; False where the file ends before."""
        while count > 0:
            passed = len(self.take(min(count, _PIECE)))
            if not passed:
                return False
            count -= passed
        return True


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
