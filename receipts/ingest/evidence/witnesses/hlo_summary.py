"""What the HLO of one file says of a step: its program, attention, types, and its exchange with the host."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.reading import TRANSFERS, Level, Reading
from receipts.ingest.evidence.witnesses.hlo_findings import HOST, RECOMPUTED, Findings
from receipts.ingest.evidence.witnesses.hlo_module import Module

_JITTED: Final = re.compile(r"p?jit_")
_TORCH_XLA: Final = re.compile(r"SyncTensorsGraph\b")


def program(reading: Reading, findings: Findings, step: Module, *, all_split: bool) -> None:
    """Who made the step's program, for what it was compiled, and what of it left the device."""
    if step.backend:
        reading.see("runtime", step.backend, "kernels", step.line)
    if (line := findings.lines.get(RECOMPUTED)) is not None:
        text = "the backward pass computes parts of the forward pass again"
        reading.state("numerics.recompute_applied", "checkpoint", text, line)
    if _TORCH_XLA.match(step.name) is not None:
        reading.see("framework", "torch-xla", "kernels", step.line)
    elif _JITTED.match(step.name) is not None:
        reading.see("framework", "jax", "kernels", step.line)
        if not findings.dots.count:
            return  # a dump holds many programs, and one that multiplies nothing is no step
        if step.complete:
            reading.see("posture", "jit", "kernels", step.line)
        if reading.complete:
            # The compiler lowers every operator of a jitted step or refuses it: what runs elsewhere is marked.
            reading.fallbacks = dict(findings.on_host)
    if step.keeps_all_split and all_split:
        reading.see("replicated", "", "kernels", step.line)


def attention(reading: Reading, findings: Findings, level: Level, line: int) -> None:
    """Say which attention the program calls, or that it multiplies scores unfused."""
    for kernel, count in findings.attention.items():
        reading.see("attention", kernel, level, findings.lines.get(kernel, line), count=count)
    if not findings.attention and findings.dots.unfused:
        reading.see("attention", "xla_unfused", level, line)


def types(reading: Reading, findings: Findings, level: Level, line: int) -> None:
    """Say in which types the program multiplies, and by which library."""
    if findings.dots.types:
        reading.see("compute_dtype", "+".join(findings.dots.types), level, line, count=findings.dots.count)
    elif findings.gemm:
        reading.see("compute_dtype", next(iter(findings.gemm)), level, line)
    narrow = next(iter(findings.gemm), None) or findings.dots.narrow()
    types = (narrow,) if narrow is not None else findings.dots.types
    if types:
        # What a step does besides in a wider type (attention, a router) does not make it another GEMM.
        library = max(findings.libraries, key=findings.libraries.__getitem__, default="xla")
        words = "+".join(f"{library}_{name}" for name in types)
        reading.see("gemm", words, level, findings.lines.get(types[0], line))


def host(reading: Reading, findings: Findings) -> None:
    """Transfers to and from the host inside one execution of the step."""
    transfers = sum(findings.counts[name] for name in (*HOST, "host_callbacks"))
    if transfers:
        reading.host_transfers, reading.steps_covered = transfers, 1
        for cause, count in findings.on_line.items():
            reading.blame(TRANSFERS, cause, count)
        what = f"{transfers} transfers to or from the host inside the program"
        reading.remark("note", what, findings.lines.get("host", 0))


def remarks(reading: Reading, findings: Findings, level: Level, line: int) -> None:
    """Say what the text does not prove."""
    if level == "intent":
        reading.remark("note", "text from before the compiler's passes: what is meant, not what runs", line)
    if not reading.complete:
        reading.remark("missing", "no whole module: it proves what it shows, and no absence", line)
    if findings.unnamed and not findings.attention:
        what = f"{findings.unnamed} Mosaic kernels whose name is no attention's"
        reading.remark("note", f"{what}: a custom call alone proves none", line)
