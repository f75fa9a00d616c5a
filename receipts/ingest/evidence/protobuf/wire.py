"""Protocol-buffer messages read field by field from a stream, without descriptors, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from receipts.ingest.evidence.protobuf.messages import BYTES, FIXED32, FIXED64, VARINT, Message, Torn
from receipts.ingest.evidence.protobuf.stream import Bytes

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
