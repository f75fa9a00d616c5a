"""What the modules of one file of HLO hold, added up, and what that says of a step."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from receipts.ingest.evidence.witnesses.compile_order import place
from receipts.ingest.evidence.witnesses.hlo_dots import Dots, first_narrow
from receipts.ingest.reading import TRANSFERS, Level, Reading, Tally

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
_RECOMPUTED: Final = "/rematted_computation/"
_SOURCE: Final = re.compile(r'source_file="([^"]{1,400})" source_line=(\d+)')
OP_NAME: Final = re.compile(r'op_name="((?:[^"\\]|\\.){1,2000})"')


def _names() -> Tally[str]:
    return Tally(500)


@dataclass(slots=True)
class Findings:
    """Calls and operations by name. ``unnamed`` are Mosaic kernels that prove nothing, ``reads`` exchanges with the
    host by the program's line, and ``recomputed`` is where the backward pass first computes a part of the forward pass.
    """

    dots: Dots = field(default_factory=Dots)
    counts: Tally[str] = field(default_factory=_names)
    attention: Tally[str] = field(default_factory=_names)
    gemm: Tally[str] = field(default_factory=_names)
    libraries: Tally[str] = field(default_factory=_names)
    on_host: Tally[str] = field(default_factory=_names)
    reads: Tally[str] = field(default_factory=_names)
    unnamed: int = 0
    host: int = 0
    recomputed: int = 0

    def instruction(self, text: str, line: int) -> None:
        """Take what any instruction may show."""
        if not self.recomputed and _RECOMPUTED in text:
            self.recomputed = line

    def read_by_host(self, text: str, line: int) -> None:
        """Take an exchange with the host."""
        self.host = self.host or line
        if (op := OP_NAME.search(text)) is not None:
            source = _SOURCE.search(text)
            where = f" ({place(source[1], source[2])})" if source else ""
            self.reads.add(f"{op[1].rpartition('/')[2][:100]} inside the program{where}", line)

    def write(self, reading: Reading, level: Level, line: int) -> None:
        """Say which attention and multiplications the program has, and what of it is on the host."""
        for kernel, count in self.attention.items():
            reading.see("attention", kernel, level, self.attention.first[kernel], count=count)
        if not self.attention and self.dots.unfused:
            reading.see("attention", "xla_unfused", level, line)
        if self.dots.types:
            reading.see("compute_dtype", "+".join(self.dots.types), level, line, count=self.dots.count)
        elif self.gemm:
            reading.see("compute_dtype", next(iter(self.gemm)), level, line)
        narrow = next(iter(self.gemm), None) or first_narrow(self.dots.types)
        types = (narrow,) if narrow is not None else self.dots.types
        if types:
            # What a step does besides in a wider type (attention, a router) does not make it another GEMM.
            library = max(self.libraries, key=self.libraries.__getitem__, default="xla")
            words = "+".join(f"{library}_{name}" for name in types)
            reading.see("gemm", words, level, self.gemm.first.get(types[0], line))
        if transfers := sum(self.counts[name] for name in (*HOST, "host_callbacks")):
            reading.host_transfers, reading.steps_covered = transfers, 1
            for cause, count in self.reads.items():
                reading.blame(TRANSFERS, cause, count)
            reading.remark("note", f"{transfers} transfers to or from the host inside the program", self.host)
