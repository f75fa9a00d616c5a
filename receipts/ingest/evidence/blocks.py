"""A record that takes several lines: a head with the step, and below it a line for each metric."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.evidence.numbers import number as parse
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.records import STEP, RecordReader

_MAX_METRICS: Final = 2000


class BlockReader(RecordReader):
    """Reads heads, whose group is ``step``, and the metrics below one, whose groups are ``label`` and ``word``."""

    forms = ()
    head: ClassVar[re.Pattern[str]]
    metric: ClassVar[re.Pattern[str]]

    def __init__(self) -> None:
        super().__init__()
        self._head: int | None = None
        self._begun = self._metrics = 0
        self._figures: dict[str, float] = {}

    def block(self, step: int, figures: dict[str, float], line: int) -> None:
        """Take one record."""
        self.step(step, figures, line)

    def setting(self, label: str, value: float, line: int) -> None:
        """Take a metric that the table of labels does not have."""

    def inside(self) -> bool:
        """Whether the metrics of a step go on below."""
        return self._head is not None

    def other(self, text: str, number: int) -> None:
        """Take a head, or a metric below one; any other line ends the record."""
        if self._head is not None and (match := self.metric.search(text)) and self._metrics < _MAX_METRICS:
            self._metrics += 1
            value = parse(match["word"])
            if value is not None and (known := self.label(match["label"])) is not None:
                self._figures.setdefault(known.field, value / known.divisor)
            elif value is not None:
                self.setting(match["label"], value, number)
            return
        self._end()
        if match := self.head.search(text):
            self._head, self._begun = int(match[STEP]), number

    def finish(self) -> Reading | None:
        """The reading, with the last record."""
        self._end()
        return super().finish()

    def _end(self) -> None:
        step, figures = self._head, self._figures
        self._head, self._figures, self._metrics = None, {}, 0
        if step is not None and self.needs <= figures.keys():
            self.block(step, figures, self._begun)
