"""What experiment trackers keep, read by the names of the framework that wrote it: metrics by step, and settings.

Names of metrics by the framework that writes them to TensorBoard and Weights & Biases. The same word means other
things elsewhere (`throughput` is TFLOP/s a GPU in Megatron-LM, tokens a second in others), so a dialect is known by
names that only it writes, and only then do its other names mean anything. The names are data: ``tracker`` in the
vocabulary's tables.

Named figures of steps put into a reading, once it is known whose names they are.

Configuration as experiment trackers keep it: names of arguments, flat or nested, and whose they are. Megatron-LM's
arguments, torchtitan's job configuration, transformers' training arguments (with the model's own beside them), and
MaxText's parameters. A name that several frameworks use means something only beside one that is a framework's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from receipts.ingest.arguments import Arguments, Leaves
from receipts.ingest.dispatched import SLOW, Events, not_steady
from receipts.ingest.literals import flattened
from receipts.ingest.megatron import state_arguments as state_megatron
from receipts.ingest.reader import configurations
from receipts.ingest.reading import Peaks, Reading
from receipts.ingest.record_reader import SIZES
from receipts.ingest.steps import FIELDS
from receipts.ingest.vocabulary import Label, labels, table, tables

RATE: Final = "steps_per_second"
_KEPT: Final = frozenset((*FIELDS, *SIZES, RATE))
_FOREIGN = re.compile(r"[^-/\w.]")
# The first that fits counts: nanotron has a name that Megatron-LM's is spelled as, and Megatron-Bridge writes
# Megatron-LM's names and more.
_TABLES: Final = (
    *("torchtitan", "nanotron", "megatron_bridge", "megatron", "nemo"),
    *("maxtext", "t5x", "levanter", "hf_trainer", "olmo", "composer", "fms_fsdp", "receipts"),
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One framework's names. One of ``signs`` shows it; the first of several names of one field counts.

    ``step`` are names under which it logs the training step beside its metrics; ``source`` is where they were read.
    ``mean``: a record averages over the steps since the last one.
    """

    framework: str
    source: str
    signs: tuple[str, ...]
    metrics: Mapping[str, Label]
    validation: tuple[str, ...]
    step: tuple[str, ...]
    mean: bool


def figure(label: Label, raw: float) -> float | None:
    """A figure in its field's unit; of steps a second the seconds of a step, None where there are none."""
    if label.field != RATE:
        return raw / label.divisor
    return label.divisor / raw if raw > 0 else None


def _dialect(name: str) -> Dialect:
    entry = table(name)["tracker"]
    signs, validation, step = (tuple(entry.get(key, ())) for key in ("signs", "validation", "step"))
    metrics = {
        label: known
        for label, known in labels(entry.get("metrics", table(name).get("line"))).items()
        if known.field in _KEPT
    }
    return Dialect(entry["framework"], entry["source"], signs, metrics, validation, step, entry.get("mean", False))


DIALECTS: Final = tuple(map(_dialect, filter(tables().__contains__, _TABLES)))


def cleaned(name: str) -> str:
    """The name as tensorboardX and older writers spell it: what is no word, dot, dash or stroke becomes ``_``."""
    return _FOREIGN.sub("_", name)


def dialect(names: set[str]) -> Dialect | None:
    """The framework whose own names are among these, in either spelling, or None."""
    spelled = {cleaned(name) for name in names}
    return next((item for item in DIALECTS if any(cleaned(sign) in spelled for sign in item.signs)), None)


# Figures kept until a framework shows itself: every one writes its own names within its first steps.
_WAIT: Final = 8192
_NAMES: Final = 500
_SHOWN: Final = 20


class NamedMetrics:
    """Takes figures by name and step, in the order of the file, and fills a reading with those that are known."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.dialect: Dialect | None = None
        self._waiting: list[tuple[int, str, float]] | None = []
        self._names: set[str] = set()
        self._spelt: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        self._peaks = Peaks(reading, None)
        self._finite: bool | None = None
        self._last: dict[str, int] = {}
        self._validation: float | None = None
        self._gaps: dict[int, int] = {}

    def add(self, step: int, name: str, value: float) -> None:
        """One figure. What comes before the framework is known waits, within bounds."""
        if len(self._names) < _NAMES:
            self._names.add(name)
        if self._waiting is None:
            self._put(step, name, value)
            return
        self._waiting.append((step, name, value))
        if len(self._waiting) >= _WAIT:
            self._decide()

    def finish(self) -> None:
        """Put what waits, and say what was not understood."""
        if self._waiting is not None:
            self._decide()
        reading = self.reading
        if self.dialect is None:
            if self._names:
                reading.remark(
                    "missing", f"the names are those of no framework that is known: {self._some(self._names)}"
                )
            return
        reading.remark("note", f"names are read as {self.dialect.framework}'s ({self.dialect.source})")
        read = {*self._taken.values(), *self.dialect.validation}
        others = {name for name in self._names if self._spelt.get(cleaned(name), name) not in read}
        if others:
            reading.remark("note", f"names that no figure of a step follows from: {self._some(others)}")
        reading.diverged = None if self._finite is None else not self._finite
        if self._validation is not None:
            reading.state("measurement.loss.validation", self._validation)
        if self.dialect.mean and self._gaps:
            interval = max(self._gaps, key=lambda gap: self._gaps[gap])
            reading.steps.interval = interval if interval > 1 else None
        if self.dialect.framework == "maxtext":
            not_steady(reading, Events(first={0} & set(reading.steps)))
        else:
            # The first record of a launch holds its compiling, where its time shows it.
            timed = [
                (step, seconds)
                for step in self.reading.steps.numbers()
                if (seconds := self.reading.steps.get(step, "step_seconds")) is not None
            ]
            if len(timed) > 2 and timed[0][1] > SLOW * median(seconds for _, seconds in timed):
                self.reading.not_steady[timed[0][0]] = "compile"

    def _some(self, names: set[str]) -> str:
        shown = ", ".join(sorted(names)[:_SHOWN])
        return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"

    def _decide(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        known = self.dialect = dialect(self._names)
        if known is not None:
            names = (*known.metrics, *known.validation)
            self._spelt = {cleaned(name): name for name in names}
        for step, name, value in waiting:
            self._put(step, name, value)

    def _put(self, step: int, name: str, raw: float) -> None:
        known = self.dialect
        if known is None:
            return
        name = self._spelt.get(cleaned(name), name)
        if name in known.validation:
            self._validation = raw if math.isfinite(raw) else self._validation
        elif name in known.metrics:
            metric = known.metrics[name]
            value = figure(metric, raw)
            if value is not None and metric.field in SIZES:
                self._taken[name] = name
                self._peaks.keep(metric.field, value, 0, step)
            # Two names of one field (an old and a new one) would overwrite each other: the first one stands.
            elif value is not None and self._taken.setdefault(metric.field, name) == name:
                field = "step_seconds" if metric.field == RATE else metric.field
                reading = self.reading
                reading.records += 1
                last = self._last.get(field)
                if field == "loss":
                    self._finite = self._finite is not False and math.isfinite(value)
                    if last is not None and step > last:
                        self._gaps[step - last] = self._gaps.get(step - last, 0) + 1 if len(self._gaps) < _NAMES else 1
                    if last is not None and step < last:
                        reading.steps.restarts += 1
                self._last[field] = step
                reading.steps.add(step, {field: value})


# Whose names a configuration may have, where they have a table; the first with a name of its own counts.
_FRAMEWORKS: Final = ("megatron", "torchtitan", "hf_trainer")


def state_settings(reading: Reading, config: Mapping[str, Any], record: str = "") -> bool:
    """State the leaves that a configuration gives; False where its names are no framework's that is known."""
    every = flattened(dict(config))
    reading.resolve(every)
    flat = {name: value for name, value in every.items() if isinstance(value, str | int | float | bool)}
    if any(take(reading, flat) for take in configurations()):
        return True
    present = filter(tables().__contains__, _FRAMEWORKS)
    known = next((name for name in present if not flat.keys().isdisjoint(table(name)["signs"])), None)
    if known is None:
        return False
    settings = {name: (str(value), 0) for name, value in flat.items()}
    if known == "megatron":
        state_megatron(reading, settings, record)
        return True
    leaves = Leaves(reading, Arguments(settings), record)
    for path, entry in table(known)["arguments"].items():
        leaves.read(path, entry)
    for name in ("bf16", "fp16"):
        if leaves.arguments.flag(name):
            leaves.put("numerics.compute_dtype", name, name)
            break
    return True
