"""Records of a run's ``run-ID.wandb``: a LevelDB log of `wandb_internal.Record` messages.

The file begins with ``:W&B``, 0xBEE1 and a version; blocks of 32 KiB hold fragments (checksum, length, type), and a
record goes over several of them where it does not fit. The checksum is CRC-32 over type and data, without LevelDB's
mask.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from receipts.ingest.protobuf import Bytes, Message, Torn
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source

MAGIC: Final = b":W&B\xe1\xbe"
_HEADER: Final = struct.Struct("<IHB")
_START: Final = 7
_BLOCK: Final = 32768
_MAX_RECORD: Final = 4 << 20
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def records(source: Source, reading: Reading) -> Iterator[Message]:
    """The file's records in order. What is broken is reported in the reading's remarks and left out."""
    with source.open() as stream:
        data = Bytes(source, stream)
        data.take(_START)
        for at, body in _bodies(data, reading):
            try:
                yield Message(body)
            except Torn:
                reading.remark("broken", f"the record at byte {at} is no W&B record")


def _bodies(data: Bytes, reading: Reading) -> Iterator[tuple[int, bytes]]:
    part = bytearray()
    begun: int | None = None
    while True:
        left = _BLOCK - data.at % _BLOCK
        if left < _HEADER.size:
            # Too little for another fragment: the writer leaves it empty.
            if len(data.take(left)) < left:
                return
            continue
        at = data.at
        head = data.take(_HEADER.size)
        if len(head) < _HEADER.size:
            if head or begun is not None:
                reading.remark("broken", f"the last record is cut at byte {at}: the run still writes, or died")
            return
        crc, length, kind = _HEADER.unpack(head)
        if kind == 0 and length == 0:
            # Room that was made and never filled.
            data.take(_BLOCK - data.at % _BLOCK if data.at % _BLOCK else 0)
            continue
        if length > left - _HEADER.size or not _FULL <= kind <= _LAST:
            reading.remark("broken", f"no record begins at byte {at}; reading goes on with the next block")
            begun = None
            data.skip(left - _HEADER.size)
            continue
        body = data.take(length)
        if len(body) < length:
            reading.remark("broken", f"the last record is cut at byte {at}: the run still writes, or died")
            return
        if zlib.crc32(body, zlib.crc32(bytes((kind,)))) != crc:
            reading.remark("broken", f"the record at byte {at} has a wrong checksum and is left out")
            begun = None
            continue
        if kind == _FULL:
            yield at, body
        elif kind == _FIRST:
            part, begun = bytearray(body), at
        elif begun is not None:
            part += body
            if len(part) > _MAX_RECORD:
                reading.remark("note", f"the record at byte {begun} is larger than {_MAX_RECORD >> 20} MiB; left out")
                begun = None
            elif kind == _LAST:
                yield begun, bytes(part)
                begun = None
