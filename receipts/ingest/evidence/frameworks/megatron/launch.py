"""What launchers and the start of a Megatron process print of the layout, and of the software below."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.arguments import DEGREES
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.statements import Statements

STATEMENTS: Final = Statements("megatron")
_ELASTIC: Final = re.compile(r"(nproc_per_node|min_nodes|max_nodes) +: (\d{1,7})\b")
_PAIR: Final = re.compile(r"\b(tp|pp|cp|ep|etp|dp|vpp)=(\d{1,7})\b")


def degrees(reading: Reading, text: str, line: int) -> None:
    """A wrapper's summary of the layout: ``parallelism: dp=4 pp=1 ep=4``."""
    for name, count in _PAIR.findall(text):
        if int(count) > 0:
            reading.state(DEGREES[name], int(count), f"{name}={count}", line)


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
