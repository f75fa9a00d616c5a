"""TensorBoard's event files: scalars by step, and configuration that frameworks write as text.

A file is a sequence of TFRecords (length, masked CRC-32C of the length, data, masked CRC-32C of the data), each an
`Event` (tensorflow/core/util/event.proto). A scalar stands in ``simple_value``, or as a tensor of one element in files
of newer writers; both are read without TensorFlow.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, ClassVar, Final

from receipts.ingest.evidence.frameworks.maxtext.configuration import Parameters
from receipts.ingest.evidence.frameworks.maxtext.configuration import state as state_maxtext
from receipts.ingest.evidence.frameworks.tensorboard.metrics import NamedMetrics
from receipts.ingest.evidence.frameworks.wandb.configuration import state as state_configuration
from receipts.ingest.evidence.protobuf.messages import declare, decode_error
from receipts.ingest.evidence.protobuf.stream import Bytes, masked_crc32c
from receipts.ingest.evidence.reader import FileReader
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.stream import Source

_HEADER: Final = struct.Struct("<QI")
_CRC: Final = struct.Struct("<I")
# Scalars are below a hundred bytes; what is above is an image, a graph or text, and its checksum costs too much.
_CHECKED: Final = 256
_MAX_RECORD: Final = 1 << 20
_TEXTS: Final = 5000
_FLOAT, _DOUBLE, _INT32, _INT64, _HALF, _BFLOAT = 1, 2, 3, 9, 19, 14


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
            _configuration(reading, texts)
        reading.records = max(reading.records, 1)
        if not len(reading.steps):
            reading.remark("missing", "the event file holds no scalar of a training step")
        return [reading]

    def _events(self, data: Bytes, reading: Reading, metrics: NamedMetrics, texts: dict[str, str]) -> None:
        event_class, error = _messages()["Event"], decode_error()
        while True:
            at = data.at
            head = data.take(_HEADER.size)
            if len(head) < _HEADER.size:
                if head or data.broken:
                    reading.remark(
                        "broken", data.broken or f"the last record is cut at byte {at}: the run still writes, or died"
                    )
                return
            length, crc = _HEADER.unpack(head)
            if masked_crc32c(head[:8]) != crc:
                reading.remark(
                    "broken", f"the record at byte {at} has a wrong length checksum; what follows is not read"
                )
                return
            if length > _MAX_RECORD:
                if not data.skip(length + _CRC.size):
                    reading.remark("broken", f"the record at byte {at} of {length:,} bytes is cut")
                    return
                continue
            body = data.take(length)
            tail = data.take(_CRC.size)
            if len(body) < length or len(tail) < _CRC.size:
                reading.remark(
                    "broken", data.broken or f"the last record is cut at byte {at}: the run still writes, or died"
                )
                return
            if length <= _CHECKED and _CRC.unpack(tail)[0] != masked_crc32c(body):
                reading.remark("broken", f"the record at byte {at} has a wrong checksum and is left out")
                continue
            try:
                event = event_class.FromString(body)
            except error:
                reading.remark("broken", f"the record at byte {at} is no event")
                continue
            for value in event.summary.value:
                self._value(int(event.step), value, metrics, texts)

    def _value(self, step: int, value: Any, metrics: NamedMetrics, texts: dict[str, str]) -> None:
        tag = value.tag[:200].decode("utf-8", "replace")
        if value.HasField("simple_value"):
            if 0 <= step < 1e15:
                metrics.add(step, tag, float(value.simple_value))
        elif value.HasField("tensor"):
            if value.metadata.plugin_data.plugin_name == b"text" or value.tensor.dtype == 7:
                if len(texts) < _TEXTS and value.tensor.string_val:
                    texts.setdefault(tag, value.tensor.string_val[0][:4096].decode("utf-8", "replace"))
                return
            figure = _scalar(value.tensor)
            if figure is not None and 0 <= step < 1e15:
                metrics.add(step, tag, figure)


def _scalar(tensor: Any) -> float | None:
    """The one element of a tensor, or None where it has several or is of no numbers."""
    for dimension in tensor.tensor_shape.dim:
        if dimension.size != 1:
            return None
    form = {_FLOAT: ("<f", tensor.float_val), _DOUBLE: ("<d", tensor.double_val), _INT32: ("<i", tensor.int_val),
            _INT64: ("<q", tensor.int64_val)}.get(tensor.dtype)  # fmt: skip
    if form is None:
        return _half(tensor)
    pattern, listed = form
    if len(listed) == 1:
        return float(listed[0])
    if len(tensor.tensor_content) == struct.calcsize(pattern):
        return float(struct.unpack(pattern, tensor.tensor_content)[0])
    return None


def _half(tensor: Any) -> float | None:
    """Halves: bits in an integer list. bfloat16 is the upper half of a float32."""
    if tensor.dtype not in (_HALF, _BFLOAT):
        return None
    bits = tensor.half_val[0] & 0xFFFF if len(tensor.half_val) == 1 else None
    if bits is None and len(tensor.tensor_content) == 2:
        bits = int.from_bytes(tensor.tensor_content, "little")
    if bits is None:
        return None
    if tensor.dtype == _HALF:
        return float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])
    return float(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])


def _configuration(reading: Reading, texts: dict[str, str]) -> None:
    """Arguments that were written as text, one tag each: Megatron-LM's and MaxText's."""
    names = {tag.removesuffix("/text_summary"): text for tag, text in texts.items()}
    if "base_emb_dim" in names:
        config = Parameters()
        for name, text in names.items():
            config.add(name, text, 0)
        devices = config.count("num_target_devices")
        state_maxtext(reading, config, devices, ())
    else:
        state_configuration(reading, dict(names))


@cache
def _messages() -> dict[str, Any]:
    return declare(
        "receipts.tensorboard",
        {
            "Event": [
                ("wall_time", 1, "double"),
                ("step", 2, "int64"),
                ("file_version", 3, "bytes"),
                ("summary", 5, "Summary"),
            ],
            "Summary": [("value", 1, "Value[]")],
            "Value": [
                ("tag", 1, "bytes"),
                ("simple_value", 2, "float"),
                ("tensor", 8, "Tensor"),
                ("metadata", 9, "Metadata"),
            ],
            "Metadata": [("plugin_data", 1, "PluginData")],
            "PluginData": [("plugin_name", 1, "bytes")],
            "Tensor": [
                ("dtype", 1, "int32"),
                ("tensor_shape", 2, "Shape"),
                ("tensor_content", 4, "bytes"),
                ("float_val", 5, "float[]"),
                ("double_val", 6, "double[]"),
                ("int_val", 7, "int32[]"),
                ("string_val", 8, "bytes[]"),
                ("int64_val", 10, "int64[]"),
                ("half_val", 13, "int32[]"),
            ],
            "Shape": [("dim", 2, "Dimension[]")],
            "Dimension": [("size", 1, "int64")],
        },
    )


READERS = (TensorBoard,)
