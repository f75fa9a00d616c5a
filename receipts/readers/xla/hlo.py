"""Programs as text: HLO from the compiler, StableHLO and MHLO from the framework.

HLO text: the compiler's program, from a dump, `compiled.as_text()`, a log, or an excerpt of it. Optimized text is
evidence of what was built to run; text from before the passes proves intent only. A module that ends with its ENTRY
computation is whole, and then an absence means something; a truncated one proves presence and nothing else.
Instructions may span lines (``kernel_metadata={`` holds line breaks since JAX 0.10; people wrap excerpts).

StableHLO and MHLO text: what a framework handed to the compiler. It proves what was meant, and never what ran.
``stablehlo.custom_call @tpu_custom_call(…) {…, kernel_name = "splash_mha_fwd…"}`` and the generic form with
``call_target_name``; shardings as ``sdy.sharding`` or ``mhlo.sharding`` on the arguments of ``@main``.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest import vocabulary
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Level, Reading
from receipts.readers.xla import operations
from receipts.readers.xla.module import COLLECTIVES, Findings, Module

MAX_FOREIGN: Final = 200
MAX_JOINED: Final = 1 << 16
MAX_JOINED_LINES: Final = 200
_INSTRUCTION: Final = re.compile(r"(?:^|\s)%?[\w.\-$]+ = (?:\(|[a-z]\w{0,20}\[)")
# Tables of files and functions stand between a module's head and its computations since JAX 0.8.
_TABLE: Final = re.compile(r"\s*(?:\d{1,9} [{\"]|(?:File|Function|Stack)[A-Z]\w{1,20}\s*$|$)")
_MOSAIC: Final = re.compile(r"megacore\b.{0,200}Mosaic failed to")
_ENTRY: Final = re.compile(r"ptxas\b.{0,40}Compiling entry function '([^']{1,300})'")
_VERSION: Final = re.compile(r"Unsupported version: expected <= (\d{1,6}) but got (\d{1,6})")
# `jax.jit` names a program after its function; torch_xla after what made it, unless the caller names the graph.
_HEADS: Final = ("entry_computation_layout=", "is_scheduled=")
_JITTED: Final = re.compile(r"p?jit_")
_TORCH_XLA: Final = re.compile(r"SyncTensorsGraph\b")
# Above a program that the recorder kept: it is the step, and not one of many that a dump holds.
RECORDED: Final = "// HloModule of the recorded step"
# Reports of failed allocations quote instructions of programs that never ran.
_QUOTED: Final = ("XLA label:", "Operator:")


class Hlo(LineReader):
    """Custom calls, multiplications, collectives, host transfers and shardings of HLO modules."""

    source = "hlo"
    anchors = (*vocabulary.anchors("hlo"), *(f" {name}(".encode() for name in sorted(COLLECTIVES)))

    def __init__(self) -> None:
        super().__init__()
        self._findings = Findings()
        self._module: Module | None = None
        self._whole = True
        self._is_step = False
        self._largest: Module | None = None
        self._optimised = True
        self._inside = False
        self._foreign = 0
        self._joined: list[str] = []
        self._depth = 0
        self._entry_begins = False
        self._first = 0
        self._replicated: dict[str, None] = {}
        self._shardings: dict[str, int] = {}

    def line(self, text: str, number: int) -> bool:
        """One line of a module, or one that an anchor found outside of any."""
        if self._joined:
            return self._join(text, number)
        at = text.find(" = ")
        if text[-1:].isspace():
            text = text.rstrip()
        # A head's own attributes may hold an equals sign (``xla.sdy.meshes={mesh = …}``).
        if at > 0 and ((self._inside and text[0] == " ") or "HloModule " not in text[:at]):
            if not self._inside and (_INSTRUCTION.search(text) is None or any(word in text for word in _QUOTED)):
                return self._warning(text, number)
            if text[-1] in "{,(":
                self._joined, self._depth = [text], _depth(text)
                return True
            return self._instruction(text, at, number)
        return self._structure(text, number)

    def finish(self) -> Reading | None:
        """All modules' findings."""
        if self._joined:
            self._end_join(0)
        self._close_module()
        if not self.reading.records:
            return None
        reading, findings, step, line = self.reading, self._findings, self._largest, self._first
        reading.counters |= findings.counts
        level: Level = "kernels" if self._optimised else "intent"
        reading.complete = step is not None and self._whole
        if reading.complete:
            # Absence is a statement here.
            reading.counters.setdefault(operations.MOSAIC, 0)
        findings.write(reading, level, line)
        if step is None:
            return reading
        if level == "kernels":
            self._program(step)
        for kind, at in self._shardings.items():
            reading.see("sharding", kind, level, at)
        for name in self._replicated:
            reading.see("replicated", name, level, step.line)
        if level == "intent":
            reading.remark("note", "text from before the compiler's passes: what is meant, not what runs", line)
        if not reading.complete:
            reading.remark("missing", "no whole module: it proves what it shows, and no absence", line)
        if findings.unnamed and not findings.attention:
            what = f"{findings.unnamed} Mosaic kernels whose name is no attention's"
            reading.remark("note", f"{what}: a custom call alone proves none", line)
        return reading

    def _structure(self, text: str, number: int) -> bool:
        """Heads of modules and computations, their ends, and foreign lines."""
        bare = text.strip()
        if bare == RECORDED:
            self._is_step = True
            return False
        if "HloModule " in text and "," in text:
            self._close_module()
            module = self._current(number)
            module.head(text)
            # "HloModule f, …" is in messages, too; a module's own head goes on with its layout or schedule.
            self.reading.records += any(word in text for word in _HEADS)
            self._inside, self._foreign = True, 0
            return True
        if bare.startswith("ENTRY ") and not bare.endswith("{"):
            # Its parameters may stand on lines of their own.
            self._entry_begins = True
            return True
        if bare.endswith("{") and (bare.startswith(("ENTRY ", "%")) or "ENTRY " in bare or "->" in bare):
            entry = "ENTRY " in bare or self._entry_begins
            if not self._inside and not entry:
                return False
            module = self._current(number)
            module.computation()
            module.in_entry, self._entry_begins = entry, False
            self._inside, self._foreign = True, 0
            return True
        # A logger may put its own words before every line.
        if self._inside and (bare == "}" or bare.endswith(" }")):
            self._foreign = 0
            if self._module is not None and self._module.in_entry:
                # The entry is the last computation of a module.
                self._module.complete = bool(self._module.name)
                self._inside = False
                self._close_module()
            return self._inside
        if not self._inside:
            if bare.startswith(("custom-call(", 'custom_call_target="')):
                # An excerpt that was wrapped before it; the name and the type are on lines that were not seen.
                call = f"%_ = () {bare if bare[6] == '-' else f'custom-call(), {bare}'}"
                self._instruction(call, call.index(" = "), number)
            return self._warning(text, number)
        if _TABLE.match(text) is not None:
            return True
        self._warning(text, number)
        self._foreign += 1
        if self._foreign > MAX_FOREIGN:
            self._inside = False
        return self._inside

    def _current(self, number: int) -> Module:
        if self._module is None:
            self._module = Module(self._findings, line=number)
        return self._module

    def _instruction(self, text: str, at: int, number: int) -> bool:
        self._foreign = 0
        self._current(number).instruction(text, at, number)
        return self._inside

    def _join(self, text: str, number: int) -> bool:
        """Take a line of an instruction that goes on below."""
        bare = text.strip()
        if _INSTRUCTION.search(text) is not None or bare.startswith(("HloModule ", "ENTRY ")):
            # What was left open was cut, and this is the next one.
            self._end_join(number)
            return self.line(text, number)
        if sum(map(len, self._joined)) < MAX_JOINED:
            self._joined.append(text)
        self._depth += _depth(text)
        whole = self._depth <= 0 and not bare.endswith(",")
        return self._end_join(number) if whole or len(self._joined) > MAX_JOINED_LINES else True

    def _end_join(self, number: int) -> bool:
        text, self._joined = " ".join(self._joined), []
        at = text.find(" = ")
        return self._instruction(text, at, number) if at > 0 else self._inside

    def _warning(self, text: str, number: int) -> bool:
        if (entry := _ENTRY.search(text)) is not None:
            # ptxas names the kernels of Pallas on GPU.
            kernel = operations.attention(operations.TRITON[0], entry[1])
            if kernel is not None:
                self.reading.records += 1
                self._findings.attention.add(kernel, number)
        elif _MOSAIC.search(text):
            self.reading.records += 1
            self.reading.counters["mosaic_megacore_not_partitioned"] = 1
            self.reading.remark("note", "a kernel runs on one core of two: Mosaic could not split it", number)
        elif (match := _VERSION.search(text)) is not None:
            self.reading.records += 1
            what = f"Mosaic kernels are written in version {match[2]} and libtpu reads up to {match[1]}"
            self.reading.remark("note", f"{what}: JAX and libtpu do not belong together", number)
        return False

    def _close_module(self) -> None:
        """Keep of a module what the end needs: the program with the most instructions is the step."""
        module, self._module = self._module, None
        if module is None or not (module.instructions or module.name):
            return
        self.reading.records += module.instructions
        self._first = self._first or module.line
        self._whole = self._whole and module.complete
        self._optimised = self._optimised and module.optimised
        if module.optimised:
            self._replicated.update(dict.fromkeys(module.sharding.replicated))
        if module.partitioned and (kind := module.sharding.kind(module.chips)) is not None:
            self._shardings[kind] = module.line
        module.types.clear()
        if self._largest is None or module.instructions > self._largest.instructions:
            self._largest = module

    def _program(self, step: Module) -> None:
        """Say who made the step's program, for what it was compiled, and what of it left the device."""
        reading, findings = self.reading, self._findings
        if reading.complete:
            reading.compile.program_digest = step.digest
        if step.backend:
            reading.see("runtime", step.backend, "kernels", step.line)
        if findings.recomputed:
            text = "the backward pass computes parts of the forward pass again"
            reading.state("numerics.recompute_applied", "checkpoint", text, findings.recomputed)
        if _TORCH_XLA.match(step.name) is not None:
            reading.see("framework", "torch-xla", "kernels", step.line)
        elif _JITTED.match(step.name) is not None:
            reading.see("framework", "jax", "kernels", step.line)
            if not findings.dots.count:
                return  # a dump holds many programs, and one that multiplies nothing is no step
            if step.complete:
                reading.see("posture", "jit", "kernels", step.line)
            dots = findings.dots
            attends = findings.attention or findings.foreign or dots.unfused or dots.attends
            if self._is_step and reading.complete and findings.trains and not attends:
                reading.see("attention", "none", "kernels", step.line)
            if reading.complete:
                # The compiler lowers every operator of a jitted step or refuses it: what runs elsewhere is marked.
                reading.fallbacks = dict(findings.on_host)
        if step.partitioned and step.sharding.complete and not self._replicated:
            reading.see("replicated", "", "kernels", step.line)


def _depth(text: str) -> int:
    """How many brackets a line leaves open."""
    return sum(text.count(mark) for mark in "({") - sum(text.count(mark) for mark in ")}")


MAX_TARGETS: Final = 500
# Long lines hold constants; a call's target and its kernel's name stand outside of them.
MAX_LOOKED_AT: Final = 1 << 16
_CALL: Final = re.compile(r"(?:stablehlo|mhlo)\.custom_call\"?[ (]@?(?:\"?([\w.$\-]{1,200}))?")
_TARGET: Final = re.compile(r'call_target_name = "([^"]{1,200})"')
_KERNEL: Final = re.compile(r'(?:kernel_name|name) = \\?"([\w.\-]{1,300})')
_MODULE: Final = re.compile(r"(?:^|\s)module @([\w.\-]{1,300})(?: attributes \{(.{0,2000}))?")
_PARTITIONS: Final = re.compile(r"mhlo\.num_partitions = (\d{1,9})")
_SHARDED: Final = re.compile(
    r"sdy\.sharding = #sdy\.sharding<@[\w\"]{1,100}, \[([^\]]{0,500})\]|mhlo\.sharding = \"([^\"]{0,500})\""
)


class Stablehlo(LineReader):
    """Custom calls and argument shardings as they were asked for."""

    source = "stablehlo"
    anchors = (
        b"stablehlo.custom_call",
        b"mhlo.custom_call",
        b"module @",
        b"func.func public @main",
        b"= stablehlo.dot_general",
    )

    def __init__(self) -> None:
        super().__init__()
        self._dialect = False
        self._named = False

    def line(self, text: str, number: int) -> bool:
        """A module's head, the step's arguments, or one call."""
        reading = self.reading
        if "custom_call" in text:
            self._call(text, number)
        elif "func.func public @main" in text:
            # How many arrays were asked to be split, and how many to be whole on every chip.
            split = whole = 0
            for shardy, older in _SHARDED.findall(text):
                if '"' in shardy or "devices=" in older:
                    split += 1
                else:
                    whole += 1
            if split or whole:
                self.reading.records += 1
                self.reading.counters |= {"arguments_split": split, "arguments_replicated": whole}
        elif "stablehlo.dot_general" in text:
            reading.records += 1
            reading.count("dot_general")
        elif (module := _MODULE.search(text[:MAX_LOOKED_AT])) is not None:
            chips = _PARTITIONS.search(module[2] or "")
            self._named = self._named or chips is not None or module[1].startswith(("jit_", "pmap_", "IrToHlo"))
        return False

    def finish(self) -> Reading | None:
        """Counts and intents; None where no line of the dialect was there."""
        reading = self.reading
        if not (reading.records or self._named):
            return None
        reading.records = max(reading.records, 1)
        if self._named:
            reading.counters.setdefault(operations.MOSAIC, 0)
        reading.remark("note", "StableHLO proves what was meant; the optimised program proves what was built")
        return reading

    def _call(self, text: str, number: int) -> None:
        reading = self.reading
        text = text if len(text) <= MAX_LOOKED_AT else text[:MAX_LOOKED_AT] + text[-MAX_LOOKED_AT:]
        call = _CALL.search(text)
        if call is None:
            return
        reading.records += 1
        named = _TARGET.search(text)
        target = call[1] if call[1] and call.group(0).find("@") >= 0 else named[1] if named else None
        if target is None or (target not in reading.counters and len(reading.counters) >= MAX_TARGETS):
            return
        reading.count(target)
        kernel = _KERNEL.search(text)
        meant = operations.attention(target, kernel[1] if kernel else "")
        if meant is not None:
            reading.see("attention", meant, "intent", number)


READERS = (Hlo, Stablehlo)
