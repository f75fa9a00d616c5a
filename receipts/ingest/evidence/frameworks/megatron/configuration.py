"""Megatron's arguments as leaves of the receipt, by the rules that its recorder has: `receipts.emit.megatron_rules`."""

from __future__ import annotations

from receipts.emit.megatron_rules import RULES
from receipts.ingest.evidence.arguments import Arguments, Leaves
from receipts.ingest.evidence.reading import Reading


def state(reading: Reading, values: dict[str, tuple[str, int]], record: str = "") -> None:
    """State every leaf that the arguments give; ``values`` maps a name to its text and its line."""
    reading.resolve(values)
    leaves = Leaves(reading, Arguments(values), record)
    for rule in RULES:
        rule(leaves.put, leaves.arguments)
