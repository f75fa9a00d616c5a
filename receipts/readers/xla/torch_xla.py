"""Lines of the training scripts that come with torch_xla, of torchprime, and of what was copied from them.

``| Training Device=xla:0/0 Epoch=1 Step=20 Loss=6.79297 Rate=117.16 GlobalRate=45.84 Time=06:13:36`` is
`test/test_utils.py`; ``[xla:0](20) Loss=…`` is that of older scripts and notebooks. `RateTracker` gives samples a
second of one process, smoothed (``Rate``) or since the start (``GlobalRate``): without the batch no time of a step
follows, and none is made up. torchprime's ``trace time`` is the host's time to trace a step and never the step's.

Compile lines of torch_xla's own log: `tensor.cpp` to 1.13, `xla_graph_executor.cpp` from 2.0 on.
``Compiling IR graph hash H on device TPU:0 ...`` and the same line with ``done!``; between both is the compile. Such a
log shows the compiles that it holds, and never that there was none. A hash that is compiled on every device counts
once a device, and so it is in the log of each.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.arguments import Statements
from receipts.ingest.clock import seconds_on
from receipts.ingest.literals import FIGURE
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading
from receipts.ingest.record import Form, RecordRows
from receipts.ingest.record_reader import RANK, RecordReader

_STATEMENTS: Final = Statements("torch_xla_script")
_CELL: Final = re.compile(rf"(?<!\w)(?P<label>Loss|Rate|Throughput)=\s{{0,4}}(?P<word>{FIGURE})(?=[\s|,]|$)", re.I)
_PRIME: Final = re.compile(rf"(?P<label>loss|grad_norm|trace time|step time): (?P<word>{FIGURE})")


class TorchXlaScript(RecordReader, table="torch_xla_script"):
    """Reads the scripts' step lines. Steps count anew in each epoch there: here they go on."""

    # A rate is of many steps, and torchprime times the first one as every other.
    finds_firsts = False
    forms = (
        # `xla:0/3` is the device and, behind the stroke, the process's place among all.
        Form(
            re.compile(
                r"\| Training Device=(?:[^\s\d]{1,20}(?P<rank>\d{1,6})(?=\s)|[^\s/]{1,30}/(?P<process>\d{1,6}))"
                r"(?=(?:[^|]{0,200}?\sEpoch=(?P<epoch>\d{1,9})\s)?)(?=[^|]{0,200}?\sStep=(?P<step>\d{1,12})\s)"
            ),
            (_CELL,),
        ),
        Form(re.compile(r"\[(?:xla:)?(?P<rank>\d{1,6})\]\((?P<step>\d{1,12})\)\s*(?=Loss=)"), (_CELL,)),
        Form(re.compile(r"\b[Ss]tep: (?P<step>\d{1,12}), (?=loss: .{0,240}?trace time: )"), (_PRIME,)),
    )

    def __init__(self) -> None:
        super().__init__()
        self._epoch = self._offset = 0
        self._highest, self._previous, self._stride = -1, -1, 1
        self._rates = self._traced = False

    def other(self, text: str, number: int) -> None:
        """Take the batch that torchprime states above its steps."""
        _STATEMENTS.take(self.reading, text, number)

    def rows(self, rows: RecordRows) -> None:
        """Take records; torchprime's own step time begins when the trace has ended."""
        figures = rows.figures
        trace, rest = figures.pop("trace", None), figures.pop("rest", None)
        if trace and rest:
            figures["step_seconds"] = [sum(parts) for parts in zip(trace, rest, strict=True)]
        self._traced |= bool(trace and not rest)
        self._rates |= figures.pop("rate", None) is not None
        if trace is None:
            epochs = rows.counts.get("epoch") or [self._epoch] * len(rows.steps)
            rows.steps = list(map(self._counted, rows.steps, epochs))
            if process := rows.counts.get("process"):
                rows.counts[RANK] = process
        self.put(rows)

    def _counted(self, step: int, epoch: int) -> int:
        """The number of a step over all epochs, by the stride in which they are printed."""
        if epoch > self._epoch:
            if self._epoch:
                self._offset = self._highest + self._stride
            self._epoch, self._previous = epoch, -1
        if 0 <= self._previous < step:
            self._stride = step - self._previous
        self._previous = step
        self._highest = max(self._highest, step + self._offset)
        return step + self._offset

    def finish(self) -> Reading | None:
        """The reading, with what the rates are and are not."""
        reading = super().finish()
        if reading is None:
            return None
        if self._rates:
            text = "Rate and GlobalRate are samples a second of one process, smoothed or since the start; no step time"
            reading.remark("note", text)
        if self._offset:
            reading.remark("note", "steps are counted anew in each epoch; here they go on by the printed stride")
        if self._traced:
            reading.remark("note", "trace time is the host's time to trace a step, not the time of a step")
        reading.see("framework", "torch-xla", "backend")
        return reading


_COMPILING: Final = re.compile(
    r"Compiling IR graph hash ([0-9a-f]{1,64}) on (?:device|computation) (\S{1,60}) ?(\.\.\.|done!)"
)
_MAX_OPEN: Final = 10_000


class TensorLog(LineReader):
    """Reads compiles of graphs, and how long each took by the clock of its lines."""

    source: ClassVar[str] = "torch-xla-compiles"
    anchors: ClassVar[tuple[bytes, ...]] = (b"Compiling IR graph hash ",)

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[tuple[str, str], float | None] = {}
        self._seconds: list[float] = []

    def line(self, text: str, number: int) -> bool:
        """Take the begin or the end of a compile."""
        if (match := _COMPILING.search(text)) is None:
            return False
        self.reading.records += 1
        key, clock = (match[1], match[2]), seconds_on(text)
        if match[3] == "..." and len(self._open) < _MAX_OPEN:
            self._open[key] = clock[1] if clock is not None else None
        elif match[3] == "done!":
            begun = self._open.pop(key, None)
            self.reading.count("compilations")
            if begun is not None and clock is not None and clock[1] >= begun:
                self._seconds.append(clock[1] - begun)
        return False

    def finish(self) -> Reading | None:
        """The reading, with compiles that ended."""
        reading = self.reading
        if not reading.records:
            return None
        reading.see("framework", "torch-xla", "kernels")
        count = reading.counters.get("compilations", 0)
        if count:
            reading.compile.compiles = count
            if len(self._seconds) == count:
                reading.compile.seconds = round(sum(self._seconds), 6)
        if self._open:
            reading.remark("note", f"{len(self._open)} graphs began to compile, and the log shows no end of it")
        return reading


READERS = (TorchXlaScript, TensorLog)
