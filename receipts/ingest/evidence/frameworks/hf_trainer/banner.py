"""Batch sizes that the Trainer prints before it trains, and that a model card lists."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest import vocabulary
from receipts.ingest.literals import integer
from receipts.ingest.reading import Reading

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
    """``sizes`` are those of `micro`, `global` and `accumulation`, ``steps`` how many the run is to have."""

    def __init__(self, reading: Reading) -> None:
        self.sizes: dict[str, int] = {}
        self.steps: int | None = None
        self.logging_steps: int | None = None
        self._started = self._resumed = self._first_logged = False
        self._reading = reading

    def take(self, text: str, line: int) -> bool:
        """Take one line; whether it is one of the banner, or prints an argument."""
        cells = list(_BANNER.finditer(text)) or list(_CARD.finditer(text))
        for cell in cells:
            self._cell(cell[1].lower(), integer(cell[2]), cell[0].strip(), line)
        if cells or (match := _ARGUMENT.search(text)) is None:
            begins, resumes = "unning training *****" in text, "ontinuing training from" in text
            self._started, self._resumed = self._started or begins, self._resumed or resumes
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

    def _cell(self, label: str, value: int | None, text: str, line: int) -> None:
        if value is None or value < 1:
            return
        if label.startswith("total") and label.endswith("steps"):
            self.steps = value
            return
        path = next(path for word, path in _PATHS.items() if word in label)
        self.sizes[path.rpartition(".")[2].partition("_")[0]] = value
        self._reading.state(path, value, text, line)
