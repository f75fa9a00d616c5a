"""Configuration as experiment trackers keep it: names of arguments, flat or nested, and whose they are.

Megatron-LM's arguments, torchtitan's job configuration, transformers' training arguments (with the model's own beside
them), and what the readers' ``CONFIGURATIONS`` know. A name that several frameworks use means something only beside one
that is a framework's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from receipts.ingest.arguments import Arguments, Leaves
from receipts.ingest.evidence.frameworks.megatron.configuration import state as state_megatron
from receipts.ingest.literals import flattened
from receipts.ingest.reader import configurations
from receipts.ingest.reading import Reading
from receipts.ingest.vocabulary import table, tables

# Whose names a configuration may have, where they have a table; the first with a name of its own counts.
_FRAMEWORKS: Final = ("megatron", "torchtitan", "hf_trainer")


def state(reading: Reading, config: Mapping[str, Any], record: str = "") -> bool:
    """State the leaves that a configuration gives; False where its names are no framework's that is known."""
    every = flattened(dict(config))
    reading.resolve(every)
    flat = {name: value for name, value in every.items() if isinstance(value, str | int | float | bool)}
    if any(take(reading, flat) for take in configurations()):
        return True
    present = filter(tables().__contains__, _FRAMEWORKS)
    known = next((name for name in present if not flat.keys().isdisjoint(table(name)["signs"])), None)
    if known is None:
        return False
    settings = {name: (str(value), 0) for name, value in flat.items()}
    if known == "megatron":
        state_megatron(reading, settings, record)
        return True
    leaves = Leaves(reading, Arguments(settings), record)
    for path, entry in table(known)["arguments"].items():
        leaves.read(path, entry)
    for name in ("bf16", "fp16"):
        if leaves.arguments.flag(name):
            leaves.put("numerics.compute_dtype", name, name)
            break
    return True
