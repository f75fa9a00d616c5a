"""Reports that need no program: the ``report`` of a table beside this file says which line states which leaf.

Versions, drivers and accelerators as ``torch.utils.collect_env``, ``transformers env``, ``ds_report``, LLaMA-Factory,
Unsloth and JAX print them, and plans of memory that a program prints. Accelerators are those of the host that printed
the report, so that a launch's own word stands above them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from receipts.ingest import literals, vocabulary
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

_NOTHING: Final = re.compile(r"(?i)(?:n/?a|none|not found|could not collect|unknown|not installed|-)?")
_MAX_CHIPS: Final = 4_096


class ReportReader(LineReader):
    """Reads one report. ``facts`` state leaves, ``sizes`` leaves in bytes, ``chips`` are lines of one accelerator each,
    ``count`` says how many, and ``wheels`` are lines of a package and its version.

    ``needs`` is how many facts make it this report: a line alone may be another program's.
    """

    facts: ClassVar[Mapping[str, re.Pattern[str]]]
    sizes: ClassVar[Mapping[str, re.Pattern[str]]]
    chips: ClassVar[re.Pattern[str] | None]
    count: ClassVar[re.Pattern[str] | None]
    wheels: ClassVar[re.Pattern[str] | None]
    needs: ClassVar[int]

    def __init__(self) -> None:
        super().__init__()
        self._chips: list[str] = []
        self._line = 0

    def line(self, text: str, number: int) -> bool:
        """Take what one line states."""
        for path, form in self.facts.items():
            if path not in self.reading.stated and (match := form.search(text)) is not None:
                value = next((group for group in match.groups() if group), "").strip().strip("'\"")
                if not _NOTHING.fullmatch(value):
                    self._state(path, value, match[0], number)
        for path, form in self.sizes.items():
            if (match := form.search(text)) is not None and (size := literals.size(match[1], decimal=True)) is not None:
                self._state(path, size, match[0], number)
        if self.chips is not None and (match := self.chips.search(text)) and len(self._chips) < _MAX_CHIPS:
            self._chips.append(match[1].strip())
            self._line = self._line or number
        if self.wheels is not None and (match := self.wheels.search(text)):
            self._state(f"wheels.{match[1].lower()}", match[2], match[0], number)
        if self.count is not None and (match := self.count.search(text)):
            self._state("hardware.chips", int(next(filter(None, match.groups()))), match[0], number)
        return False

    def finish(self) -> Reading | None:
        """The reading, with the accelerators that the report lists."""
        reading = self.reading
        if reading.records + bool(self._chips) < self.needs:
            return None
        if self._chips and len(set(self._chips)) == 1:
            name = self._chips[0]
            reading.state("hardware.accelerator", name, name, self._line)
            if "hardware.chips" not in reading.stated:
                reading.state("hardware.chips", len(self._chips), f"{len(self._chips)} visible", self._line)
        elif self._chips:
            reading.remark("note", f"accelerators of several kinds: {', '.join(sorted(set(self._chips)))[:200]}")
        return reading

    def _state(self, path: str, value: Any, text: str, number: int) -> None:
        if path not in self.reading.stated:
            self.reading.records += 1
            self.reading.state(path, value, text.strip()[:200], number)


def reader(name: str) -> type[ReportReader]:
    """The reader of the report that a table describes."""
    report: dict[str, Any] = vocabulary.table(name)["report"]
    compiled = {
        kind: {path: re.compile(form) for path, form in report.get(kind, {}).items()} for kind in ("facts", "sizes")
    }
    return type(
        name,
        (ReportReader,),
        {
            "source": vocabulary.source_of(name),
            "anchors": tuple(anchor.encode() for anchor in report["anchors"]),
            "chips": re.compile(report["chips"]) if "chips" in report else None,
            "count": re.compile(report["count"]) if "count" in report else None,
            "wheels": re.compile(report["wheels"]) if "wheels" in report else None,
            "needs": report.get("needs", 2),
            **compiled,
        },
    )


READERS = tuple(reader(name) for name in vocabulary.tables() if "report" in vocabulary.table(name))
