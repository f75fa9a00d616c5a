"""Protocol-buffer messages and record files, without the programs that make them.

`Message` is one message in memory, its fields by their numbers. `Wire` reads a message field by field from a stream,
without descriptors and in bounded memory. `Bytes` takes bytes of a stream by count, and `masked_crc32c` is the checksum
of record files. Nothing here holds more than one record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from typing import Final

from receipts.ingest.source import Source, Stream

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_SIZES: Final = {FIXED64: 8, FIXED32: 4}
_WIDTH: Final = 0xFFFFFFFFFFFFFFFF


class Torn(Exception):
    """The message ends in the middle, or is none."""


class Message:
    """A message's fields. One that is there in another form than is asked for is not there. Raises Torn for no message.

    Numbers of fixed width are bytes as they lie in the file.
    """

    def __init__(self, body: bytes) -> None:
        self._fields: dict[int, list[int | bytes]] = {}
        at = 0
        while at < len(body):
            tag, at = _varint(body, at)
            kind, value = tag & 7, 0
            if kind == VARINT:
                value, at = _varint(body, at)
                self._fields.setdefault(tag >> 3, []).append(value)
                continue
            size, at = _varint(body, at) if kind == BYTES else (_SIZES.get(kind, len(body)), at)
            if tag >> 3 == 0 or at + size > len(body):
                raise Torn(f"field {tag >> 3} of wire type {kind}")
            self._fields.setdefault(tag >> 3, []).append(body[at : at + size])
            at += size

    def whole(self, number: int) -> int | None:
        """A whole number with its sign; None where it is not there."""
        values = [value for value in self._fields.get(number, ()) if isinstance(value, int)]
        return None if not values else values[-1] - (1 << 64) if values[-1] >> 63 else values[-1]

    def pieces(self, number: int) -> list[bytes]:
        """Every value of a field of bytes, texts, messages or numbers of fixed width."""
        return [value for value in self._fields.get(number, ()) if isinstance(value, bytes)]

    def text(self, number: int, keep: int = 200) -> str:
        """A text's first bytes; empty where it is not there."""
        pieces = self.pieces(number)
        return pieces[-1][:keep].decode("utf-8", "replace") if pieces else ""

    def inner(self, number: int) -> list[Message]:
        """Every message in a field."""
        messages: list[Message] = []
        for piece in self.pieces(number):
            with suppress(Torn):
                messages.append(Message(piece))
        return messages

    def only(self, number: int) -> Message | None:
        """The message in a field, or None."""
        return next(reversed(self.inner(number)), None)

    def real(self, number: int, form: str) -> float | None:
        """The one number of fixed width in a field, packed or not; None where there are several or none."""
        data = b"".join(self.pieces(number))
        return float(struct.unpack(form, data)[0]) if data and len(data) == struct.calcsize(form) else None

    def listed(self, number: int) -> list[int]:
        """Whole numbers of a repeated field, packed or not."""
        values: list[int] = []
        for value in self._fields.get(number, ()):
            at = 0
            while isinstance(value, bytes) and at < len(value):
                one, at = _varint(value, at)
                values.append(one)
            values += [value] if isinstance(value, int) else []
        return [value - (1 << 64) if value >> 63 else value for value in values]


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """An integer, unsigned, and where it ends."""
    value = shift = 0
    while at < len(body) and shift < 70:
        byte, at = body[at], at + 1
        if byte < 0x80:
            return (value | byte << shift) & _WIDTH, at
        value |= (byte & 0x7F) << shift
        shift += 7
    raise Torn(f"no integer at byte {at:,} of a message")


_POLYNOMIAL: Final = 0x82F63B78
_MASK: Final = 0xA282EAD8
_READ_AT_ONCE: Final = 1 << 16


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
        self._buffer = self.source.block(self._stream, _READ_AT_ONCE)
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


MAX_FIELD: Final = (1 << 29) - 1
MAX_MESSAGE: Final = 1 << 22


class Wire(Bytes):
    """Fields of nested messages; ``at`` bounds them."""

    __slots__ = ()

    def fields(self, stop: int | None) -> Iterator[tuple[int, int, int]]:
        """Number, wire type and value or length of each field up to ``stop`` (None: the file's end).

        The caller takes, skips or descends into a length-delimited field before it asks for the next one.
        Raises Torn where the bytes are no message.
        """
        while stop is None or self.at < stop:
            if stop is None and self.ended():
                return
            tag = self.varint()
            number, kind = tag >> 3, tag & 7
            if not 0 < number <= MAX_FIELD:
                raise Torn(f"field {number} at byte {self.at:,}")
            if kind == VARINT:
                yield number, kind, self.varint()
            elif kind == BYTES:
                length = self.varint()
                if stop is not None and self.at + length > stop:
                    raise Torn(f"a field of {length:,} bytes at byte {self.at:,} is longer than its message")
                yield number, kind, length
            elif kind in (FIXED64, FIXED32):
                self.leap(8 if kind == FIXED64 else 4)
            else:
                raise Torn(f"wire type {kind} at byte {self.at:,}")

    def varint(self) -> int:
        """The next integer, unsigned."""
        value = shift = 0
        while shift < 70:
            if self._offset >= len(self._buffer) and self.ended():
                raise self._torn()
            byte = self._buffer[self._offset]
            self._offset += 1
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFFFFFFFFFF
            shift += 7
        raise Torn(f"no integer at byte {self.at:,}")

    def leap(self, count: int) -> None:
        """Pass over bytes of a message. Raises Torn where the file ends before."""
        if not self.skip(count):
            raise self._torn()

    def text(self, length: int, keep: int) -> str:
        """A string field's first ``keep`` bytes; the rest is passed over."""
        wanted = min(length, keep)
        raw = self.take(wanted)
        if len(raw) < wanted:
            raise self._torn()
        self.leap(length - wanted)
        return raw.decode("utf-8", "replace")

    def message(self, length: int) -> Message:
        """A field that is a message; one longer than any that is kept whole is passed over, and empty."""
        body = self.take(length) if length <= MAX_MESSAGE else b""
        if len(body) < length:
            self.leap(length - len(body))
        return Message(body)

    def _torn(self) -> Torn:
        return Torn(f"the file ends at byte {self.at:,}, inside a message")
