"""MaxText's log and its metrics file: steps, configuration, memory, FLOPs a step, evaluations, restarts.

MaxText's metrics as JSON lines: `metrics_file`, and `metrics_step_000000_to_step_000099.txt` in a bucket.
`metric_logger.py` writes one object a step, ``perf/…`` and ``learning/…`` beside ``step`` and ``run_name``, and one
of ``eval/…`` for each evaluation. Floats are printed with all their digits; rates are those of one JAX device.

MaxText's log: steps, configuration, system, planned and used memory, FLOPs a step, evaluations, restarts. Read in
`metric_logger.py`, `max_utils.py`, `maxtext_utils.py` and `train.py` of 2023 to August 2026. Rates are those of one
JAX device, which is a chip on every TPU to v6e and on GPUs, and half a chip on TPU7x.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite, nan
from typing import ClassVar, Final

from receipts.base.units import CLOCK, SCALES
from receipts.ingest import vocabulary
from receipts.ingest.dispatched import Events, not_steady
from receipts.ingest.literals import FIGURE, number
from receipts.ingest.reader import Spans
from receipts.ingest.reading import Reading, Reason
from receipts.ingest.record import Form, RecordRows
from receipts.ingest.record_reader import RANK, RecordReader
from receipts.ingest.steps import ABSENT, StepTable, rising
from receipts.ingest.vocabulary import Label
from receipts.readers.maxtext import configuration as maxtext_config
from receipts.readers.maxtext.configuration import Hosts, MemoryLines

_NAME: Final = re.compile(r'"run_name": ?"([^"]{1,200})"')


class MaxTextMetrics(RecordReader):
    """Reads the JSON lines of MaxText's metrics, wherever they are; a page may have wrapped an object."""

    source: ClassVar[str] = "maxtext-metrics"
    anchors: ClassVar[tuple[bytes, ...]] = (b'"learning/', b'"perf/step_time_seconds"', b'"eval/avg_loss"')
    labels: ClassVar[Mapping[str, Label]] = {
        **{name: Label(field) for name, field in vocabulary.table("maxtext")["tracker"]["metrics"].items()},
        "perf/per_device_tflops": Label("tflops"),
        "eval/avg_loss": Label("validation"),
        "step": Label("number"),
    }
    any_of = frozenset({"loss", "step_seconds", "validation"})
    needs = frozenset()
    placeholders = False
    # What follows from the first steps is for `not_steady` to say.
    finds_firsts = False
    forms = (
        Form(
            re.compile(r'\{(?=\s*"(?:learning|perf|eval)/)'),
            (re.compile(rf'"(?P<label>[a-z]+/\w{{1,60}}|step)": ?(?P<word>{FIGURE}|-?Infinity)(?=\s*[,}}])', re.I),),
            end=re.compile(r".*?\}"),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._events = Events()

    def rows(self, rows: RecordRows) -> None:
        """Take steps, or evaluations, which are none."""
        tera = rows.figures.pop("tflops", [0.0])[0]
        losses = rows.figures.pop("validation", None)
        # The writer keeps the number of the step as a float.
        rows.steps = [int(number) for number in rows.figures.pop("number", ()) if 0 <= number < 1e15]
        if len(rows.steps) < len(rows.lines):
            self.reading.remark("broken", "metrics that are no whole JSON object", rows.lines[0])
        elif not rows.figures.keys() & self.any_of:
            self.taken += len(rows.steps)
            self._events.after.update(dict.fromkeys((step + 1 for step in rows.steps), "eval"))
            for loss, line in zip(losses or (), rows.lines, strict=False):
                self.validated(loss, "eval/avg_loss", line)
        else:
            self.put(rows)
            if 0 < tera < 1e12:
                text = f"perf/per_device_tflops: {tera}"
                self.reading.state("measurement.flops_per_step_per_chip", tera * 1e12, text, rows.lines[0])
            if name := _NAME.search(rows.text):
                self.reading.state("run.label", name[1], name[1], rows.lines[0])

    def finish(self) -> Reading | None:
        """The reading; a file of evaluations only has no steps."""
        reading = super().finish()
        if reading is None:
            return None
        self._events.first = {0, *reading.steps.begun} & set(reading.steps)
        not_steady(reading, self._events)
        if len(reading.steps):
            reading.see("framework", "maxtext", "backend")
        return reading


# The last figure may be glued to the prefix of the next line, which begins with a letter or a bracket.
_CELL = re.compile(
    r"(?<![\w/])(?P<label>[A-Za-z_][A-Za-z_/]*):\s*(?P<word>-?(?:\d{1,15}(?:\.\d{1,12})?(?:e[-+]?\d{1,3})?|nan|inf))"
    r"(?=[\s,\"'`\]|.(\[A-Z]|$)"
)
_END = re.compile(r".*?\bloss:\s*(?:-?\d{1,9}\.\d{3}|nan|inf)")
_PARAMETER = re.compile(r"Config param (\w{1,100}): ?(.*)")
_COUNT = re.compile(r"number parameters: ([\d.]{1,20})\s*(billion|million|trillion)")
_DEVICES = re.compile(r"Num_devices: (\d{1,7}), shape \(?([\d, ]{1,200})")
_FLOPS = re.compile(r"total TFLOPs(?: will be|:)\s*([\d.]{1,20})", re.IGNORECASE)
_DURATION = re.compile(r"END_TO_END stage duration: (?P<all>(?:[\d.]{1,20}(?:h|ms|us|ns|m|s)){1,4})")
_PART = re.compile(r"([\d.]+)(h|ms|us|ns|m|s)")
_EVAL = re.compile(
    r"(?:eval metrics after step:|Completed eval after train step)\s*(\d{1,15})\b.{0,40}?loss[=:]\s*(\S{1,30})"
)
_FOOTNOTE = re.compile(r"\| *\d[\d,.]{0,20} ?s? ?\* *\|")
_SAVED = re.compile(r"[Ss]aved a checkpoint at step (\d{1,15})")
# nsys's capture, and the session of XLA's own profiler.
_CAPTURE = re.compile(
    r"(?P<on>Capture range started|Profiler session started)|Capture range ended|Profiler session tear"
)
# How many lines further a record may go on: `Per train step:` prints three, a backend names its platform below.
_HOLD: Final = 3
# Characters before a record in which its worker and its phase are named.
_PREFIX: Final = 300
_RESTARTS: Final = (
    ("Slice down event", "a slice went down"),
    ("Elastic attempt", "an elastic attempt began"),
    ("Restoring checkpoint from", "a checkpoint was restored"),
)


class MaxText(RecordReader, table="maxtext"):
    """Reads what MaxText logs, on one host or on several that write to one file."""

    needs = frozenset()
    # What follows from the first steps is for `not_steady` to say.
    finds_firsts = False
    # A rate of infinity shows a step that the host did not wait for.
    placeholders = False
    forms = (
        Form(
            re.compile(r"completed (?:profiler activation/deactivation )?step:\s*(?P<step>\d{1,12})\b"), (_CELL,), _END
        ),
        # A line quoted without its first word still has the seconds behind the number; eval steps have neither.
        Form(
            re.compile(r"(?<![\w/] )(?<!\w)step:\s*(?P<step>\d{1,12})(?=,\s*seconds:.{0,200}?TFLOP/s)"), (_CELL,), _END
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._events = Events()
        self._config = maxtext_config.Parameters()
        self._memory = MemoryLines()
        self._devices: int | None = None
        self._shape: tuple[int, ...] = ()
        self._weights: float | None = None
        self._hold = 0
        self._want = ""
        self._table = StepTable(vocabulary.table("maxtext")["table"], fewest=2)
        self._hosts = Hosts()
        self._last_step = -1
        self._captured = False

    def spans(self, text: str) -> Spans:
        """The places of a record's figures, on a line that names no worker and no phase."""
        before = text[: text.find("step:")]
        return {} if "(" in before or "[Ramp" in before or "profiler" in before else super().spans(text)

    def inside(self) -> bool:
        """Whether a table goes on, or what a line announced has not come."""
        return self._hold > 0 or self._table.open

    def rows(self, rows: RecordRows) -> None:
        """Take records; one that repeats step and loss of the last few is another host's."""
        weights = rows.figures.pop("total_weights", [self._weights])
        self._weights = weights[-1]
        if 0 in weights:
            # A process without the last stage of a pipeline has no token to lose on, and prints a loss of zero.
            losses = zip(rows.values("loss"), weights, strict=False)
            rows.figures["loss"] = [ABSENT if weight == 0 else loss for loss, weight in losses]
        if "Samples/s/device" in rows.text or "Frames/s/device" in rows.text:
            self.reading.see("framework", "maxdiffusion", "backend", rows.lines[0])
        before = rows.text[: rows.text.rfind("step:")][-_PREFIX:]
        rank = self._hosts.named(before)
        why: Reason | None = "profile" if "profiler activation" in before[-40:] or self._captured else None
        why = why or ("warmup" if "[Rampup" in before[-60:] else None)
        if why is not None:
            for step in rows.steps:
                self._events.marked.setdefault(step, why)
        if rank == -1 and rising(rows.steps, self._last_step):
            self._last_step = rows.steps[-1]
            self.put(rows)
            return
        for row in rows:
            # Behind a start of the process a step that was printed before is another attempt's.
            copy = rank == -1 and not self.fresh
            of = self._hosts.copy(row, self.reading.steps, self._last_step) if copy else rank
            if of is not None and of >= 0:
                row.counts[RANK] = [of]
            self.put(row)
            self._last_step = row.steps[0]

    def other(self, text: str, number: int) -> None:
        """Take a line that is no record."""
        for row in self._table.take(text) if self._table.open else ():
            # A figure with a footnote is an exception, whatever the footnote says.
            if reason := _reason(row.note) or ("stall" if _FOOTNOTE.search(text) else None):
                self._events.marked[row.step] = reason
            self.step(row.step, row.figures, number)
        if self._table.open:
            return
        if self._hold:
            self._hold -= 1
            if self._want == "flops" and (match := _FLOPS.search(text)):
                self._flops(match, number)
            elif self._want == "backend" and maxtext_config.state_platform(self.reading, text, number):
                self._hold = 0
        reading = self.reading
        if match := _PARAMETER.search(text):
            self._config.add(match[1], match[2], number)
            self._note()
        elif match := _COUNT.search(text):
            total = round(_float(match[1]) * SCALES[match[2]])
            if total > 0:
                reading.state("model.parameters_total", total, match[0], number)
            self._note()
        elif match := _DEVICES.search(text):
            self._mesh(match, number)
        elif "Per train step" in text:
            if match := _FLOPS.search(text):
                self._flops(match, number)
            else:
                self._hold, self._want = _HOLD, "flops"
        elif "System Information" in text:
            goes_on = maxtext_config.state_system(reading, text, number)
            if goes_on is not None:
                self._note()
                self._hold, self._want = (_HOLD, "backend") if goes_on else (self._hold, self._want)
        elif "Using (GB)" in text or "Memstats" in text or "size: " in text:
            if self._memory.take(reading, text, number):
                self._note()
        elif match := _EVAL.search(text):
            reading.records += 1
            self._events.after[int(match[1]) + 1] = "eval"
            value = _float(match[2].rstrip(",."), nan)
            self.validated(value, f"{value:g}", number)
        elif "tuning params for model are" in text:
            self._config.add_dictionary(text[:65536], number)
            self._note()
        else:
            if "|" in text and "TFLOP/s" in text:
                self._table.begin(text)
            self._aside(text, number)

    def finish(self) -> Reading | None:
        """The reading; libtpu's compile lines and checkpoints alone are not MaxText's."""
        super().finish()
        reading = self.reading
        if not reading.records:
            return None
        self._events.first = self.starts | ({0, *reading.steps.begun} & set(reading.steps))
        self._events.peak_tflops = maxtext_config.peak_tflops(reading)
        for step in maxtext_config.profiled(self._config, min(reading.steps.numbers(), default=0)):
            self._events.marked.setdefault(step, "profile")
        if self._devices is None:
            self._devices = maxtext_config.devices_by_weights(self._config, self._weights)
        maxtext_config.state(reading, self._config, self._devices, self._shape)
        if self._weights and isfinite(self._weights):
            targets = round(self._weights)
            reading.state("measurement.target_tokens_per_step", targets, f"total_weights: {targets}")
        if self._devices is not None:
            reading.state("hardware.chips", self._devices, f"{self._devices} devices")
        if len(reading.steps):
            not_steady(reading, self._events)
        if self._config.total:
            reading.see("framework", "maxtext", "backend")
            reading.state("path.intended.framework", "maxtext", f"{self._config.total} configuration parameters")
            reading.state("compile.posture", "jit", "MaxText compiles the whole train step")
        return reading

    def _aside(self, text: str, number: int) -> None:
        """What other programs print too: kept, and never a sign of MaxText by itself."""
        compile_counts = self.reading.compile
        if match := _DURATION.search(text):
            seconds = sum(_float(value) * CLOCK[unit] for value, unit in _PART.findall(match["all"]))
            compile_counts.seconds = (compile_counts.seconds or 0.0) + seconds
            compile_counts.compiles = (compile_counts.compiles or 0) + 1
        elif match := _SAVED.search(text):
            self._events.after[int(match[1]) + 1] = "checkpoint"
        elif match := _CAPTURE.search(text):
            self._captured = match["on"] is not None
        elif "in function 'mha_" in text:
            self.reading.see("attention", "pallas_flash", "kernels", number)
        else:
            for words, meaning in _RESTARTS:
                if words in text:
                    self.fresh = True
                    if self._last_step >= 0:
                        self.reading.remark("note", f"{meaning}; the next step is not steady", number)

    def _note(self) -> None:
        """A record of the beginning of a process: the step that follows is its first."""
        self.reading.records += 1
        self.fresh |= self._last_step < 0

    def _mesh(self, match: re.Match[str], number: int) -> None:
        shape = tuple(int(part) for part in re.findall(r"\d{1,7}", match[2]))
        devices = int(match[1])
        if self._devices is not None and devices != self._devices:
            text = f"hardware.chips was {self._devices} devices before, and is {devices} from here on"
            self.reading.remark("contradiction", text, number)
        if self._devices is None and devices:
            self.reading.state("hardware.chips", devices, match[0], number)
            self._devices, self._shape = devices, shape
        self._note()

    def _flops(self, match: re.Match[str], number: int) -> None:
        tera = _float(match[1])
        self._hold = 0
        self._note()
        # A tiny model's is printed as 0.00, which states nothing.
        if 0 < tera < 1e12:
            self.reading.state("measurement.flops_per_step_per_chip", round(tera * 1e12), match[0], number)


def _reason(note: str) -> Reason | None:
    """What the note of a table's row says of its step."""
    words: dict[Reason, bool] = {
        "compile": "compile" in note,
        "warmup": "warmup" in note or "warm-up" in note,
        "profile": "profil" in note and "post-profil" not in note and "after profil" not in note,
        "checkpoint": "checkpoint" in note,
        "eval": "eval" in note.split(),
    }
    return next((why for why, there in words.items() if there), None)


def _float(text: str, otherwise: float = 0.0) -> float:
    value = number(text)
    return value if value is not None and isfinite(value) else otherwise


READERS = (MaxText, MaxTextMetrics)
