"""MaxText's metrics as JSON lines: `metrics_file`, and `metrics_step_000000_to_step_000099.txt` in a bucket.

`metric_logger.py` writes one object a step, ``perf/…`` and ``learning/…`` beside ``step`` and ``run_name``, and one of
``eval/…`` for each evaluation. Floats are printed with all their digits; rates are those of one JAX device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.evidence.frameworks.maxtext.steady import Events, not_steady
from receipts.ingest.literals import FIGURE
from receipts.ingest.reading import Reading
from receipts.ingest.record import Form, RecordRows
from receipts.ingest.record_reader import RecordReader
from receipts.ingest.vocabulary import Label

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


READERS = (MaxTextMetrics,)
