"""What the modules of one file of HLO hold, added up."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from receipts.ingest.evidence.witnesses.compile_order import place
from receipts.ingest.evidence.witnesses.hlo_dots import Dots

MAX_TARGETS: Final = 500
COLLECTIVES: Final = frozenset(
    f"{name}{suffix}"
    for name in (
        *("all-gather", "all-reduce", "reduce-scatter", "all-to-all", "ragged-all-to-all"),
        *("collective-permute", "collective-broadcast"),
    )
    for suffix in ("", "-start")
)
HOST: Final = frozenset({"send", "recv", "outfeed", "infeed"})
# The scope that `jax.checkpoint` gives what the backward pass computes again.
RECOMPUTED: Final = "/rematted_computation/"
_SOURCE: Final = re.compile(r'source_file="([^"]{1,400})" source_line=(\d+)')
OP_NAME: Final = re.compile(r'op_name="((?:[^"\\]|\\.){1,2000})"')


@dataclass(slots=True)
class Findings:
    """What the modules of one file hold, added up."""

    dots: Dots = field(default_factory=Dots)
    counts: Counter[str] = field(default_factory=Counter)
    attention: Counter[str] = field(default_factory=Counter)
    gemm: Counter[str] = field(default_factory=Counter)
    libraries: Counter[str] = field(default_factory=Counter)
    unnamed: int = 0
    on_host: Counter[str] = field(default_factory=Counter)
    lines: dict[str, int] = field(default_factory=dict)
    on_line: Counter[str] = field(default_factory=Counter)

    def at(self, what: str, line: int) -> None:
        """Remember where something was first seen."""
        if len(self.lines) < MAX_TARGETS:
            self.lines.setdefault(what, line)

    def recomputes(self, text: str, line: int) -> None:
        """Remember where the backward pass first computes a part of the forward pass again."""
        if RECOMPUTED in text:
            self.at(RECOMPUTED, line)

    def reads_host(self, text: str, line: int) -> None:
        """Remember an exchange with the host by its operator and the program's line."""
        self.at("host", line)
        if (op := OP_NAME.search(text)) is not None and len(self.on_line) < MAX_TARGETS:
            source = _SOURCE.search(text)
            where = f" ({place(source[1], source[2])})" if source else ""
            self.on_line[f"{op[1].rpartition('/')[2][:100]} inside the program{where}"] += 1
