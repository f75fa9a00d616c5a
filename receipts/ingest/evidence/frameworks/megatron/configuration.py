"""Megatron's arguments as leaves of the receipt, by the rules that its recorder has: `receipts.emit.megatron_rules`."""

from __future__ import annotations

from receipts.emit.megatron_rules import RULES
from receipts.ingest.arguments import Arguments, Leaves
from receipts.ingest.evidence.frameworks.megatron.block import NestedDump
from receipts.ingest.reading import Reading


def state(reading: Reading, values: dict[str, tuple[str, int]], record: str = "") -> None:
    """State every leaf that the arguments give; ``values`` maps a name to its text and its line."""
    reading.resolve(values)
    leaves = Leaves(reading, Arguments(values), record)
    for rule in RULES:
        rule(leaves.put, leaves.arguments)


def configure_nemo(reading: Reading, block: NestedDump) -> None:
    """State what NeMo 1's experiment configuration gives: `trainer`, `model`, and the adapters under it."""
    reading.resolve(block.values)
    section = block.leaf("model", "trainer")
    leaves = Leaves(reading, Arguments(block.values))
    arguments = leaves.arguments
    if "model.optim.name" in block.values:
        section["optimizer"] = block.values["model.optim.name"]
    precision = arguments.text("trainer.precision") or ""
    for kind in ("bf16", "fp16"):
        if precision.startswith(kind) or (kind == "fp16" and precision.startswith("16")):
            section.setdefault(kind, ("True", block.values["trainer.precision"][1]))
    state(reading, section)
    if hosts := leaves.whole("hardware.hosts", "trainer.num_nodes"):
        each = arguments.integer("trainer.devices") or 0
        leaves.put("hardware.chips", hosts * each if each > 0 else None, "trainer.devices")
    if scheme := arguments.name("model.peft.peft_scheme"):
        kind = arguments.text(scheme) or ""
        leaves.put("numerics.adapters.kind", kind, scheme)
        leaves.whole("numerics.adapters.rank", f"model.peft.{kind}_tuning.adapter_dim", least=0)
