"""torch_xla's debug blocks on stderr (PT_XLA_DEBUG_LEVEL 1 and 2, PT_XLA_DEBUG=1) and its analyzer's lines.

``Compilation Analysis:`` tells a compile with its cause, ``Execution Analysis:`` (level 2) an execution, ``Unexpected
Execution Analysis:`` one that full_graph forbids, ``Post Compilation Analysis:`` the compiler's sizes. A cause that
speaks of a tensor value accessed is a host read. Causes by version: ``user mark_step`` to 2.7, ``user torch_xla.sync``
after it, with or without backticks. Source: torch_xla/csrc/debug_util.cpp, and real runs of 2.5 and 2.9.

One block of torch_xla's debug output: a compile or an execution, its cause, and who asked for it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from receipts.base.units import CLOCK
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import TRANSFERS, CompileSpan, Reading, Report, Tally
from receipts.readers.xla.metrics import HOST_READ

MAX_PLACE: Final = 2_000
SIZES: Final = {
    "Graph input": "argument_bytes",
    "Graph output": "output_bytes",
    "Intermediate tensor": "temp_bytes",
}


@dataclass(slots=True)
class DebugBlock:
    """A block as it grows; sizes are in GiB."""

    kind: str
    line: int
    cause: str = ""
    wants_cause: bool = False
    frames: list[str] = field(default_factory=list)
    hash: str = ""
    sizes: dict[str, float] = field(default_factory=dict)

    @property
    def reads(self) -> bool:
        """Whether user code asked for a tensor's value. The bridge of dynamo gathers its inputs the same way."""
        return "access tensor value" in self.cause and not any("/torch_xla/_dynamo/" in row for row in self.frames[:1])

    @property
    def where(self) -> str:
        """What asked for it: cause and the user's own frames, so that two places of one step are two.

        Frames of libraries come and go from step to step, as decorators do.
        """
        return f"{self.cause} {' '.join(self.own)}"[:MAX_PLACE]

    @property
    def own(self) -> list[str]:
        """Frames outside of installed libraries; the outermost one where there is no other."""
        frames = [frame for frame in self.frames if "/site-packages/" not in frame and "/torch_xla/" not in frame]
        return frames or self.frames[-1:]


def short(frame: str) -> str:
    """``main (train.py:41)`` for ``main (/home/me/train.py:41)``."""
    return re.sub(r"\((?:[^()]*[/\\])?([^()/\\]+:\d+)\)$", r"(\1)", frame)


def ended_by(cause: str) -> str | None:
    """The posture that a cause of execution shows; None for reads, and for what is pending when a step begins."""
    if cause == "torch_xla.compile":
        return "xla_step"
    if cause.startswith("dynamo is executing"):
        return "whole_graph"
    # `mark_step` to 2.7, `torch_xla.sync` after it.
    if re.match(
        r"(?:user )?(?:xm\.)?(?:torch_xla\.sync|mark_step)(?:\(\))?(?: in parallel loader| when exiting|$)", cause
    ):
        return "xla_lazy"
    return None


def unrounded(text: str) -> float:
    """Seconds of a time as torch_xla prints it: it rounds each part by those below it, ``13m35s`` for 12 min 35 s."""
    below = 0.0
    for number, unit in reversed(_PART.findall(text)):
        size = CLOCK[unit]
        whole = float(number) - (below >= 0.5 * size if below else False)
        below += whole * size
    return below


def filled(block: DebugBlock) -> bool:
    """Whether a block says anything."""
    return bool(block.cause or block.hash or block.sizes)


MAX_HASHES: Final = 100_000
# Ends of steps that show a posture, and compiles of one place that show that it is met again and again.
MIN_ENDS: Final = 3
MAX_TOLD: Final = 5
# What a step may execute where the analyser alone speaks: dynamo's forward and backward, a read, the optimizer.
PROGRAMS: Final = 4
MAX_FRAMES: Final = 8
_LINE: Final = re.compile(r"((?:Unexpected |Post )?(?:Compilation|Execution)) Analysis: ?(.*)$")
_HASH: Final = re.compile(r"\s*Graph Hash: ([0-9a-f]{1,64})")
# The plural since 2.3.
_GRAPH: Final = re.compile(r"\s*Number of Graph (Input|Output)s?: (\d{1,9})")
_SIZE: Final = re.compile(
    r"\s*(Graph input|Graph output|Aliased Input|Intermediate tensor|Compiled program) size: (\d{1,9}\.?\d{0,9}) GB"
)
_FRAME: Final = re.compile(r"\s+(\S.{0,400}:\d+\))\s*$")
_FREQUENT: Final = re.compile(r"([A-Za-z]\w{0,60})(?: too frequent)?: (\d{1,12}) counts")
_SLOW: Final = re.compile(r"([A-Za-z]\w{0,60}) too slow: longest instance took (\d[\d.a-z]{1,40}?)\.? ")
_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(d|h|ms|us|ns|m|s)")
_DURING: Final = re.compile(r"during (\d{1,12}) steps")
_OPERATOR: Final = re.compile(r"(aten::[\w.]{1,100})")
_TAG: Final = re.compile(r'Unlowered Op: "([\w:.]{1,100})"')
_COUNT: Final = re.compile(r"FRAME \(count=(\d{1,12})\)")


class PtXlaDebug(LineReader):
    """Compilations, executions and host reads as torch_xla's debug blocks show them."""

    source = "pt-xla-debug"
    anchors = (
        b"ompilation Analysis: ",
        b"xecution Analysis: ",
        b"pt-xla-profiler:",
        b"Maximum number of different graphs",
    )

    def __init__(self) -> None:
        super().__init__()
        self._block: DebugBlock | None = None
        self._blocks = Counter[str]()
        self._hashes: set[str] = set()
        # By place, each with the steps that had ended when it was met first.
        self._executed, self._compiled, self._at_reads = Tally[str](), Tally[str](), Tally[str]()
        self._reads = self._steps = self._first = 0
        self._ends = Counter[str]()
        self._largest = -1.0
        # The posture of the compiled program with the most outputs.
        self._outputs = 0
        self._largest_asked: str | None = None
        # Compiles with the steps that had ended before them, each with its place.
        self._built: list[tuple[CompileSpan, str]] = []
        self._too_many = False
        self._frame_count = 0

    def line(self, text: str, number: int) -> bool:
        """A line of a block, of the analyser, or of the limit on graphs."""
        if (match := _LINE.search(text)) is not None:
            self._in_block(match[1], match[2].rstrip(), number)
        elif "pt-xla-profiler:" in text:
            self._analyser(text, number)
        elif "Maximum number of different graphs" in text:
            # torch_xla.compile was told how many shapes there are, and met another.
            self.reading.records += 1
            self._too_many = True
            self.reading.remark("note", text.strip()[:200], number)
        return False

    def finish(self) -> Reading | None:
        """Counts by their names, and what they prove."""
        self._end()
        blocks, reading = self._blocks, self.reading
        if not reading.records:
            return None
        reading.counters |= {"compilations": blocks["Compilation"], "executions": blocks["Execution"]}
        if blocks["Unexpected Execution"]:
            reading.counters["unexpected_executions"] = blocks["Unexpected Execution"]
        reading.counters["graph_hashes"] = len(self._hashes)
        if blocks["Compilation"] or blocks["Execution"]:
            # Every run compiles: where no block of it is here, its beginning is not.
            reading.compile.compiles = blocks["Compilation"] or None
            reading.see("framework", "torch-xla", "kernels", 0)
        if (posture := self._posture()) is not None:
            reading.see("posture", posture, "kernels", self._first, count=self._ends[posture] or 1)
        unexpected = self._blocks["Unexpected Execution"]
        late = {where for where in self._at_reads if self._after_all(self._at_reads, where)}
        if self._blocks["Execution"] or unexpected:
            reads = self._reads - sum(self._at_reads[where] for where in late) + unexpected
            if reads or self._built:
                reading.host_transfers = max(reads, reading.host_transfers or 0)
            # Where no step's end is shown, a place that keeps reading was met in as many steps as it read, and one that
            # full_graph forbids ended the step that it was met in.
            again = max(self._at_reads.values(), default=0)
            reading.steps_covered = self._steps or (again if again > 1 else unexpected) or None
        for where, count in self._at_reads.most_common(MAX_TOLD):
            reading.remark("note", f"a tensor's value is read at {where}: {count} times")
            if where not in late:
                reading.blame(TRANSFERS, f"a tensor's value is read in {short(where)}", count)
        # Each compile is put among the steps: what is asked for once the last step has ended is none of theirs. Without
        # executions no step's end is reported: that a place compiled before shows that it was met before.
        compile_, most = self.reading.compile, max(self._compiled.values(), default=0)
        if self._steps and self._built:
            compile_.steps = self._steps
            compile_.spans = [span for span, where in self._built if not self._after_all(self._compiled, where)]
        elif most >= MIN_ENDS:
            compile_.steps = most
            compile_.spans = [CompileSpan(1, span.after, why=span.why) for span, _ in self._built]
        if self._too_many:
            compile_.after_warmup = 1
        return reading

    def _after_all(self, places: Tally[str], where: str) -> bool:
        """Whether a place was met only after the last step, as a report of the final loss is."""
        return 0 < self._steps <= places.first.get(where, 0)

    def _posture(self) -> str | None:
        """What ended the steps' programs: `torch_xla.compile`, a sync of the user or the loader, or torch.compile.

        A loop around compiled steps that syncs by itself in most of them runs programs outside of the compiled one.
        """
        if not self._blocks["Execution"]:
            return self._largest_asked  # at level 1 compiles alone are reported
        step, lazy, graph = (self._ends[name] for name in ("xla_step", "xla_lazy", "whole_graph"))
        if max(step, lazy, graph) < MIN_ENDS:
            return None
        if graph >= max(step, lazy):
            return "whole_graph"
        return "xla_step" if 2 * lazy < step else "xla_lazy"

    def _in_block(self, kind: str, rest: str, number: int) -> None:
        block = self._block
        if rest.startswith("==="):
            # A rule opens a block, and the same one closes it.
            if block is None or block.kind != kind or block.line == number or filled(block):
                self._end()
                self._block = DebugBlock(kind, number)
            return
        if block is None or block.kind != kind:
            self._end()
            block = self._block = DebugBlock(kind, number)
        if block.wants_cause:
            block.cause, block.wants_cause = rest.replace("`", "").strip(), False
        elif rest.endswith(("Compilation Cause", "Execution Cause")):
            block.wants_cause = True
        elif (match := _HASH.match(rest)) is not None:
            block.hash = match[1]
        elif (match := _GRAPH.match(rest)) is not None:
            self.reading.counters[f"graph_{match[1].lower()}s"] = int(match[2])
        elif (match := _SIZE.match(rest)) is not None:
            block.sizes[match[1]] = float(match[2])
        elif len(block.frames) < MAX_FRAMES and (match := _FRAME.match(rest)) is not None:
            block.frames.append(match[1])
        elif rest.startswith("---"):
            self._end()

    def _end(self) -> None:
        block, self._block = self._block, None
        if block is None or not filled(block):
            return
        self.reading.records += 1
        if block.kind == "Post Compilation":
            # The compiler's sizes; the largest program's stand, which is the step's.
            compile_ = self.reading.compile
            total = sum(block.sizes.get(name, 0.0) for name in SIZES)
            if total > self._largest:
                self._largest = total
                for name, leaf in SIZES.items():
                    if name in block.sizes:
                        setattr(compile_, leaf, round(block.sizes[name] * (1 << 30)))
            return
        self._blocks[block.kind] += 1
        if block.kind != "Unexpected Execution" and block.hash and len(self._hashes) < MAX_HASHES:
            self._hashes.add(block.hash)
        if block.kind == "Compilation":
            if (outputs := self.reading.counters.get("graph_outputs", 0)) >= self._outputs:
                self._outputs, self._largest_asked = outputs, ended_by(block.cause)
                self._first = block.line
            # This program's own execution is reported after it, so what was executed is what came before. At level 1 no
            # execution is reported; that a place compiled before it shows that it was met before.
            before = max(self._executed[block.where], self._compiled.add(block.where, self._steps) - 1, 0)
            if len(self._built) < MAX_HASHES:
                # Of the places in a step, one that comes later is met in a step whose end others have told already.
                after = max(before, self._steps - 1)
                why = f"another program for {block.cause} in {short(block.own[0])}" if block.own else ""
                self._built.append((CompileSpan(1, after, after + 1 + (before < self._steps - 1), why), block.where))
            return
        if block.kind == "Execution":
            self._reads += block.reads
            if (posture := ended_by(block.cause)) is not None:
                self._ends[posture] += 1
                self._first = self._first or block.line
            # A place that ends a step is met once a step; a step that is cut in two has two such places.
            count = self._executed.add(block.where)
            if not block.reads and "clear the pending graph" not in block.cause:
                self._steps = max(self._steps, count)
        if block.reads:
            self._at_reads.add(block.own[0] if block.frames else "a frame that is not shown", self._steps)

    def _analyser(self, text: str, number: int) -> None:
        rest = text.split("pt-xla-profiler:", 1)[1].strip()
        reading = self.reading
        if (frames := _COUNT.search(rest)) is not None:
            reading.records += 1
            self._frame_count = int(frames[1])
        elif (tag := _TAG.search(rest)) is not None:
            reading.records += 1
            name = tag[1] if "::" in tag[1] else f"aten::{tag[1]}"
            if name in (HOST_READ, "aten::xla_fallback"):
                # The frame does not name the operator: what is shown is that the host was asked.
                reading.host_transfers = max(reading.host_transfers or 0, self._frame_count)
            else:
                self._fallback(name, self._frame_count or 1)
        elif "not lowered" in rest:
            reading.records += 1
            for name in _OPERATOR.findall(rest):
                if name != HOST_READ:
                    self._fallback(name, 1)
            reading.remark("note", rest[:200], number)
        elif "too slow" in rest:
            reading.records += 1
            if (slow := _SLOW.search(rest)) is not None:
                seconds = unrounded(slow[2])
                reading.time(f"{slow[1]} longest", seconds, 1)
                reading.remark("note", f"the longest {slow[1]} took {seconds:,.3f} s", number)
        elif "too frequent" in rest:
            reading.records += 1
            # `CompileTime too frequent: 21 counts during 11 steps`, or several metrics in one line.
            steps = _DURING.search(rest)
            for match in _FREQUENT.finditer(rest):
                name, count = match[1], int(match[2])
                self.reading.counters[name] = count
                if steps is None:
                    continue
                covered = int(steps[1])
                if name == "CompileTime":
                    # The last one counts all. None of them is at a step that anyone chose as the end of a warm-up.
                    self.reading.reports = [Report(covered, count, programs=PROGRAMS)]
                elif name.startswith("TransferFrom"):
                    self.reading.host_transfers = count
                    self.reading.steps_covered = covered
            reading.remark("note", rest[:200], number)

    def _fallback(self, name: str, count: int) -> None:
        fallbacks = self.reading.fallbacks = self.reading.fallbacks or {}
        fallbacks[name] = max(fallbacks.get(name, 0), count)


READERS = (PtXlaDebug,)
