"""One HLO module as text, instruction by instruction: what it calls, multiplies, exchanges and how it is split."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import Final

from receipts.ingest.evidence.witnesses import hlo_kernels
from receipts.ingest.evidence.witnesses.hlo_dots import dtype, first_narrow, shape
from receipts.ingest.evidence.witnesses.hlo_findings import COLLECTIVES, HOST, OP_NAME, Findings
from receipts.ingest.evidence.witnesses.hlo_sharding import Sharding

MAX_TYPES: Final = 500_000
# The CPU's compiler cuts a long reduction into windows first.
REDUCTIONS: Final = frozenset({"reduce", "reduce-window"})
HELPERS: Final = frozenset({"ConcatBitcast", "AssumeGatherIndicesInBound", "Sharding", "SPMDFullToShardShape"})
_INTERESTING: Final = (
    COLLECTIVES | HOST | {"dot", "convolution", "custom-call", "fusion", "exponential", *REDUCTIONS, "parameter"}
)
_TUPLE: Final = re.compile(r"\) ([a-z][a-z0-9\-]*)\(")
_TARGET: Final = re.compile(r'custom_call_target="([^"]{1,200})"')
_ONE: Final = r"\s*(?:/\*[^*]{0,40}\*/)?(?:([a-z]\w*\[[^\]]*\])(?:\{[^}]*\})?\s+)?%?([\w.\-]+)"
_OPERAND: Final = re.compile(_ONE)
_OPERANDS: Final = re.compile(f"{_ONE},{_ONE}")
_HEADER: Final = re.compile(r"HloModule ([\w.\-<>$]{1,300})")
_COUNT: Final = re.compile(r"(num_partitions|replica_count)=(\d{1,9})")
# Layouts in tiles are the TPU compiler's alone; these are settings that only the CPU's leaves on an operation.
_TPU_TILES: Final = re.compile(r"\{[\d,]{0,40}:T\(\d")
_CPU_MARKS: Final = ("outer_dimension_partitions", '"kind":"__ynn_fusion"', '"kind":"__onednn', "__onednn$")
_ON_HOST: Final = '_xla_compute_type="host"'
# Numbers that the compiler hands out, which differ from one compilation to the next.
_IDS: Final = re.compile(r"\.\d+")
_CHANNELS: Final = re.compile(r"channel_id=\d+")
_TAIL: Final = re.compile(r", (?:metadata|frontend_attributes|backend_config)=[^\n]*")
MAX_HELD: Final = 1 << 18


@dataclass(slots=True)
class Module:
    """A module, or instructions without their module's head (``name`` is empty)."""

    findings: Findings
    name: str = ""
    line: int = 0
    scheduled: bool = False
    chips: int = 1
    instructions: int = 0
    rewritten: bool = False
    in_entry: bool = False
    complete: bool = False
    backend: str = ""
    sharding: Sharding = field(default_factory=Sharding)
    types: dict[str, str] = field(default_factory=dict)
    hash: hashlib._Hash = field(default_factory=hashlib.sha256)
    constants: hashlib._Hash = field(default_factory=hashlib.sha256)
    _parts: list[str] = field(default_factory=list)
    _constants: list[str] = field(default_factory=list)
    _held: int = 0

    def head(self, text: str) -> None:
        """The line ``HloModule NAME, is_scheduled=true, …, num_partitions=4``."""
        match = _HEADER.search(text)
        self.name = match[1] if match else "?"
        self.scheduled = "is_scheduled=true" in text
        if _TPU_TILES.search(text) is not None:
            self.backend = "pjrt-tpu"
        for _, count in _COUNT.findall(text):
            self.chips *= max(int(count), 1)

    @property
    def optimised(self) -> bool:
        """Whether the compiler's passes have run: before them there is no schedule, fusion or library's product."""
        return self.scheduled or self.rewritten or not self.name

    @property
    def digest(self) -> str:
        """Digest of the program without names, ids, places in source and the backend's own tuning."""
        self._flush()
        return hashlib.sha256(self.hash.digest() + self.constants.digest()).hexdigest()

    def instruction(self, text: str, at: int, line: int) -> None:
        """One instruction; ``at`` is where ``" = "`` is in its text."""
        if text.startswith("  %"):
            name = text[3:at]
        else:
            # What a logger put before it, and ROOT, are words before the name.
            name = (text[:at].split() or [""])[-1].lstrip("%")
        start = at + 3
        if text.startswith("(", start):
            match = _TUPLE.search(text, start)
            if match is None:
                return
            type_, opcode, operands = text[start : match.start() + 1], match[1], match.end()
        else:
            space = text.find(" ", start)
            operands = text.find("(", space) + 1
            if space < 0 or operands == 0:
                return
            type_, opcode = text[start:space], text[space + 1 : operands - 1]
            if len(self.types) < MAX_TYPES:
                self.types[name] = type_
        self.instructions += 1
        # What the program is, without its own name; constants apart, whose digits are no numbers of names.
        (self._constants if opcode == "constant" else self._parts).append(text[start:])
        self._held += len(text)
        if self._held > MAX_HELD:
            self._flush()
        if opcode in _INTERESTING:
            self._take(opcode, name, type_, text, operands, line)

    def _flush(self) -> None:
        """Add types, opcodes, operands' names without the compiler's numbers, and attributes to the digest."""
        # Every line ends with its break, so that where one batch ends is no part of the digest.
        program = _IDS.sub("", _TAIL.sub("", "\n".join([*self._parts, ""])))
        if "channel_id=" in program:
            program = _CHANNELS.sub("", program)
        self.hash.update(program.encode("utf-8", "replace"))
        constants = _TAIL.sub("", "\n".join([*self._constants, ""]))
        self.constants.update(constants.encode("utf-8", "replace"))
        self._parts.clear()
        self._constants.clear()
        self._held = 0

    def computation(self) -> None:
        """A new computation begins: operands are named within their own."""
        self.types.clear()

    def _take(self, opcode: str, name: str, type_: str, text: str, operands: int, line: int) -> None:
        dots = self.findings.dots
        self.findings.instruction(text, line)
        if opcode in ("dot", "convolution"):
            if _ON_HOST in text:
                self.findings.on_host.add(opcode)
            dots.multiply(type_, *self._operands(text, operands))
        elif opcode == "custom-call":
            self._custom_call(name, type_, text, operands, line)
        elif opcode == "fusion":
            self.rewritten = True
            if not self.backend and any(mark in text for mark in _CPU_MARKS):
                self.backend = "cpu"
            if _ON_HOST in text:
                self.findings.on_host.add("fusion")
            if "calls=%all-reduce-scatter" in text or "calls=all-reduce-scatter" in text:
                self._exchange("fused_reduce_scatter", text, line)
        elif opcode == "exponential":
            dots.note("exponential", type_)
        elif opcode in REDUCTIONS:
            dots.note("reduction", self._operands(text, operands)[0])
        elif opcode == "parameter":
            if self.in_entry and self.chips > 1:
                self.sharding.parameter(name, type_, text)
        elif opcode in COLLECTIVES:
            self._exchange(opcode, text, line)
        elif opcode in ("outfeed", "infeed") or "is_host_transfer=true" in text:
            self.findings.counts.add(opcode)
            self.findings.read_by_host(text, line)

    def _custom_call(self, name: str, type_: str, text: str, operands: int, line: int) -> None:
        if (match := _TARGET.search(text, operands)) is None:
            return
        target, findings = match[1], self.findings
        if target == hlo_kernels.MOSAIC:
            self.backend = "pjrt-tpu"
        elif target.startswith("__onednn$"):
            self.backend = "cpu"
        findings.counts.add(target)
        if target in HELPERS:
            return
        if hlo_kernels.calls_host(target):
            findings.counts.add("host_callbacks")
            findings.read_by_host(text, line)
        elif hlo_kernels.multiplies(target):
            self.rewritten = self.rewritten or hlo_kernels.rewritten(target)
            self._library(target, type_, text, operands, line)
        else:
            op = OP_NAME.search(text, operands)
            kernel = hlo_kernels.attention(target, f"{name} {op[1] if op else ''}")
            if kernel is not None:
                findings.attention.add(kernel, line)
            elif target == hlo_kernels.MOSAIC:
                findings.unnamed += 1

    def _library(self, target: str, type_: str, text: str, operands: int, line: int) -> None:
        self.findings.libraries.add(hlo_kernels.library(target))
        left, right = self._operands(text, operands)
        if target.endswith("$f8"):
            self.findings.gemm.add("fp8", line)
            return
        first = type_.lstrip("(")
        self.findings.dots.multiply(first, left, right)
        names = [dtype(typed[0]) for side in (left, right) if side and (typed := shape(side))]
        if names and (narrow := first_narrow(name for name in names if name)) is not None:
            self.findings.gemm.add(narrow, line)

    def _exchange(self, opcode: str, text: str, line: int) -> None:
        self.findings.counts.add(opcode)
        gathers = opcode.startswith("all-gather")
        at = text.find("(", text.find(f" {opcode}(")) + 1 if gathers else 0
        self.sharding.exchange(opcode, text, self._operands(text, at)[0] if gathers else None)

    def _operands(self, text: str, at: int) -> tuple[str | None, str | None]:
        """Types of the first two operands: printed beside them in old text, else those of their instructions."""
        match = _OPERANDS.match(text, at)
        if match is None:
            one = _OPERAND.match(text, at)
            return ((one[1] or self.types.get(one[2])) if one else None), None
        return match[1] or self.types.get(match[2]), match[3] or self.types.get(match[4])

    @property
    def partitioned(self) -> bool:
        """Whether this is a whole program for several chips, as its compiler left it."""
        return self.complete and self.optimised and self.chips > 1
