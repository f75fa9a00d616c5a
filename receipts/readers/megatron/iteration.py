"""Megatron's record of an iteration: the line of cells, its memory lines, and what both show of divergence.

Cells stand in any order between bars, as every version and fork since 2020 prints them. Source: `training_log` in
megatron/training/training.py, v1.0 to core 0.20, and its forks (Megatron-Bridge, Megatron-DeepSpeed, argonne-lcf's
``key=value`` form, GPT-NeoX, AMD's pairs of a current and an average figure).

Of memory both Megatron-LM and Megatron-Bridge print lines, predicted footprints, and parameter counts. Megatron-LM's MB
are 1024² bytes (`report_memory`, and the theoretical report); Megatron-Bridge prints allocator statistics by their own
names, in gigabytes of 10⁹ bytes. A divergence shows in Megatron's own ways, and which records ran under a profiler in
the profiler's stage lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final

from receipts.base.units import BYTES, MIB
from receipts.ingest import vocabulary
from receipts.ingest.literals import FIGURE
from receipts.ingest.reading import MemoryRow, Place, Reading
from receipts.ingest.record import Form, RecordRows
from receipts.ingest.steps import ABSENT
from receipts.ingest.vocabulary import Label

DATE: Final = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d{1,6})?\] *$")
# A date that was taken out of a document keeps its form: [xxxx-xx-xx xx:xx:xx].
CLOCK: Final = re.compile(r"[\w?*]{2}:[\w?*]{2}:[\w?*]{2}")
RANK: Final = re.compile(r"\[(?:rank|default) ?(\d{1,7})\]:|^ *(\d{1,7}): ")
# Cells that only forks of Megatron-DeepSpeed (and GPT-NeoX, which comes from one) print.
DEEPSPEED: Final = re.compile(
    r"(?:consumed.tokens|samples.per.second|(?:\[(?:lm|ds)\] ?)?tflops|(?:actual|curriculum).seqlen"
    r"|approx.flops.per.gpu|elapsed.time.per.iteration(?: \(s\)|.ms)) *[:=]|lm-loss:",
    re.IGNORECASE,
)
LONG_RATE: Final = re.compile(r"learning.rate *[:=] *\d\.\d{6}E")
# Losses of several depths of prediction.
DEPTHS: Final = re.compile(r"\| *mtp[ _]")
REINFORCEMENT: Final = re.compile(r"\| *(?:rl |grpo|rollout)", re.IGNORECASE)
LABELS: Final = vocabulary.line("megatron")

# A record's head: `iteration       12/    1000 |`, or `iteration=      12/ 1000 |`; NeMo's follows an epoch.
ITERATION: Final = Form(
    re.compile(r"(?<!, )iteration *=? *(?P<step>\d{1,12}) */ *\d{1,15}(?!\d)"),
    (
        # Before v1.0 nothing stood between a label and its figure but a blank.
        re.compile(
            rf"\|\s*(?P<label>[^|:=\s][^|:=]{{0,80}}?)(?:\s*[:=]\s*|\s+(?={FIGURE}\s*(?:\||$)))"
            rf"(?P<word>{FIGURE})(?P<unit>%|[GTP]FLOPS)?",
            re.IGNORECASE,
        ),
    ),
    end=re.compile(
        r".*?(?:number[ _]of[ _]skipped[ _]iterations *[:=] *\d.*(?:\|\s*|[:=] *[^|\s][^|]*)$|memory \()", re.IGNORECASE
    ),
)
FIRST_RANK: Final = "Step Time"
# Printed by the first rank, and the iteration by the last, so that either may come first.
STEP_TIME: Final = Form(
    re.compile(r"(?<!Average )(?=Step Time *:)"),
    (re.compile(rf"(?P<label>Step Time|GPU utilization) *: *(?P<word>{FIGURE})"),),
)
# Forks call tokens a second by many names: `tokens/s/gpu inst/harmonic mean`, `tokens per second per gpu (tok/s/gpu)`.
_TOKENS: Final = re.compile(r"tok(?:en)?s?(?:/s| per s|.{0,40}\((?:tok|token|tokens)/s)")
_CHIP: Final = re.compile(r"\b(?:gpu|npu|device|chip|card)s?\b")
_AUXILIARY: Final = re.compile(r"\b(?:mtp|balanc|load|z loss|aux|scale|valid|test|eval|indexer|sop|kd|distill)")


def normal_label(label: str) -> str:
    """A label in small letters with single blanks: ``tokens_per_gpu_per_second_tgs``, ``lm-loss`` and others meet."""
    return " ".join(label.lower().replace("_", " ").replace("-", " ").split())


@lru_cache(maxsize=4096)
def label_of(word: str) -> Label | None:
    """What a label's figure is; None where it is not kept."""
    label = normal_label(word)
    match = LABELS.get(label) or LABELS.get(label.removesuffix(" %"))
    if match is not None:
        return match
    if _TOKENS.match(label):
        return Label("tokens_per_second_per_chip" if _CHIP.search(label) else "tokens_per_second")
    return Label("loss") if label.endswith("loss") and not _AUXILIARY.search(label) else None


def closed(label: str, word: str) -> bool:
    """Whether a last cell without a bar was printed to its end: the formats have a fixed number of decimals."""
    label = normal_label(label)
    if label.startswith("number of") or label == "global batch size":
        return label.startswith("number of nan")
    if label.endswith("loss"):
        return re.search(r"[eE][-+]\d\d$|\.\d{5,6}$", word) is not None
    if label in {"grad norm", "samples per second"}:
        return re.match(r"\d+\.\d{3}$|nan|inf", word) is not None
    return re.match(r"\d+\.\d", word) is not None


MAX_ROWS: Final = 20_000
# The last of the cells that are kept ends it; a float is printed with its point.
MEMORY: Final = Form(
    re.compile(r"(?:\[Rank (?P<chip>\d{1,7})\] )?\(?after (?P<iterations>\d{1,12}) iterations\)? memory \((?:MB|GB)\)"),
    (re.compile(r"\| *(?P<label>[a-z][a-z \-]{0,40}): *(?P<word>[0-9]{1,20}(?:\.[0-9]{1,20})?(?:e[+-]?\d{1,3})?)"),),
    end=re.compile(r".*?(?:max (?:reserved|cached): *\d{1,20}\.\d|mem-max-reserved-[a-z]{4,10}: *\d).*(?<![|:\s])\s*$"),
)
_NAMES: Final[Mapping[str, str]] = vocabulary.table("megatron")["memory"]
_FOOTPRINT: Final = re.compile(r"(weight and optimizer|activation|total)=([0-9]{1,15}(?:\.[0-9]{1,6})?) MB")


def memory_rows(reading: Reading, text: str, line: int) -> bool:
    """Append every rank's memory on a line (several may be glued); True where Megatron-Bridge printed it."""
    heads = list(MEMORY.head.finditer(text))
    bridge = False
    for head, stop in zip(heads, [*(match.start() for match in heads[1:]), len(text)], strict=False):
        cells = dict(MEMORY.cells[0].findall(text, head.end(), stop))
        bridge |= any(label.startswith("mem-") for label in cells)
        # The cells that a receipt keeps, in bytes, by the fields of `MemoryRow`.
        figures: dict[str, int] = {}
        for label, value in cells.items():
            amount = float(value) * BYTES.get(label.rpartition("-")[2], MIB)
            name, size = _name(label), round(amount) if amount < 1e18 else None
            if name and size is not None:
                figures[name] = size
        step = int(head["iterations"])
        if not any(figures.values()):
            if figures and not reading.memory:
                reading.memory_unavailable = "every figure is zero: the allocator was not the accelerator's"
            continue
        reading.memory_unavailable = None
        word = cells.get("mem-alloc-retires", "0")
        retries = int(word) if word.isdigit() and len(word) < 16 else 0
        if retries:
            reading.counters["mem-alloc-retires"] = max(retries, reading.counters.get("mem-alloc-retires", 0))
        if len(reading.memory) < MAX_ROWS:
            row = MemoryRow(
                Place(line),
                int(head["chip"]) if head["chip"] else None,
                "post_step0" if step <= 1 else "steady",
                step,
                **figures,
            )
            reading.memory.append(row)
    return bridge


def label(word: str) -> Label | None:
    """What a cell of a memory line is; None where it is not kept."""
    name = _name(word)
    return Label(name) if name else None


def state_footprints(reading: Reading, text: str) -> None:
    """Megatron's own estimate of the bytes of its most loaded chip; the first one stands."""
    for surface, value in _FOOTPRINT.findall(text):
        reading.predicted.setdefault(surface, round(float(value) * MIB))


def _name(label: str) -> str:
    word = label.rsplit("-", 1)[0] if label.startswith("mem-") else label.strip()
    return _NAMES.get(word, "")


_BEGUN: Final = "Completed Stage: Warm Up"
_DONE: Final = ("Completed Stage: Collection", "Completed Stage: Post Processing")


class Profiler:
    """Follows PyTorch's profiler (Kineto) through its stage lines; ``active`` is whether it is collecting."""

    __slots__ = ("active",)

    def __init__(self) -> None:
        self.active = False

    def take(self, text: str) -> None:
        """Read a stage line: collecting begins when the warm-up is complete."""
        if _BEGUN in text:
            self.active = True
        elif any(words in text for words in _DONE):
            self.active = False

    def steps(self, arguments: Mapping[str, str], numbers: Iterable[int]) -> list[int]:
        """Records that `--profile` covers: it starts once ``profile_step_start`` iterations are done."""
        if arguments.get("profile") != "True":
            return []
        start, end = arguments.get("profile_step_start", ""), arguments.get("profile_step_end", "")
        if not (start.isdigit() and end.isdigit()) or max(len(start), len(end)) > 12:
            return []
        return [step for step in numbers if int(start) < step <= int(end)]


_MAX_REMARKED: Final = 10
_MAX_SPOILT: Final = 1_000
_MAX_KEPT: Final = 300_000


class Divergence:
    """Collects what records show; ``judge`` decides once the whole file was read."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.checked = False
        self._finite = False
        self._silent: list[tuple[int, int, int]] = []
        self._spoilt: list[tuple[int, str, int]] = []

    def take(self, rows: RecordRows, skipped: list[float] | None, nans: list[float]) -> None:
        """Take records with their counts of skipped and of NaN iterations; None where they print no skipped ones."""
        losses, norms = rows.figures.get("loss"), rows.figures.get("grad_norm", [])
        if losses is None:
            # A record without its end may have lost the loss with it.
            counts = skipped[: max(0, _MAX_KEPT - len(self._silent))] if skipped is not None else []
            silent = zip(rows.steps, counts, rows.lines, strict=False)
            self._silent += [(step, int(count), line) for step, count, line in silent if math.isfinite(count)]
        if math.isfinite(sum(losses or ()) + sum(norms)) and not any(nans):
            self._finite |= losses is not None
            return
        for at, (step, line) in enumerate(zip(rows.steps, rows.lines, strict=True)):
            if nans and nans[at] > 0:
                self._spoil(step, "counts a NaN iteration", line)
            if losses and not math.isfinite(losses[at]):
                self._spoil(step, "prints a loss that is not finite", line)
            elif losses and losses[at] != ABSENT:
                self._finite = True
            if norms and not math.isfinite(norms[at]) and skipped is not None and skipped[at] == 0:
                self._spoil(step, "prints a gradient norm that is not finite", line)

    def check(self, words: str, line: int) -> None:
        """Take what Megatron's own check of losses and gradients says, of which every rank may print one."""
        if not self.checked:
            self.reading.remark("note", f"Megatron's check {words}", line)
        self.checked = True

    def judge(self, log_interval: str, *, reinforced: bool) -> None:
        """Divergence: printed, counted, or shown by the absence of a loss from an iteration that trained.

        Megatron prints a loss only where it is not below zero, which NaN is not; an interval of nothing but skipped
        iterations has no loss, and that is no divergence. Of reinforcement learning (``reinforced``) none has.
        """
        if self._silent and not reinforced:
            # How many iterations each record averages over, where the numbers or the arguments show it.
            numbers = self.reading.steps.numbers()
            before = {step: step - earlier for earlier, step in pairwise(numbers)}
            if numbers and log_interval.isdigit() and len(log_interval) < 10:
                before[numbers[0]] = int(log_interval)
            for step, skipped, number in self._silent:
                if skipped == 0 or before.get(step, 0) > skipped:
                    self._spoil(step, "trained and prints no loss: Megatron leaves out a loss that is NaN", number)
        if self._spoilt or self.checked:
            self.reading.diverged = True
            for step, what, number in self._spoilt[:_MAX_REMARKED]:
                self.reading.remark("note", f"iteration {step} {what}", number)
        elif self._finite:
            self.reading.diverged = False

    def _spoil(self, step: int, what: str, line: int) -> None:
        if len(self._spoilt) < _MAX_SPOILT:
            self._spoilt.append((step, what, line))
