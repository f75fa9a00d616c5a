"""One protobuf message in memory, its fields by their numbers: for record files whose makers are not installed."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Final

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
