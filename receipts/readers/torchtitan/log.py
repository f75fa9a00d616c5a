"""torchtitan's log: step lines of every version since 2024, several ranks, and what is around them.

Sources: `torchtitan/components/metrics.py` (before 2025 `train.py`). ``tps`` (``wps`` before 2024-11-25) are tokens
a second a *device*, averaged since the last logged line, as are ``tflops`` and ``mfu``; the loss is the global mean at
the logged step; ``memory`` is the largest *reserved* pool of this rank since the last line, whose statistics are reset
there, in GiB.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar, Final

from receipts.ingest.literals import FIGURE, balanced
from receipts.ingest.reader import Spans
from receipts.ingest.reading import Reading, Reason
from receipts.ingest.record import Form, LineRecord, RecordRows
from receipts.ingest.record_reader import RANK as RANKS
from receipts.ingest.record_reader import RecordReader
from receipts.ingest.steps import ABSENT, Steps
from receipts.readers.torchtitan.configuration import RANK, STATEMENTS, ConfigBlock, TorchtitanConfig

# What is left of a colour code whose escape character was lost on the way: `[31mstep:`.
_RESIDUE = re.compile(r"(?:#?\\?x?0?33)?\[\d{1,3}(?:;\d{1,3}){0,5}m")
_EVALUATION = re.compile(r"valid(?:ate|ation)?\b|\bval\b|\beval", re.IGNORECASE)
_COUNTS = re.compile(r"(\d{1,9}) \w{2,5} (memory allocation retries|OOM errors thrown)")
_DUMP = re.compile(r"Dumping (?:profiler )?traces at step (\d{1,12})")
_START = re.compile(r"Training starts at step (\d{1,12})")
_RATE: Final = "tokens_per_second_per_chip"
# Of a rank that does not hold the last stage of the pipeline.
_NO_LOSS: Final = -1.0
# Characters before a record in which words make it one of an evaluation.
_NEAR: Final = 24


class Torchtitan(RecordReader, table="torchtitan"):
    """Reads torchtitan's console lines."""

    companions: ClassVar[tuple[bytes, ...]] = (b"elapsed time per iteration",)
    rank = RANK
    needs = frozenset()
    any_of = frozenset({"loss", _RATE})
    forms = (
        Form(
            # Forks add the last step and the share: `step: 640/644 = 99.3789%`. `acc` is Lingua's.
            re.compile(
                r"(?<!\w)step(?::\s*|=)(?P<step>\d{1,12})(?!\w)"
                r"(?:\s?/\s?\d{1,12}(?:\s?=\s?[\d.]{1,9}%)?)?\s*(?=[A-Za-z]|$)(?!acc:)",
                re.IGNORECASE,
            ),
            (
                re.compile(
                    r"(?<![\w/])m?(?P<label>loss|global_avg_loss|grad_norm|(?:peak_)?memory|[tw]ps|throughput\(tps\)|"
                    rf"tflops|mfu(?:\(%\))?)[:=]\s*(?P<word>{FIGURE})(?P<unit>GiB|%)?",
                    re.IGNORECASE,
                ),
            ),
            end=re.compile(r"(?=.*(?:[tw]ps|throughput\(tps\))[:=]\s*\d)(?=.*mfu(?:\(%\))?[:=]\s*\d)", re.IGNORECASE),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._config = TorchtitanConfig(self.reading)
        self._stated = 0
        self._block = ConfigBlock(most=4000)
        self._wrapped_trainer = False
        self._disturbed: dict[int | None, Reason] = {}
        self._counts: dict[str, int] = {}
        self._asked = True
        self._step_tokens: float | None = None
        self._foreign = self._lossless = False

    def line(self, text: str, number: int) -> bool:
        """Take one line, without what is left of its colours."""
        return super().line(_RESIDUE.sub("", text) if "[" in text and "m" in text else text, number)

    def spans(self, text: str) -> Spans:
        """The places of a record's figures, where no colour's rest is between them."""
        return {} if _RESIDUE.search(text) else super().spans(text)

    def find(self, text: str) -> list[LineRecord]:
        """The records on a line, but for those of an evaluation."""
        if "step" not in text and "Step" not in text and "STEP" not in text:
            return []
        records = super().find(text)
        return [it for it in records if not _EVALUATION.search(text, max(0, it.start - _NEAR), it.start)]

    def inside(self) -> bool:
        """Whether a printed configuration, or a line that a page wrapped, goes on."""
        return bool(self._block) or self._wrapped_trainer

    def rows(self, rows: RecordRows) -> None:
        """Take records; a step's time follows from the tokens of a step and the rate of a chip."""
        if self._block:
            self._document()
        figures = rows.figures
        ranks: list[int | None] = [*rows.counts.get(RANKS, [])] or [None] * len(rows.steps)
        if "peak_reserved_bytes" in figures:
            self.reading.memory_unavailable = "it is printed as 0.00GiB: the allocator was not the accelerator's"
        if _RATE in figures and (tokens := self._tokens()):
            figures["step_seconds"] = [tokens / rate if rate > 0 else ABSENT for rate in figures[_RATE]]
        if self._disturbed:
            for step, rank in zip(rows.steps, ranks, strict=True):
                if why := self._disturbed.pop(rank, None) or self._disturbed.pop(None, None):
                    self.reading.not_steady.setdefault(step, why)
        losses = figures.get("loss", ())
        if _NO_LOSS in losses:
            figures["loss"] = kept = [ABSENT if loss == _NO_LOSS else loss for loss in losses]
            if max(kept) == ABSENT:
                del figures["loss"]
            if not self._lossless:
                self._lossless = True
                what = "loss -1.0 is no loss: this rank does not hold the last stage of the pipeline"
                self.reading.remark("missing", what, rows.lines[list(losses).index(_NO_LOSS)])
        self.put(rows)

    def finish(self) -> Reading | None:
        """The reading, with each rank's peak and the file's arguments where nothing printed said otherwise."""
        posture = self._config.value("compile.posture")
        self.first_step = "warmup" if posture in (None, "eager") else "compile"
        super().finish()
        reading = self.reading
        reading.records += self._stated
        if not reading.records:
            return None
        self._config.settle()
        if self._foreign:
            # A wrapper of Megatron prints lines of this form, with another formula for FLOPs: the steps are Megatron's.
            reading.steps, reading.diverged = Steps(), None
            reading.not_steady.clear()
            reading.remark("note", "step lines of torchtitan's form in a log of Megatron: only their memory is read")
        if reading.memory:
            reading.memory_unavailable = None
        for at, row in enumerate(reading.memory):
            phase = "post_step0" if (row.step or 0) <= 1 else "steady"
            reading.memory[at] = replace(row, phase=phase, bytes_limit=self._config.capacity)
        reading.counters.update(self._counts)
        version = reading.stated.get("wheels.torchtitan")
        reading.version = version.value if version else None
        if reading.steps.interval is None:
            # The spacing of logged steps, the first aside: torchtitan logs step 1 and then every so many.
            gaps = {after - before for before, after in pairwise(reading.steps.numbers()[1:])}
            reading.steps.interval = gaps.pop() if len(gaps) == 1 else None
        return reading

    def _tokens(self) -> float | None:
        """Tokens of a step a chip; asked anew only after a line that may have stated something."""
        if self._asked:
            self._asked = False
            self._step_tokens = self._config.step_tokens_per_chip()
        return self._step_tokens

    def other(self, text: str, line: int) -> None:
        """Take a line of the configuration, or one that says what happened between the steps."""
        self._asked = True
        if self._block:
            if not self._block.add(text):
                self._document()
            return
        if "elapsed time per iteration" in text:
            self._foreign, self.follows = True, False
        elif self._wrapped_trainer:
            self._wrapped_trainer = False
            STATEMENTS.take(self.reading, text, line)
        elif not self._printed(text, line):
            self._event(text, line)

    def _printed(self, text: str, line: int) -> bool:
        """Whether a line prints a configuration, or begins one."""
        running = "Running with args: {" in text or "Running with configs: {" in text
        if ("Running with " in text or "Building " in text) and text.rstrip().endswith("{"):
            return self._block.open(text, text.rindex("{"), line) or True
        if running and balanced(text) > 0:
            return self._block.open(text, text.index("{"), line)
        if running:
            self._stated += self._config.document(text, line)
        return running

    def _event(self, text: str, line: int) -> None:
        if _START.search(text):
            self.fresh = True
        if match := _COUNTS.search(text):
            self._count(match, line)
        elif match := _DUMP.search(text):
            self._profiled(int(match[1]), RANK.findall(text))
        elif "Saving the checkpoint" in text or "Saving a full checkpoint" in text:
            ranks = RANK.findall(text)
            self._disturbed[int(ranks[-1]) if ranks else None] = "checkpoint"
        elif self._config.line(text, line):
            self._stated += "torchtitan" in text or "Trainer is initialized" in text or "device mesh with" in text
            self._wrapped_trainer = "Trainer is initialized" in text and text.rstrip().endswith(",")

    def _profiled(self, step: int, ranks: list[str]) -> None:
        self._disturbed[int(ranks[-1]) if ranks else None] = "profile"
        if step in self.reading.steps:
            self.reading.not_steady[step] = "profile"

    def _count(self, match: re.Match[str], line: int) -> None:
        name = "cuda_alloc_retries" if "retries" in match[2] else "cuda_ooms"
        if name not in self._counts:
            what = "the allocator ran full and freed its cache" if "retries" in match[2] else "allocations failed"
            self.reading.remark("note", f"{match[0]}: {what}", line)
        self._counts[name] = max(self._counts.get(name, 0), int(match[1]))

    def _document(self) -> None:
        self._asked = True
        self._stated += self._config.document(self._block.take(), self._block.line)


READERS = (Torchtitan,)
