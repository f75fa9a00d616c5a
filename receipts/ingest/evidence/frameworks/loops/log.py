"""Training loops that need no program: the ``record`` of a table in ``vocabulary/`` describes the line.

A record is a line with cells (``loss: 2.5 | tps 9000``), or a head with the step and a line below it for each metric.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import Any, ClassVar, Final

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.blocks import BlockReader
from receipts.ingest.evidence.numbers import FIGURE
from receipts.ingest.evidence.reading import MemoryRow, Place, Reading
from receipts.ingest.evidence.record import Form
from receipts.ingest.evidence.records import RecordReader

_CELL: Final = rf"(?<![\w/.(-])(?P<label>[A-Za-z][\w/.-]{{0,80}})['\"]?(?: ?[:=] ?| )['\"]?(?P<word>{FIGURE})"
_METRIC: Final = r"^\s{1,20}(?P<label>[A-Za-z][^=:]{1,100}?)\s?[=:]\s?(?P<word>\S{1,40})\s*$"


class LoopLog(RecordReader):
    """Reads the lines of one loop. ``mean``: its figures are means over the steps since the last record.

    ``memory`` is the line that says, beside the steps, what a chip needed at most.
    """

    mean: ClassVar[bool]
    memory: ClassVar[re.Pattern[str] | None]

    def other(self, text: str, number: int) -> None:
        """Take the line of memory; without a step the reading is none, and nor is it."""
        match = self.memory.search(text) if self.memory else None
        if match and (known := self.label(match["label"])) and (size := self.parse(match["word"])):
            self.reading.memory.append(
                MemoryRow(Place(number), phase="steady", **{known.field: round(size / known.divisor)})
            )

    def finish(self) -> Reading | None:
        """The reading; how many steps a record averages over follows from the steps that have one."""
        reading = super().finish()
        if reading is not None and self.mean:
            gaps = Counter(after - before for before, after in pairwise(reading.steps.numbers()))
            reading.steps.interval = gaps.most_common(1)[0][0] if gaps else None
        return reading


class BlockLoop(BlockReader, LoopLog):
    """Reads the heads and metrics of one loop."""


def reader(name: str) -> type[LoopLog]:
    """The reader of the loop that a table describes."""
    record: dict[str, Any] = vocabulary.table(name)["record"]
    settings: dict[str, Any] = {
        "source": vocabulary.source_of(name),
        "anchors": tuple(anchor.encode() for anchor in record["anchors"]),
        "labels": vocabulary.line(name),
        "needs": frozenset(record.get("needs", ("loss",))),
        "mean": record.get("mean", False),
    }
    head = re.compile(record["head"])
    settings["memory"] = re.compile(record["memory"].replace("FIGURE", FIGURE)) if "memory" in record else None
    if record.get("below"):
        return type(name, (BlockLoop,), settings | {"head": head, "metric": re.compile(_METRIC)})
    cells = re.compile(record.get("cells", _CELL).replace("FIGURE", FIGURE), re.IGNORECASE)
    return type(name, (LoopLog,), settings | {"forms": (Form(head, (cells,)),)})


READERS = tuple(map(reader, vocabulary.loops()))
