"""TensorBoard's event files: scalars by step, and configuration that frameworks write as text.

A file is a sequence of TFRecords (length, masked CRC-32C of the length, data, masked CRC-32C of the data), each an
`Event`. A scalar is in ``simple_value``, or as a tensor of one element in files of newer writers; both are read
without TensorFlow. Fields by tensorflow/core/util/event.proto and framework/summary.proto, tensor.proto: Event.step=2,
summary=5; Summary.value=1; Value.tag=1, simple_value=2, tensor=8, metadata=9; Metadata.plugin_data=1, of which the
plugin_name=1; Tensor.dtype=1, tensor_shape=2, tensor_content=4, float_val=5, double_val=6, int_val=7, string_val=8,
int64_val=10, half_val=13; Shape.dim=2; Dimension.size=1.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import ClassVar, Final

from receipts.ingest.protobuf import Bytes, Message, Torn, masked_crc32c
from receipts.ingest.reader import FileReader
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source
from receipts.ingest.tracker import NamedMetrics
from receipts.ingest.tracker import state_settings as state_configuration

_HEADER: Final = struct.Struct("<QI")
_CRC: Final = struct.Struct("<I")
# Scalars are below a hundred bytes; what is above is an image, a graph or text, and its checksum costs too much.
_CHECKED: Final = 256
_MAX_RECORD: Final = 1 << 20
_TEXTS: Final = 5000
_STRING, _HALF, _BFLOAT = 7, 19, 14
# By type: the field that lists its numbers, and how one of them lies in the file.
_REALS: Final = {1: (5, "<f"), 2: (6, "<d")}
_WHOLES: Final = {3: (7, "<i"), 9: (10, "<q")}


class TensorBoard(FileReader):
    """Reads one event file."""

    source: ClassVar[str] = "tensorboard"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether the first record is sound and says which version of events follows."""
        if len(head) < _HEADER.size:
            return False
        length, crc = _HEADER.unpack_from(head)
        if length > 4096 or masked_crc32c(head[:8]) != crc:
            return False
        return b"brain.Event:" in head[_HEADER.size : _HEADER.size + length]

    def read(self, source: Source) -> list[Reading]:
        """One reading; a file of no scalars has none, and says so."""
        reading = Reading(self.source)
        metrics = NamedMetrics(reading)
        texts: dict[str, str] = {}
        with source.open() as stream:
            self._events(Bytes(source, stream), reading, metrics, texts)
        metrics.finish()
        if texts:
            # Arguments that were written as text, one tag each: Megatron-LM's and MaxText's.
            state_configuration(reading, {tag.removesuffix("/text_summary"): text for tag, text in texts.items()})
        reading.records = max(reading.records, 1)
        if not len(reading.steps):
            reading.remark("missing", "the event file holds no scalar of a training step")
        return [reading]

    def _events(self, data: Bytes, reading: Reading, metrics: NamedMetrics, texts: dict[str, str]) -> None:
        for at, body in _bodies(data, reading):
            try:
                event = Message(body)
                for summary in event.inner(5):
                    for value in summary.inner(1):
                        self._value(event.whole(2) or 0, value, metrics, texts)
            except Torn:
                reading.remark("broken", f"the record at byte {at} is no event")

    def _value(self, step: int, value: Message, metrics: NamedMetrics, texts: dict[str, str]) -> None:
        tag, tensor, figure = value.text(1), value.only(8), value.real(2, "<f")
        if figure is None and tensor is not None:
            plugins = [plugin.text(1) for metadata in value.inner(9) for plugin in metadata.inner(1)]
            if "text" in plugins or tensor.whole(1) == _STRING:
                if len(texts) < _TEXTS and (lines := tensor.pieces(8)):
                    texts.setdefault(tag, lines[0][:4096].decode("utf-8", "replace"))
                return
            figure = _scalar(tensor)
        if figure is not None and 0 <= step < 1e15:
            metrics.add(step, tag, figure)


def _bodies(data: Bytes, reading: Reading) -> Iterator[tuple[int, bytes]]:
    """The data of each record, and where it begins; of none that is too large for scalars."""
    while head := data.take(_HEADER.size):
        at = data.at - len(head)
        length, crc = _HEADER.unpack(head.ljust(_HEADER.size, b"\0"))
        if len(head) == _HEADER.size and masked_crc32c(head[:8]) != crc:
            reading.remark("broken", f"the record at byte {at} has a wrong length checksum; what follows is not read")
            return
        body = data.take(length) if length <= _MAX_RECORD else b""
        data.skip(length - len(body))
        tail = data.take(_CRC.size)
        if len(tail) < _CRC.size:
            if not data.source.broken:
                reading.remark("broken", f"the last record is cut at byte {at}: the run still writes, or died")
            return
        if len(body) <= _CHECKED and body and _CRC.unpack(tail)[0] != masked_crc32c(body):
            reading.remark("broken", f"the record at byte {at} has a wrong checksum and is left out")
        elif body:
            yield at, body


def _scalar(tensor: Message) -> float | None:
    """The one element of a tensor, or None where it has several or is of no numbers."""
    if any((size.whole(1) or 0) != 1 for shape in tensor.inner(2) for size in shape.inner(2)):
        return None
    kind = tensor.whole(1) or 0
    if kind in (_HALF, _BFLOAT):
        return _half(tensor, kind)
    listed, form = (_REALS | _WHOLES).get(kind, (0, ""))
    if kind in _WHOLES and len(values := tensor.listed(listed)) == 1:
        return float(values[0])
    own = tensor.real(listed, form) if kind in _REALS else None
    return own if own is not None or not form else tensor.real(4, form)


def _half(tensor: Message, kind: int) -> float | None:
    """Halves: bits in an integer list. bfloat16 is the upper half of a float32."""
    listed, content = tensor.listed(13), tensor.pieces(4)
    bits = listed[0] & 0xFFFF if len(listed) == 1 else None
    if bits is None and content and len(content[-1]) == 2:
        bits = int.from_bytes(content[-1], "little")
    if bits is None:
        return None
    if kind == _HALF:
        return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])
    return float(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])


READERS = (TensorBoard,)
