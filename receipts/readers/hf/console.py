"""What the Hugging Face Trainer prints around its records: banner, blocks of several lines, progress bar, profile.

Batch sizes that the Trainer prints before it trains, and that a model card lists.

What goes on over several lines: a dictionary, or the table of metrics at the end of a training.

Where the step of a record is that does not hold it: on a progress bar, or on a line of the script's own.

Executed programs of a converted XLA profile, as scripts around the Trainer print them.

Records of the Hugging Face Trainer, wherever they stand: console dictionaries, metric blocks, trainer_state.json.

Sources: `transformers/trainer.py`, `trainer_utils.py` (`speed_metrics`, `TrainerMemoryTracker`), 4.0 to 5.x. The loss
is the mean since the last record, the gradient norm is the last one; with `logging_nan_inf_filter` (the default) a NaN
of a step is replaced before it is averaged, so a run that has diverged logs a loss of exactly 0.0 beside a NaN norm.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from typing import Any, Final

from receipts.base.units import SECONDS
from receipts.ingest import vocabulary
from receipts.ingest.literals import Brackets, integer, number
from receipts.ingest.reading import MemoryRow, Place, Reading

_BANNER = re.compile(
    r"((?:instantaneous )?batch size per (?:device|gpu)|total (?:train )?batch size|gradient accumulation steps|"
    r"total (?:optimization )?steps)[^=|]{0,80}=\s*([\d,]{1,30})(?![\d.])",
    re.IGNORECASE,
)
_ARGUMENT = re.compile(r"\b(logging_steps|logging_first_step)['\"]?\s*[=:]\s*(\w{1,12})\s*[,}]?")
_CARD = re.compile(r"^[\s>]*[-*] (total_train_batch_size|train_batch_size|gradient_accumulation_steps): (\d{1,12})\s*$")
# The first of these that is a part of a label is what it means.
_PATHS: Final = vocabulary.table("hf_trainer")["configuration"]


class Banner:
    """``sizes`` are those of `micro`, `global` and `accumulation`, ``steps`` how many the run is to have.

    ``of_script``: a loop of accelerate or diffusers printed it, whose logger is the script's, and not the Trainer.
    """

    def __init__(self, reading: Reading) -> None:
        self.sizes: dict[str, int] = {}
        self.steps: int | None = None
        self.logging_steps: int | None = None
        self._started = self._resumed = self._first_logged = False
        self.of_script = False
        self._reading = reading

    def take(self, text: str, line: int) -> bool:
        """Take one line; whether it is one of the banner, or prints an argument."""
        cells = list(_BANNER.finditer(text)) or list(_CARD.finditer(text))
        for cell in cells:
            label, size = cell[1].lower(), integer(cell[2]) or 0
            if size >= 1 and label.startswith("total") and label.endswith("steps"):
                self.steps = size
            elif size >= 1:
                path = next(path for word, path in _PATHS.items() if word in label)
                self.sizes[path.rpartition(".")[2].partition("_")[0]] = size
                self._reading.state(path, size, cell[0].strip(), line)
        if cells or (match := _ARGUMENT.search(text)) is None:
            begins, resumes = "unning training *****" in text, "ontinuing training from" in text
            self._started, self._resumed = self._started or begins, self._resumed or resumes
            self.of_script = self.of_script or (begins and "__main__" in text)
            return bool(cells) or begins or resumes
        value = integer(match[2])
        if match[1] == "logging_steps" and value is not None and value >= 1:
            self.logging_steps = value
        self._first_logged = self._first_logged or (match[1] != "logging_steps" and match[2].lower() == "true")
        return True

    def every(self, records: int) -> int | None:
        """Steps from one of so many records to the next; None where they do not follow from the file.

        As many records as the run was to have steps are one a step, whatever ``logging_steps`` was.
        """
        if not self._started or self._resumed:
            return None
        if self.logging_steps is None and records == self.steps:
            return 1
        return None if self._first_logged else self.logging_steps

    def state(self) -> None:
        """Data-parallel ranks follow from the three sizes."""
        whole, micro, accumulation = (self.sizes.get(name) for name in ("global", "micro", "accumulation"))
        if whole and micro and accumulation and whole % (micro * accumulation) == 0:
            data = whole // (micro * accumulation)
            self._reading.state("parallelism.data", data, f"{whole} = {micro} × {accumulation} × {data}")


_OPEN: Final = re.compile(r"\{\s*(?=['\"]|$)")
# The number of a task, which some launchers print before each line, looks like a key.
_TASK: Final = re.compile(r"^\s{0,20}\d{1,6}:\s(?=\s{0,80}['\"}])")
_METRIC = re.compile(r"(?:^|\s)([A-Za-z]\w{2,60})\s+=\s+(\S(?:.{0,60}\S)?)\s*$")
_MAX_METRICS: Final = 80
_WITHIN: Final = re.compile(r"[\w.-][\w.]|\d-")


class DictBlock(Brackets):
    """The lines of one dictionary, which a terminal may have broken at its width."""

    def open(self, text: str, line: int) -> str:
        """Open a block, whose brace may be on a line that nobody saw; the whole where it ends on the same line."""
        match = _OPEN.search(text)
        body = text[match.start() :] if match else "{" + _TASK.sub("", text)
        goes_on = self.begin(body, line)
        if goes_on and ":" in body:
            return ""
        whole = self.take()
        return "" if goes_on else whole

    def add(self, text: str) -> bool:
        """Take one more line; False where it is the last one."""
        text = _TASK.sub("", text)
        # A terminal's width broke a number or a name.
        glued = _WITHIN.fullmatch(self._lines[-1][-1:] + text[:1]) is not None
        goes_on = glued or not text.strip() or ":" in text
        return self.more(text, glued=glued) and goes_on


class MetricTable:
    """The lines below ``***** train metrics *****``; ``line`` is where they began."""

    def __init__(self) -> None:
        self.open = False
        self.line = 0
        self._values: dict[str, str] = {}

    def begin(self, line: int) -> None:
        """Open a table."""
        self.open, self.line, self._values = True, line, {}

    def take(self, text: str) -> bool:
        """Take one more line; whether it is one of the table."""
        match = _METRIC.search(text)
        if match is None or len(self._values) >= _MAX_METRICS:
            return False
        self._values[match[1].lower()] = match[2]
        return True

    def end(self) -> dict[str, str]:
        """The values by their names; empty where no table was open."""
        values, self._values, self.open = self._values, {}, False
        return values


# A narrow terminal has no room for the bar itself: `8% 15/200 [07:27<…`.
BAR = re.compile(r"(?<!\d)\d{1,3}%(?:\|[^|]{0,400}\|)?\s*(\d{1,12})/(\d{1,12})\s*\[")
# A bar whose steps take so long that it was drawn anew after each of them: tqdm draws ten times a second.
_SLOW_BAR = re.compile(
    r"(?<!\d)\d{1,3}%(?:\|[^|]{0,400}\|)?\s*(\d{1,12})/(\d{1,12})\s*"
    r"\[[^\]]{0,60},\s*(?:[\d.]{1,12}s/it|[0-4]\.\d{1,4}it/s)\]\s*$"
)
_TITLE = re.compile(r"([A-Za-z][\w ]{2,40}):\s*$")
HINT = re.compile(r"\b(?:global_)?step[=: ]+(\d{1,12})(?:\s*/\s*(\d{1,12}))?")
# Lines that would give the record below them a step, in a file of which none is a record.
_MAX_HINTS: Final = 1000


class Places:
    """What is around the records of a log. ``total`` is how many steps the run is to have, where that is known."""

    def __init__(self) -> None:
        self.total: int | None = None
        self._placed: int | None = None
        self._hint: tuple[int, int] | None = None
        self._hints = 0
        self._bar: tuple[int, str] = (0, "")

    def record(self, step: int | None) -> None:
        """Note that a record was taken, and its step where it has one."""
        self._placed, self._hints = step, 0

    def hint(self, text: str, line: int) -> bool:
        """Take a line of the script's own; whether lines like it are of use."""
        if match := HINT.search(text):
            self._hint = (line, int(match[1]))
            self._hints += 1
        return self._hints < _MAX_HINTS

    def bar(self, text: str, line: int) -> None:
        """Take a progress bar."""
        self._bar = (line, text)

    def alone(self, line: int) -> bool:
        """Whether nothing right above a line gives it a step."""
        return (self._hint is None or line - self._hint[0] > 1) and line - self._bar[0] != 1

    def above(self, line: int) -> int | None:
        """The step that the line above gives, or the same line above it."""
        if self._hint is not None and 0 <= line - self._hint[0] <= 1:
            return self._hint[1]
        return self._slow_bar() if line - self._bar[0] == 1 else None

    def below(self, text: str) -> int | None:
        """The step that a progress bar below a record tells, where it is the bar of the training."""
        match = BAR.search(text)
        return self._of_training(text, match) if match is not None else None

    def _slow_bar(self) -> int | None:
        """The step of the bar above a record, where its steps are slow enough for it to be the record's own."""
        text = self._bar[1].rpartition("\r")[2]
        match = _SLOW_BAR.search(text)
        step = self._of_training(text, match) if match is not None else None
        # One that was drawn again below a record is none of the next record's.
        return step if step != self._placed else None

    def _of_training(self, text: str, bar: re.Match[str]) -> int | None:
        """The step of a bar; None where it counts what another title says, or another number of steps."""
        title = _TITLE.search(text, max(0, bar.start() - 60), bar.start())
        other = title is not None and not title[1].startswith("Train")
        step, most = int(bar[1]), int(bar[2])
        return step if not other and 0 < step <= most == (self.total or most) else None


_EVENT: Final = re.compile(
    r"Event Metadata Name: ([^,(\s]{1,120})(?:\(\d+\))?,.{0,60}Duration: ([\d.]{1,24}) (s|ms|us|ns)\b"
)


class ProfileEvents:
    """Counts programs by name and adds up their seconds; ``records`` are those that were taken."""

    def __init__(self, reading: Reading) -> None:
        self.records = 0
        self._reading = reading
        self._modules: bool | None = None

    def take(self, text: str) -> bool:
        """Take the head of a line of the profile, or an event below it; whether it is one of both."""
        if "Event Metadata Name:" in text:
            match = _EVENT.search(text)
            if match is not None and self._modules is not False and match[2].count(".") <= 1:
                self.records += 1
                self._reading.time(match[1], float(match[2]) * SECONDS[match[3]] if match[2] != "." else 0.0)
            return True
        if "Line ID:" in text:
            self._modules = "XLA Modules" in text
            return True
        return False


_CLOCK = re.compile(r"(?:(\d{1,6}) days?, )?(\d{1,6}):(\d\d):(\d\d(?:\.\d{1,9})?)")
_MEBIBYTES = re.compile(r"(-?\d{1,15})MB", re.IGNORECASE)
_FLOS = re.compile(r"(\d{1,30})GF", re.IGNORECASE)
_MAX_UNNUMBERED: Final = 300_000
# Of ranks that print one run's runtime, in parts of it.
_RANKS_DIFFER: Final = 0.001
# Of a product of two figures with four digits each, in parts of it.
_FOUR_DIGITS: Final = 0.001
_COUNTS: Final = ("train_samples", "num_input_tokens_seen", "eval_samples")


class TrainerRecords:
    """Summaries, evaluations and tables of a training, and the records that have no step until a rule numbers them."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.records = 0
        self.bad = False
        self.unnumbered = (array("d"), array("d"))
        self._memory: dict[str, int] = {}
        self._memory_line = 0
        self._runtime: float | None = None
        self._planned = 0.0
        self._summed_at = -1
        self._evaluation = 0.0
        self._warned_rate = False

    def keep(self, losses: Sequence[float], norms: Sequence[float]) -> None:
        """Keep records that have no step."""
        self.records += len(losses)
        room = max(0, _MAX_UNNUMBERED - len(self.unnumbered[0]))
        self.unnumbered[0].extend(losses[:room])
        self.unnumbered[1].extend(norms[:room])

    def summary(self, values: dict[str, Any], line: int, steps: int = 0) -> None:
        """The last record of `train()`: runtime of the whole call, means over it. ``steps`` were taken before it."""
        self.records += 1
        seconds = duration(values.get("train_runtime"))
        if seconds is not None:
            before = steps + len(self.unnumbered[0])
            # The table repeats the dictionary's runtime, cut to hundredths, and ranks print their own.
            near = max(0.011, _RANKS_DIFFER * seconds if before == self._summed_at else 0.0)
            self._summed_at = before
            if self._runtime is None or abs(self._runtime - seconds) >= near:
                self.reading.time("train_runtime", seconds)
                self._runtime = seconds
            self._planned = self._planned or seconds * (number(values.get("train_steps_per_second")) or 0.0)
        loss = number(values.get("train_loss"))
        if loss is not None and loss - loss != 0:
            self.bad = True
        for name in _COUNTS:
            count = integer(values.get(name))
            if count is not None and count > 0:
                self.reading.counters[name] = count
        flos = values.get("total_flos")
        if isinstance(flos, str) and (match := _FLOS.fullmatch(flos)):
            self.reading.counters["total_flos"] = int(match[1]) << 30
        for name, value in values.items():
            if "_mem_gpu" in name:
                size = integer(value)
                if size is None and isinstance(value, str) and (match := _MEBIBYTES.fullmatch(value)):
                    size = int(match[1]) << 20
                if size is not None:
                    self._memory.setdefault(name, size)
                    self._memory_line = line
        # Whether tokens a second are of one rank: told by the tokens that the same record counts.
        rate, tokens = number(values.get("train_tokens_per_second")), number(values.get("num_input_tokens_seen"))
        if self._warned_rate or not rate or not tokens or not seconds:
            return
        if not (0 < rate * seconds < 1e18 and 0 < tokens < 1e18):
            return
        ranks = tokens / (rate * seconds)
        if ranks > 1.5 and abs(ranks - round(ranks)) < 0.02 * ranks:
            self._warned_rate = True
            what = f"train_tokens_per_second {rate:,.3f} counts one rank of {round(ranks)}: {tokens:,.0f} tokens in"
            self.reading.remark("contradiction", f"{what} {seconds:,.1f} s are {tokens / seconds:,.1f} a second", line)

    def evaluation(self, values: dict[str, Any], line: int) -> None:
        """A record of an evaluation or prediction; its time lies within the runtime of training."""
        self.records += 1
        for name, value in values.items():
            if name.endswith("_runtime") and name != "train_runtime":
                self._evaluation += duration(value) or 0.0
            elif name == "eval_loss" and (loss := number(value)) is not None and loss != loss:
                self.bad = True

    def one_a_step(self) -> bool:
        """Whether there are as many records without a step as steps follow from the summary's four digits."""
        count = len(self.unnumbered[0])
        return count > 1 and abs(self._planned - count) <= max(0.5, _FOUR_DIGITS * count)

    def finish(self) -> None:
        """State what the whole file shows."""
        losses = self.unnumbered[0]
        if losses:
            what = f"{len(losses):,} records carry no step: their losses cannot be placed"
            self.reading.remark("missing", what)
        # The tracker counts from the start of each stage, so a peak needs what was allocated before it.
        start, peaked = (self._memory.get(name) for name in ("before_init_mem_gpu", "train_mem_gpu_peaked_delta"))
        if peaked is not None and start is None:
            self.reading.remark("missing", "before_init_mem_gpu is not told: the memory deltas have no origin")
        elif peaked is not None and start is not None:
            deltas = (self._memory.get(f"{stage}_mem_gpu_alloc_delta", 0) for stage in ("init", "train"))
            used = start + sum(deltas)
            if used >= 0 and peaked >= 0:
                place = Place(self._memory_line)
                self.reading.memory.append(MemoryRow(place, phase="steady", bytes_used=used, peak_bytes=used + peaked))
        if self._runtime is not None and self._evaluation > 0:
            what = f"train_runtime of {self._runtime:,.1f} s holds {self._evaluation:,.1f} s of evaluation"
            self.reading.remark("note", f"{what}: no step time follows from it")


def duration(value: Any) -> float | None:
    """Seconds: a number, quoted or not, or a clock such as ``0:08:58.11`` or ``1 day, 2:03:04.00``."""
    if isinstance(value, str) and (match := _CLOCK.fullmatch(value.strip())):
        days, hours, minutes, seconds = match.groups()
        return int(days or 0) * 86400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)
    figure = number(value)
    return figure if figure is not None and 0 <= figure < 1e12 else None
