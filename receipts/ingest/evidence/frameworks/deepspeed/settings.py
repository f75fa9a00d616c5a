"""DeepSpeed's configuration as a file of its own: what `deepspeed.initialize` is given, or a script's JSON around it.

0.19.8 prints its configuration only at log level INFO, and logs warnings by default: then only such a file tells the
stage, the types and the batches.
"""

from __future__ import annotations

from typing import Any, ClassVar

from receipts.ingest.evidence.documents import json_document
from receipts.ingest.evidence.frameworks.deepspeed.configuration import DeepSpeedConfig
from receipts.ingest.evidence.reader import FileReader
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.stream import Source

_BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu")
_OTHERS = frozenset(
    {"zero_optimization", "bf16", "fp16", "optimizer", "gradient_accumulation_steps", "steps_per_print"}
)
_DEPTH = 3


class DeepSpeedSettings(FileReader):
    """Reads a JSON document with DeepSpeed's configuration in it."""

    source: ClassVar[str] = "deepspeed-config"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether it is a JSON object with a batch size by DeepSpeed's name, and another of its keys."""
        named = any(f'"{name}"'.encode() in head for name in _BATCH)
        return head.lstrip()[:1] == b"{" and named and any(f'"{name}"'.encode() in head for name in _OTHERS)

    def read(self, source: Source) -> list[Reading]:
        """What the configuration states; nothing where a log's lines merely begin like an object."""
        reading = Reading(self.source)
        document = json_document(source, reading, "a configuration")
        if (settings := _configuration(document)) is not None:
            config = DeepSpeedConfig(reading)
            config.settings(settings, 0)
            reading.records = config.records
        return [reading]


def _configuration(node: Any, depth: int = _DEPTH) -> dict[str, Any] | None:
    """The first object that holds a batch size by DeepSpeed's name, at most so deep."""
    if not isinstance(node, dict):
        return None
    if any(name in node for name in _BATCH):
        return node
    inner = (_configuration(value, depth - 1) for value in node.values()) if depth else ()
    return next((item for item in inner if item is not None), None)


READERS = (DeepSpeedSettings,)
