"""The experiment configuration of NeMo 1, as leaves: the trainer, the model, and the adapters under it."""

from __future__ import annotations

from receipts.ingest.evidence.frameworks.megatron import configuration as megatron_config
from receipts.ingest.evidence.frameworks.megatron.block import Block
from receipts.ingest.evidence.reading import Reading


def configure(reading: Reading, block: Block) -> None:
    """State what NeMo 1's experiment configuration gives: `trainer`, `model`, and the adapters under it."""
    found = block.leaf("model", "trainer")
    for name, (text, line) in block.found.items():
        if name.startswith("model.optim."):
            found.setdefault({"name": "optimizer"}.get(name.rsplit(".", 1)[-1], ""), (text, line))
    found.pop("", None)
    if "model.optim.name" in block.found:
        found["optimizer"] = block.found["model.optim.name"]
    precision = block.found.get("trainer.precision", ("", 0))
    for kind in ("bf16", "fp16"):
        if precision[0].strip("'\"").startswith(kind) or (kind == "fp16" and precision[0].startswith("16")):
            found.setdefault(kind, ("True", precision[1]))
    megatron_config.state(reading, found)
    _machine(reading, block)
    scheme = block.found.get("model.peft.peft_scheme")
    if scheme and scheme[0].strip("'\"") not in {"null", "None", "none"}:
        kind = scheme[0].strip("'\"")
        reading.state("numerics.adapters.kind", kind, f"peft_scheme: {kind}", scheme[1])
        rank = block.found.get(f"model.peft.{kind}_tuning.adapter_dim", ("", 0))
        if rank[0].isdigit() and len(rank[0]) < 9:
            reading.state("numerics.adapters.rank", int(rank[0]), f"adapter_dim: {rank[0]}", rank[1])


def _machine(reading: Reading, block: Block) -> None:
    each, hosts = (block.found.get(f"trainer.{name}", ("", 0)) for name in ("devices", "num_nodes"))
    if not (hosts[0].isdigit() and len(hosts[0]) < 8 and int(hosts[0])):
        return
    reading.state("hardware.hosts", int(hosts[0]), f"num_nodes: {hosts[0]}", hosts[1])
    if each[0].isdigit() and len(each[0]) < 8 and int(each[0]):
        chips = int(hosts[0]) * int(each[0])
        reading.state("hardware.chips", chips, f"devices: {each[0]}, num_nodes: {hosts[0]}", each[1])
