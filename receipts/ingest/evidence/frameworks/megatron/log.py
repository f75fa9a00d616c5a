"""Logs of Megatron-LM and of what grew from it: Megatron-Bridge, Megatron-DeepSpeed and its forks.

One reader for all, because they share the iteration line, the arguments dump and the memory line, and only the whole
file shows which of them wrote it. Sources are named at each part; formats from v1.0 (2020) to core 0.20 (2026).
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import ClassVar, Final

from receipts.ingest.evidence import steady as megatron_steady
from receipts.ingest.evidence.frameworks.megatron import bridge as megatron_bridge
from receipts.ingest.evidence.frameworks.megatron import configuration as megatron_config
from receipts.ingest.evidence.frameworks.megatron import launch as megatron_launch
from receipts.ingest.evidence.frameworks.megatron import line as megatron_lines
from receipts.ingest.evidence.frameworks.megatron import memory as megatron_memory
from receipts.ingest.evidence.frameworks.megatron.block import Block
from receipts.ingest.evidence.frameworks.megatron.dump import BEGIN, Dump
from receipts.ingest.evidence.frameworks.megatron.iterations import Records
from receipts.ingest.evidence.frameworks.megatron.profile import Profiler
from receipts.ingest.evidence.reader import LineReader, Spans
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.shapes import Columns

_STARTED: Final = re.compile(r"\[before the start of training step\]|^\W*training \.\.\.")
_ENDED: Final = ("[after training is done]", "exiting program")
_FLOPS: Final = re.compile(r"Effective Tera Flops per GPU: (\d{1,9}(?:\.\d{1,6})?)")
_BARE: Final = re.compile(r"\s*[-+.\deE]{1,24}\s*$")
# The host as lanes name it: the lines were printed by its own training loop.
_HOSTS: Final = {
    "megatron": "megatron-lm",
    "megatron-bridge": "megatron-bridge",
    "megatron-deepspeed": "megatron-deepspeed",
}
# What begins a line of its own, and so no piece of the one before.
_OTHERS: Final = ("[Rank ", "iterations memory (", "time (ms)", "Step Time", "Effective Tera Flops")
# Longer than what stands before a record on its own line.
_PREFIX: Final = 60
_MAX_PIECES: Final = 10
_MAX_PIECE: Final = 2_000
_MAX_REMARKED: Final = 10


class Megatron(LineReader):
    """Iteration records, arguments, memory, and what they show of the run: divergence, warm-up, stalls."""

    source: ClassVar[str] = "megatron"
    anchors: ClassVar[tuple[bytes, ...]] = (
        b"elapsed time per iteration",
        b"elapsed_time_per_iteration_ms=",
        b"elapsed_time_per_iteration_s=",
        b"consumed_samples=",
        b"consumed samples:",
        b"memory (MB)",
        b"memory (GB)",
        b"- arguments -",
        b"using world size:",
        b"using torch.",
        b"number of parameters on",
        b"number of micro",
        b"padded vocab (size:",
        b"umber of parameters in billions",
        b"umber of active parameters in billions",
        b"Theoretical memory footprints",
        b"Step Time :",
        b"MODEL_TFLOP/s/GPU",
        b"Configuration Summary (Non-Default",
        b"_target_: megatron.bridge",
        b"> PyTorch version ..",
        b"> Megatron-Core version ..",
        b"> Transformer Engine version ..",
        b"NCCL version ",
        b"Falling back to Torch",
        b"before the start of training step",
        b"[after training is done]",
        b"exiting program",
        b"Effective Tera Flops per GPU",
        b"ActivityProfilerController",
        b" parallelism: dp=",
        b" parallelism: tp=",
        b"nproc_per_node ",
        b"max_nodes ",
        b"min_nodes ",
    )

    def __init__(self) -> None:
        super().__init__()
        self._dump = Dump()
        self._block = Block()
        self._times = megatron_bridge.StepTimes()
        self._profiler = Profiler()
        self._records = Records(self.reading, self._times, self._profiler)
        self._parameters = megatron_memory.Parameters()
        self._elastic = megatron_launch.Elastic()
        self._partial = ""
        self._partial_line = self._pieces = self._width = 0
        self._bridge = self._world = False

    def line(self, text: str, number: int) -> bool:
        """Take one line; True while a dump, a wrapped record or a wrapped memory line is open."""
        self._take(text, number)
        return bool(self._partial) or self._dump.open or self._block.open

    def spans(self, text: str) -> Spans:
        """Step and figures of one whole iteration record, or of one step time of Megatron-Bridge's."""
        if "Step Time" in text:
            return {} if "iteration" in text or "memory (" in text else megatron_bridge.spans(text)
        head = megatron_lines.HEAD.search(text)
        if head is None or head.start() > _PREFIX or "memory (" in text:
            return {}
        return megatron_lines.spans(text)

    def many(self, columns: Columns) -> bool:
        """Take iteration records, step times, or both in turn."""
        return self._records.many(columns) if "step" in columns else self._times.many(self.reading, columns)

    def finish(self) -> Reading | None:
        """The reading, its source named by the dialect that the whole file shows."""
        self._close()
        reading, records = self.reading, self._records
        if not records.count and len(self._times):
            self._times.alone(reading)
            records.starts.add(1)
        if not (reading.steps or reading.memory or self._dump.found or self._block.found or self._world):
            return None
        reading.records = max(1, len(reading.steps) + reading.steps.restarts)
        reading.source = self._dialect()
        if records.count or len(self._times):
            reading.see("framework", _HOSTS[reading.source], "backend")
        self._configure()
        interval = self._dump.found.get("log_interval", ("", 0))[0]
        records.judge(interval)
        self._steady(interval)
        return reading

    def _take(self, text: str, number: int) -> None:
        if self._partial and self._continues(text):
            return
        known = _is_own(text)
        if self._dump.open and not known:
            self._dump.take(text, number)
            return
        if self._block.open and not known:
            self._block.take(text, number)
            return
        # A record in the midst of a dump: the dump was cut, or another rank's line fell into it.
        self._own(text, number)

    def _own(self, text: str, number: int) -> None:
        """Take a line by what it holds, of which there may be several things."""
        head, rest = megatron_lines.HEAD.search(text), text
        if head is not None and head.start() > _PREFIX:
            # What was glued before a record was said before it.
            self._small(text[: head.start()], number)
            rest = text[head.start() :]
        if "iteration" in text:
            self._iterations(text, number)
        if "Step Time" in text:
            self._bridge = True
            self._times.take(self.reading, text)
        if "memory (" in text and not self._partial:
            self._memory(text, number)
        if "arguments -" in text and BEGIN.search(text):
            self._dump.begin()
        for marker in ("Configuration Summary (Non-Default", "_target_: megatron.bridge"):
            if marker in text and not self._block.open:
                self._bridge = True
                self._block.begin(text[: text.find(marker)])
        self._small(rest, number)

    def _small(self, text: str, number: int) -> None:
        """Lines that say one thing."""
        reading = self.reading
        self._world |= megatron_launch.world(reading, text, number)
        if "parallelism:" in text and "egatron" in text:
            megatron_launch.degrees(reading, text, number)
        if "version" in text:
            megatron_launch.versions(reading, text, number)
        if "umber of " in text:
            self._parameters.take(text, number)
        if "Theoretical memory" in text:
            megatron_memory.footprints(reading, text)
        if "Falling back to Torch" in text and len(reading.remarks) < _MAX_REMARKED:
            reading.remark("note", text.strip()[-200:], number)
        if "ActivityProfilerController" in text:
            self._profiler.take(text)
        megatron_launch.start(reading, text, number)
        self._elastic.take(text, number)
        self._records.fresh |= _STARTED.search(text) is not None
        reading.complete |= any(words in text for words in _ENDED)
        match = _FLOPS.search(text)
        if match and self._records.last is not None and float(match[1]) > 0:
            self._records.deepspeed = True
            reading.steps.add(self._records.last, {"tflops_per_second_per_chip": float(match[1])})

    # Records and memory, whole or wrapped.

    def _iterations(self, text: str, number: int) -> None:
        found = megatron_lines.records(text)
        for index, (start, record) in enumerate(found):
            if index == len(found) - 1 and "memory (" not in record and not megatron_lines.whole(record):
                self._hold(text[start:] if index else text, number)
            else:
                self._records.take(record, text, start, number)

    def _memory(self, text: str, number: int) -> None:
        if megatron_memory.cut(text):
            self._hold(text, number)
        else:
            self._bridge |= megatron_memory.rows(self.reading, text, number)

    def _hold(self, text: str, number: int) -> None:
        self._partial, self._partial_line, self._pieces, self._width = text, number, 1, len(text)

    def _continues(self, text: str) -> bool:
        """Take the line after a cut one; False where it is no piece of it, and the cut one is closed as it is."""
        strange = megatron_lines.HEAD.search(text) or any(words in text for words in _OTHERS)
        if strange or len(text) > _MAX_PIECE or not ("|" in text or _BARE.match(text)):
            self._close()
            return False
        memory = "memory (" in self._partial
        self._partial = self._partial + text if memory else megatron_lines.joined(self._partial, text)
        self._pieces += 1
        # A piece as long as the first one is of a terminal's width, and goes on below.
        whole = not megatron_memory.cut(self._partial) if memory else megatron_lines.whole(self._partial)
        if (whole and (memory or len(text) != self._width)) or self._pieces > _MAX_PIECES:
            self._close()
        return True

    def _close(self) -> None:
        text, number = self._partial, self._partial_line
        self._partial, self._pieces = "", 0
        for start, record in megatron_lines.records(text):
            self._records.take(record, text, start, number)
        if "memory (" in text:
            self._bridge |= megatron_memory.rows(self.reading, text, number)

    # What the whole file shows.

    def _dialect(self) -> str:
        if self._bridge:
            return "megatron-bridge"
        if self._records.deepspeed or self._dump.found.get("deepspeed", ("", 0))[0] == "True":
            return "megatron-deepspeed"
        # Both date every record since the learning rate has six decimals. Of those that were quoted without their date
        # Bridge's documentation has the losses of several depths, and most others are of Megatron-LM.
        undated = self._records.undated_depths and not (self._dump.found or self.reading.memory)
        return "megatron-bridge" if undated else "megatron"

    def _configure(self) -> None:
        reading = self.reading
        if self._dump.found:
            megatron_config.state(reading, self._dump.found)
        if self._block.found:
            megatron_bridge.configure(reading, self._block)
        self._elastic.state(reading)
        degrees = [reading.stated.get(f"parallelism.{name}") for name in ("tensor", "pipeline")]
        experts = [reading.stated.get(path) for path in ("parallelism.expert", "model.experts")]
        undivided = all(leaf is not None and leaf.value == 1 for leaf in degrees)
        together = any(leaf is not None and leaf.value in {0, 1} for leaf in experts) or not any(experts)
        self._parameters.state(reading, whole_model=undivided and together)
        batches = {value for value in reading.steps.column("global_batch") if value is not None}
        if len(batches) == 1 and "batch.global_batch" not in reading.stated and 0 < (size := batches.pop()) < 1e12:
            reading.state("batch.global_batch", int(size), f"global batch size: {int(size)}")
        if len(self._records.lengths) == 1 and "batch.sequence_length" not in reading.stated:
            length, number = next(iter(self._records.lengths.items()))
            reading.state("batch.sequence_length", length, f"actual seqlen: {length}", number)
        version = reading.stated.get("wheels.megatron-core")
        reading.version = None if version is None else str(version.value)

    def _steady(self, log_interval: str) -> None:
        reading, records = self.reading, self._records
        numbers = reading.steps.numbers()
        if len(numbers) > 1 and numbers[0] == numbers[1] - numbers[0]:
            # The first record averages over everything since the start.
            records.starts.add(numbers[0])
        gaps = {later - step for step, later in pairwise(numbers)}
        gaps |= {int(log_interval)} if log_interval.isdigit() and len(log_interval) < 10 else set()
        reading.steps.interval = gaps.pop() if len(gaps) == 1 else None
        arguments = {name: value for name, (value, _) in self._dump.found.items()}
        for step in self._profiler.steps(arguments, numbers):
            reading.not_steady[step] = "profile"
        megatron_steady.mark(reading, records.starts, records.carrying)


def _is_own(text: str) -> bool:
    """Whether a line holds a record, a step time or a rank's memory, wherever it stands."""
    record = "iteration" in text and ("per iteration" in text or "per_iteration" in text or "consumed samples" in text)
    return record or "Step Time :" in text or "iterations) memory (" in text or "iterations memory (" in text


READERS = (Megatron,)
