"""torchtitan's log: step lines of every version since 2024, several ranks, and what stands around them.

Sources: `torchtitan/components/metrics.py` (before 2025 `train.py`). ``tps`` (``wps`` before 2024-11-25) are tokens
a second a *device*, averaged since the last logged line, as are ``tflops`` and ``mfu``; the loss is the global mean at
the logged step; ``memory`` is the largest *reserved* pool of this rank since the last line, whose statistics are reset
there, in GiB.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise, repeat
from typing import ClassVar, Final

from receipts.ingest.evidence.frameworks.torchtitan.block import Block
from receipts.ingest.evidence.frameworks.torchtitan.configuration import TorchtitanConfig
from receipts.ingest.evidence.frameworks.torchtitan.line import RANK, STEP, cells, evaluation, spans
from receipts.ingest.evidence.frameworks.torchtitan.ranks import Ranks, keep_slowest, spread_slowest
from receipts.ingest.evidence.literal import balanced
from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.reader import LineReader, Spans
from receipts.ingest.evidence.reading import MemoryRow, Place, Reading, Reason
from receipts.ingest.evidence.shapes import Columns
from receipts.ingest.evidence.steps import ABSENT, Steps

# What is left of a colour code whose escape character was lost on the way: `[31mstep:`.
_RESIDUE = re.compile(r"(?:#?\\?x?0?33)?\[\d{1,3}(?:;\d{1,3}){0,5}m")
_COUNTS = re.compile(r"(\d{1,9}) \w{2,5} (memory allocation retries|OOM errors thrown)")
_DUMP = re.compile(r"Dumping (?:profiler )?traces at step (\d{1,12})")
_START = re.compile(r"Training starts at step (\d{1,12})")
_FIELDS: Final = {
    "loss": "loss",
    "grad_norm": "grad_norm",
    "tps": "tokens_per_second_per_chip",
    "tflops": "tflops_per_second_per_chip",
    "mfu": "mfu",
}
# A record that was broken before the first of its figures.
_BROKEN: Final = re.compile(r"(?<!\w)step:\s{0,8}\d{1,12}\s{0,8}(?:l(?:o(?:ss?:?)?)?)?\s{0,8}$")
# Longer than what stands before a record on its own line.
_PREFIX: Final = 160
_MAX_RECORD: Final = 500
_MAX_RANKS: Final = 65_536


class Torchtitan(LineReader):
    """Reads torchtitan's console lines."""

    source: ClassVar[str] = "torchtitan"
    anchors: ClassVar[tuple[bytes, ...]] = (
        b"tps: ",
        b"wps: ",
        b"WPS: ",
        b"GiB(",
        b"  loss:",
        b"INFO - step:",
        b"throughput(tps)=",
        b"Running with configs: {",
        b"Running with args: {",
        b"device mesh with",
        b"Trainer is initialized with",
        b"Training starts at step",
        b"GiB memory",
        b"Peak FLOPS used for computing MFU",
        b"Peak flops undefined",
        b"total parameters",
        b"Total parameter count: dense",
        b"ModelArgs(",
        b"with {",
        b"torchtitan version:",
        b"activation checkpointing to the model",
        b"Applied FSDP",
        b"Applied HSDP",
        b"Applied DDP",
        b"with torch.compile",
        b"Float8 ",
        b"memory allocation retries",
        b"OOM errors thrown",
        b"traces at step",
        b"Saving the checkpoint",
        b"Saving a full checkpoint",
        b"--training.",
        b"--parallelism.",
        b"batch_size = ",
        b"seq_len = ",
        b"parallel_degree = ",
        b"parallel_shard_degree = ",
        b"parallel_replicate_degree = ",
        b"[training]",
        b"[parallelism]",
        b"[validation]",
        b"[experimental]",
    )
    companions: ClassVar[tuple[bytes, ...]] = (b"elapsed time per iteration",)

    def __init__(self) -> None:
        super().__init__()
        self._config = TorchtitanConfig(self.reading)
        self._lines = 0
        self._block = Block()
        self._pending: tuple[int, int | None, str] | None = None
        self._wrapped_trainer = False
        self._broken = ""
        self._ranks = Ranks()
        self._peak: dict[int | None, tuple[float, int, int]] = {}
        self._disturbed: dict[int | None, Reason] = {}
        self._first_after_start = True
        self._counts: dict[str, int] = {}
        self._bad = self._good = False
        self._asked = True
        self._step_tokens: float | None = None
        self._started_here = self._foreign = False

    def line(self, text: str, number: int) -> bool:
        """Take one line; True within a printed configuration and after a record that the terminal wrapped."""
        if self._block.open:
            inside = STEP.search(text) is None
            if inside and self._block.take(text):
                return True
            self._document()
            if inside:
                return False
        if self._broken:
            # A label's last letters and a step's last digits go on where the line begins.
            within = self._broken[-1].isalpha() or (self._broken[-1].isdigit() and text[:1].isdigit())
            text, self._broken = f"{self._broken}{'' if within else ' '}{text}", ""
        elif "step:" in text and len(text) < _MAX_RECORD and _BROKEN.search(text):
            self._broken = text
            return True
        if "[" in text and "m" in text:
            text = _RESIDUE.sub("", text)
        first = STEP.search(text)
        if first is not None and first.start() > _PREFIX:
            # What was glued before a record was said before it.
            self._other(text[: first.start()], number)
        if self._steps(text, number):
            return self._pending is not None
        return self._other(text, number)

    def spans(self, text: str) -> Spans:
        """Rank, step and figures of one whole record, with nothing glued before it."""
        first = STEP.search(text)
        return {} if first is None or first.start() > _PREFIX else spans(text)

    def many(self, columns: Columns) -> bool:
        """Take records of ranks that were seen before, each of which goes on."""
        if self._first_after_start or self._disturbed:
            return False
        try:
            steps = columns.whole("step")
            ranks: Sequence[int | None] = columns.whole("rank") if "rank" in columns else [None] * len(steps)
            figures = {field: columns.floats(name) for name, field in _FIELDS.items() if name in columns}
        except ValueError:
            return False
        if 1 in steps or not self._ranks.follow(steps, ranks):
            return False
        self._lines += len(steps)
        self._pending = None
        if "memory" in columns:
            self._memories(columns, ranks, steps)
        self._put(steps, ranks, figures)
        return True

    def finish(self) -> Reading | None:
        """The reading, with each rank's peak and the file's arguments where nothing printed said otherwise."""
        if not self._lines:
            return None
        self._config.settle()
        reading = self.reading
        reading.records = self._lines
        if self._foreign:
            # A wrapper of Megatron prints lines of this form, with another formula for FLOPs: the steps are Megatron's.
            reading.steps = Steps()
            reading.not_steady.clear()
            reading.remark("note", "step lines of torchtitan's form in a log of Megatron: only their memory is read")
        elif self._bad or self._good:
            reading.diverged = self._bad
        for rank, (gib, step, line) in sorted(self._peak.items(), key=lambda item: -1 if item[0] is None else item[0]):
            reading.memory.append(
                MemoryRow(
                    Place(line),
                    chip=rank,
                    phase="post_step0" if step <= 1 else "steady",
                    step=step,
                    peak_reserved_bytes=round(gib * 2**30),
                    bytes_limit=self._config.capacity,
                )
            )
        for what, count in self._counts.items():
            reading.counters[what] = count
        if reading.steps.interval is None:
            reading.steps.interval = _interval(reading.steps.numbers())
        return reading

    def _steps(self, text: str, line: int) -> bool:
        """Records of a line in any version's form, several where lines were glued; a wrapped one's rest."""
        starts = list(STEP.finditer(text))
        found = [match for match in starts if not evaluation(text, match.start())]
        if not found:
            pending, self._pending = self._pending, None
            return pending is not None and self._rest(pending, text, line)
        following = {match.start(): after.start() for match, after in pairwise(starts)}
        ends = [following.get(match.start(), len(text)) for match in found]
        took = False
        rank, before = None, 0
        for match, end in zip(found, ends, strict=True):
            if named := RANK.findall(text, before, match.start()):
                rank = int(named[-1])
            before = match.end()
            values, memory = cells(text[match.end() : end])
            if "loss" not in values and "tokens_per_second_per_chip" not in values:
                continue
            step = int(match[1])
            if memory is not None:
                self._memory(memory, step, rank, line)
            whole = "tokens_per_second_per_chip" in values and "mfu" in values
            self._pending = None if whole else (step, rank, text[match.end() : match.end() + _MAX_RECORD])
            self._record(step, values, rank)
            took = True
        return took

    def _rest(self, pending: tuple[int, int | None, str], text: str, line: int) -> bool:
        """The rest of a record that a terminal's width or a page broke, wherever it did."""
        step, rank, before = pending
        # A terminal breaks numbers, an editor breaks at blanks: a number that goes on is one number.
        within = bool(before and text) and before[-1] in "0123456789.," and text[0] in "0123456789.,%G"
        together = before + text.strip()
        joined = (
            together if within else max(f"{before.rstrip()} {text.strip()}", together, key=lambda it: len(cells(it)[0]))
        )
        (values, memory), (had, kept) = cells(joined), cells(before)
        known = {name: value for name, value in values.items() if value is not None}
        if len(joined) > _MAX_RECORD or (known.items() <= had.items() and memory == kept):
            return False
        self._add(step, rank, values, memory, line)
        if "tokens_per_second_per_chip" not in values or "mfu" not in values:
            self._pending = (step, rank, joined)
        return True

    def _add(self, step: int, rank: int | None, values: dict[str, float | None], memory: str | None, line: int) -> None:
        if memory is not None:
            self._memory(memory, step, rank, line)
        if (rate := values.get("tokens_per_second_per_chip")) and (tokens := self._tokens()):
            values["step_seconds"] = tokens / rate
        self.reading.steps.add(step, values)

    def _record(self, step: int, values: dict[str, float | None], rank: int | None) -> None:
        steps = self.reading.steps
        if (rate := values.get("tokens_per_second_per_chip")) and (tokens := self._tokens()):
            values["step_seconds"] = tokens / rate
        several = self._ranks.several
        if self._ranks.go_on(step, rank) and several and step in steps:
            keep_slowest(steps, step, values)
        steps.put(step, values, rank)
        self._lines += 1
        if self._first_after_start or step == 1:
            if step == 1 or self._started_here:
                self.reading.not_steady[step] = "compile" if self._compiled else "warmup"
            self._first_after_start = False
        if self._disturbed and (why := self._disturbed.pop(rank, None) or self._disturbed.pop(None, None)):
            self.reading.not_steady.setdefault(step, why)
        self._judge(values.get("loss"), values.get("grad_norm"))

    def _put(self, steps: list[int], ranks: Sequence[int | None], figures: dict[str, list[float]]) -> None:
        """Put many records, and judge their losses, as `_record` does one."""
        rates = figures["tokens_per_second_per_chip"]
        figures["mfu"] = [percent / 100 for percent in figures["mfu"]]
        if tokens := self._tokens():
            figures["step_seconds"] = [tokens / rate if rate else ABSENT for rate in rates]
        losses, norms = figures["loss"], figures.get("grad_norm", [0.0])
        if math.isfinite(sum(losses)) and math.isfinite(sum(norms)):
            self._good = True
        else:
            for loss, norm in zip(losses, norms if len(norms) == len(losses) else repeat(None), strict=False):
                self._judge(loss, norm)
        if not self._ranks.several:
            self.reading.steps.extend(steps, figures, ranks[0])
            return
        spread_slowest(self.reading.steps, steps, figures)
        self.reading.steps.merge(steps, ranks, figures)

    def _judge(self, loss: float | None, norm: float | None) -> None:
        if loss is not None:
            if loss - loss != 0 or (norm is not None and norm != norm):
                self._bad = True
            else:
                self._good = True

    @property
    def _compiled(self) -> bool:
        return self._config.value("compile.posture") not in (None, "eager")

    def _tokens(self) -> float | None:
        """Tokens of a step a chip; asked anew only after a line that may have stated something."""
        if self._asked:
            self._asked = False
            self._step_tokens = self._config.step_tokens_per_chip()
        return self._step_tokens

    def _memories(self, columns: Columns, ranks: Sequence[int | None], steps: list[int]) -> None:
        said = list(zip(ranks, columns.words("memory"), strict=True))
        # Where each figure stands first: one that is told again changes nothing.
        places = dict(zip(reversed(said), range(len(said) - 1, -1, -1), strict=True))
        for (rank, word), at in sorted(places.items(), key=lambda item: item[1]):
            self._memory(word.decode(), steps[at], rank, columns.lines[at])

    def _memory(self, text: str, step: int, rank: int | None, line: int) -> None:
        gib = number(text)
        if gib is None or not 0 <= gib < 1e6:
            return
        peak = self._peak.get(rank)
        if (peak is None and len(self._peak) < _MAX_RANKS) or (peak is not None and gib > peak[0]):
            self._peak[rank] = (gib, step, line)

    def _other(self, text: str, line: int) -> bool:
        self._asked = True
        if "elapsed time per iteration" in text:
            self._foreign, self.follows = True, False
            return False
        if self._wrapped_trainer:
            self._wrapped_trainer = False
            self._config.trainer(text, line)
            return False
        running = "Running with args: {" in text or "Running with configs: {" in text
        if ("Running with " in text or "Building " in text) and text.rstrip().endswith("{"):
            return self._block.begin(text, text.rindex("{"), line)
        if running and balanced(text) > 0:
            return self._block.begin(text, text.index("{"), line)
        if running:
            self._lines += self._config.document(text, line)
            return False
        if match := _START.search(text):
            self._first_after_start = self._started_here = True
        if match := _COUNTS.search(text):
            self._count(match, line)
        elif match := _DUMP.search(text):
            self._profiled(int(match[1]), RANK.findall(text))
        elif "Saving the checkpoint" in text or "Saving a full checkpoint" in text:
            ranks = RANK.findall(text)
            self._disturbed[int(ranks[-1]) if ranks else None] = "checkpoint"
        elif self._config.line(text, line):
            self._lines += "torchtitan" in text or "Trainer is initialized" in text or "device mesh with" in text
            self._wrapped_trainer = "Trainer is initialized" in text and text.rstrip().endswith(",")
        return self._wrapped_trainer

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
        self._lines += self._config.document(*self._block.end())


def _interval(numbers: list[int]) -> int | None:
    """The spacing of logged steps, the first aside: torchtitan logs step 1 and then every so many."""
    gaps = {after - before for before, after in pairwise(numbers[1:])}
    return gaps.pop() if len(gaps) == 1 else None


READERS = (Torchtitan,)
