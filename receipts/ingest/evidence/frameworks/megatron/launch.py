"""What launchers and the start of a Megatron process print of the layout, and of the software below."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.arguments import DEGREES
from receipts.ingest.evidence.reading import Reading
from receipts.receipt.dtypes import dtype

# Core 0.10 to 0.12 prints no comma behind the `None` of the hierarchical sizes.
_SIZE: Final = re.compile(r"(?:None)?([a-z][a-z\- ]{2,60}?)[ -]sizes?: (\d{1,9})")
_DEGREES: Final = {
    "using world": "hardware.chips",
    "world": "hardware.chips",
    "data-parallel": "parallelism.data",
    "context-parallel": "parallelism.context",
    "tensor-model-parallel": "parallelism.tensor",
    "and model-parallel": "parallelism.tensor",
    "model-parallel": "parallelism.tensor",
    "pipeline-model-parallel": "parallelism.pipeline",
    "expert-model-parallel": "parallelism.expert",
    "expert-tensor-parallel": "parallelism.expert_tensor",
    "sequence-parallel": "features.ulysses_sequence_parallel",
}
_VERSION: Final = re.compile(
    r"> (PyTorch|Megatron-Core|Transformer Engine) version \.{2,60} (\d+[\w.+\-]{0,60})"
    r"|NCCL version (\d+\.[\w.+]{1,60})"
)
_WHEELS: Final = {"PyTorch": "torch", "Megatron-Core": "megatron-core", "Transformer Engine": "transformer-engine"}
_ELASTIC: Final = re.compile(r"(nproc_per_node|min_nodes|max_nodes) +: (\d{1,7})\b")
_PAIR: Final = re.compile(r"\b(tp|pp|cp|ep|etp|dp|vpp)=(\d{1,7})\b")
_VOCABULARY: Final = re.compile(r"padded vocab \(size: \d{1,12}\) with \d{1,12} dummy tokens \(new size: (\d{1,12})\)")
_MICRO: Final = re.compile(r"setting number of micro-?batches to constant (\d{1,9})")
_DTYPE: Final = re.compile(r"using torch\.(float16|bfloat16|float32) for parameters")


def world(reading: Reading, text: str, line: int) -> bool:
    """`using world size: W, data-parallel size: D, …`, in every form since v1.0; True where it was one."""
    at = text.find("using world size:")
    if at < 0:
        return False
    for label, count in _SIZE.findall(text, at):
        path = _DEGREES.get(label.strip())
        if path and int(count) > 0:
            reading.state(path, int(count), f"{label.strip()} size: {count}", line)
    return True


def degrees(reading: Reading, text: str, line: int) -> None:
    """A wrapper's summary of the layout: ``parallelism: dp=4 pp=1 ep=4``."""
    for name, count in _PAIR.findall(text):
        if int(count) > 0:
            reading.state(DEGREES[name], int(count), f"{name}={count}", line)


def versions(reading: Reading, text: str, line: int) -> None:
    """Versions that a process prints at its start; Megatron prints 0.0.0 where a package is not installed."""
    for name, version, nccl in _VERSION.findall(text):
        if nccl:
            reading.state("platform.nccl", nccl, f"NCCL version {nccl}", line)
        elif version != "0.0.0":
            reading.state(f"wheels.{_WHEELS[name]}", version, f"{name} version {version}", line)


def start(reading: Reading, text: str, line: int) -> None:
    """Lines of the set-up: padded vocabulary, micro-batches, type of the parameters."""
    if match := _VOCABULARY.search(text):
        reading.state("model.vocabulary", int(match[1]), match[0], line)
    if (match := _MICRO.search(text)) and int(match[1]) > 0:
        reading.state("batch.accumulation", int(match[1]), match[0], line)
    if match := _DTYPE.search(text):
        reading.state("numerics.parameter_dtype", dtype(match[1]), match[0], line)


class Elastic:
    """The layout that torchrun states at its start: processes a node, and nodes where their number is fixed."""

    __slots__ = ("_degrees", "_line")

    def __init__(self) -> None:
        self._degrees: dict[str, int] = {}
        self._line = 0

    def take(self, text: str, line: int) -> None:
        """Read one line of torchrun's launch configuration."""
        match = _ELASTIC.search(text)
        if match:
            self._degrees.setdefault(match[1], int(match[2]))
            self._line = self._line or line

    def state(self, reading: Reading) -> None:
        """State hosts and chips where nothing else did."""
        hosts = self._degrees.get("max_nodes")
        if hosts is None or hosts != self._degrees.get("min_nodes", hosts) or hosts < 1:
            return
        if "hardware.hosts" not in reading.stated:
            reading.state("hardware.hosts", hosts, f"max_nodes: {hosts}", self._line)
        each = self._degrees.get("nproc_per_node")
        if each and "hardware.chips" not in reading.stated:
            reading.state("hardware.chips", hosts * each, f"nproc_per_node: {each}, max_nodes: {hosts}", self._line)
