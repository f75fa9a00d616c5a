"""One HLO module as text, instruction by instruction: what it calls, multiplies, exchanges and how it is split.

What the modules of one file of HLO hold, added up, and what that says of a step.

How a program on several chips splits the arrays of its step, and which chips exchange with one another.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from receipts.ingest.compile_order import place
from receipts.ingest.reading import TRANSFERS, Level, Reading, Tally
from receipts.readers.xla import operations
from receipts.readers.xla.operations import Dots, dtype, first_narrow, shape

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
# That of a backward pass.
_BACKWARD: Final = "transpose(jvp("
_SOURCE: Final = re.compile(r'source_file="([^"]{1,400})" source_line=(\d+)')
OP_NAME: Final = re.compile(r'op_name="((?:[^"\\]|\\.){1,2000})"')


def _names() -> Tally[str]:
    return Tally(500)


@dataclass(slots=True)
class Findings:
    """Calls and operations by name.

    ``unnamed`` are Mosaic kernels that prove nothing, ``foreign`` calls that may compute anything, ``reads`` exchanges
    with the host by the program's line, and ``recomputed`` is where the backward pass first computes a part of the
    forward pass. ``trains`` says that there is a backward pass.
    """

    dots: Dots = field(default_factory=Dots)
    counts: Tally[str] = field(default_factory=_names)
    attention: Tally[str] = field(default_factory=_names)
    gemm: Tally[str] = field(default_factory=_names)
    libraries: Tally[str] = field(default_factory=_names)
    on_host: Tally[str] = field(default_factory=_names)
    reads: Tally[str] = field(default_factory=_names)
    unnamed: int = 0
    foreign: int = 0
    trains: bool = False
    host: int = 0
    recomputed: int = 0

    def instruction(self, text: str, line: int) -> None:
        """Take what any instruction may show."""
        if not self.recomputed and _RECOMPUTED in text:
            self.recomputed = line
        self.trains = self.trains or _BACKWARD in text

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


MAX_REPLICATED: Final = 200
MAX_WHOLE: Final = 20_000
MAX_SHAPES: Final = 2_000
# Of all parameters of a program, an array with less than this share was never worth splitting (norms, biases).
_SMALL: Final = 1e-3
# With so much of its arguments split a program is sharded, though some were left whole. Where the optimizer's states
# alone are split, the parameters are a quarter of it and more.
_MAX_SHARE: Final = 0.8
_SHARDING: Final = re.compile(r"sharding=\{((?:[^{}]|\{[^{}]*\}){0,500})\}")
_TILES: Final = re.compile(r"devices=\[([\d,]{1,100})\]")
_GROUPS: Final = re.compile(r"replica_groups=(?:\{\{([\d,]{1,4000})|\[(\d{1,9}),(\d{1,9})\]<=)")
# Since JAX 0.10: ``replica_groups=mesh['data'=4,'model'=2] {'model'}``.
_MESH: Final = re.compile(r"replica_groups=mesh\[([^\]]{1,1000})\] \{([^}]{0,1000})\}")
_AXIS: Final = re.compile(r"'([^']{1,100})'=(\d{1,9})")


@dataclass(slots=True)
class Sharding:
    """The arguments of one program with how each was left, and its collectives."""

    whole: list[tuple[str, float]] = field(default_factory=list)
    whole_elements: float = 0.0
    elements: float = 0.0
    split: set[tuple[int, ...]] = field(default_factory=set)
    gathered: set[tuple[int, ...]] = field(default_factory=set)
    groups: set[int] = field(default_factory=set)
    exchanges: Counter[str] = field(default_factory=Counter)

    def exchange(self, opcode: str, text: str, operand: str | None) -> None:
        """Take a collective; of what is gathered, the array's extents: a parameter's, or an activation's."""
        self.exchanges[opcode] += 1
        if (size := _group_size(text)) is not None and len(self.groups) < MAX_SHAPES:
            self.groups.add(size)
        if operand is not None and len(self.gathered) < MAX_SHAPES and (extents := shape(operand)) is not None:
            self.gathered.add(_extents_of(extents[1]))

    def parameter(self, name: str, type_: str, text: str) -> None:
        """Take one array of the step's arguments: the compiler split it, or left it whole on every chip."""
        sharding, extents = _SHARDING.search(text), shape(type_)
        if sharding is None or extents is None or len(extents[1]) < 2 or dtype(extents[0]) is None:
            return
        tiles = _TILES.search(sharding[1])
        pieces = [int(part) for part in tiles[1].split(",") if part] if tiles else []
        if tiles and "last_tile_dim_replicate" in sharding[1]:
            pieces = pieces[:-1]
        elements = math.prod(float(extent) for extent in extents[1])
        if any(piece > 1 for piece in pieces):
            self.elements += elements * math.prod(pieces)
            if len(self.split) < MAX_SHAPES:
                self.split.add(_extents_of(extents[1]))
        elif tiles or sharding[1].startswith("replicated"):
            self.elements += elements
            self.whole_elements += elements
            if len(self.whole) < MAX_WHOLE:
                op = OP_NAME.search(text)
                name = op[1].replace("\\'", "'").replace('\\"', '"')[:200] if op else name
                self.whole.append((name, elements))

    @property
    def replicated(self) -> list[str]:
        """Arrays of the step's arguments that every chip holds whole, but for those too small to be worth splitting."""
        names = (name for name, elements in self.whole if elements >= _SMALL * self.elements)
        return list(islice(names, MAX_REPLICATED))

    @property
    def complete(self) -> bool:
        """Whether parameters are split, and none of size is left whole."""
        return bool(self.split) and len(self.whole) < MAX_WHOLE and not self.replicated

    def kind(self, chips: int) -> str | None:
        """``fsdp`` or ``dp``, where the collectives leave no other reading; None for anything else.

        Beside another axis of the mesh (groups that are not of all chips) it is ``fsdp`` where arrays of the split
        parameters' own extents are gathered: a tensor-parallel program gathers activations, and weights never.
        """
        mostly = self.whole_elements <= (1 - _MAX_SHARE) * self.elements
        # A stack of layers is a parameter of one more extent than the layer that a loop takes out of it.
        layers = {key[:at] + key[at + 1 :] for key in self.split if len(key) > 2 for at in range(len(key))}
        if self.split and mostly and self.gathered & (self.split | layers):
            return "fsdp"
        if self.groups - {chips}:
            return None
        kinds = {name.removesuffix("-start") for name in self.exchanges}
        if "all-gather" in kinds and kinds & {"reduce-scatter", "fused_reduce_scatter"}:
            return "fsdp" if not self.replicated else None
        return "dp" if kinds == {"all-reduce"} and self.replicated else None


def _extents_of(dims: tuple[int, ...]) -> tuple[int, ...]:
    """An array by its extents, without their order and those of one."""
    return tuple(sorted(extent for extent in dims if extent > 1))


def _group_size(text: str) -> int | None:
    """How many chips exchange with one another; None where the text does not say."""
    groups = _GROUPS.search(text)
    if groups is not None:
        return len(groups[1].split(",")) if groups[1] else int(groups[3])
    mesh = _MESH.search(text)
    if mesh is None:
        return None
    named = {word.strip(" '") for word in mesh[2].split(",")}
    return math.prod(int(size) for axis, size in _AXIS.findall(mesh[1]) if axis in named)


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
            dots.batched = dots.batched or "lhs_batch_dims={" in text
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
        if target == operations.MOSAIC:
            self.backend = "pjrt-tpu"
        elif target.startswith("__onednn$"):
            self.backend = "cpu"
        findings.counts.add(target)
        if target in HELPERS:
            return
        if operations.calls_host(target):
            findings.counts.add("host_callbacks")
            findings.read_by_host(text, line)
        elif operations.multiplies(target):
            self.rewritten = self.rewritten or operations.rewritten(target)
            self.findings.libraries.add(operations.library(target))
            left, right = self._operands(text, operands)
            if target.endswith("$f8"):
                self.findings.gemm.add("fp8", line)
                return
            first = type_.lstrip("(")
            self.findings.dots.multiply(first, left, right)
            self.findings.dots.batched |= len((shape(first) or ("", ()))[1]) > 2
            names = [dtype(typed[0]) for side in (left, right) if side and (typed := shape(side))]
            if names and (narrow := first_narrow(name for name in names if name)) is not None:
                self.findings.gemm.add(narrow, line)
        else:
            op = OP_NAME.search(text, operands)
            kernel = operations.attention(target, f"{name} {op[1] if op else ''}")
            if kernel is not None:
                findings.attention.add(kernel, line)
            else:
                findings.unnamed += target == operations.MOSAIC
                findings.foreign += 1

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
