"""Batch sizes that the Trainer prints before it trains, and that a model card lists."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.literal import integer
from receipts.ingest.evidence.reading import Reading

_BANNER = re.compile(
    r"((?:instantaneous )?batch size per (?:device|gpu)|total (?:train )?batch size|gradient accumulation steps|"
    r"total (?:optimization )?steps)[^=|]{0,80}=\s*([\d,]{1,30})(?![\d.])",
    re.IGNORECASE,
)
_CARD = re.compile(r"^[\s>]*[-*] (total_train_batch_size|train_batch_size|gradient_accumulation_steps): (\d{1,12})\s*$")
# The first of these that is a part of a label is what it means.
_PATHS: Final = vocabulary.table("hf_trainer")["configuration"]


class Banner:
    """``sizes`` are what was told of `micro`, `global` and `accumulation`, ``steps`` how many the run is to have."""

    def __init__(self, reading: Reading) -> None:
        self.sizes: dict[str, int] = {}
        self.steps: int | None = None
        self._reading = reading

    def take(self, text: str, line: int) -> bool:
        """Take one line; whether it tells a size."""
        cells = list(_BANNER.finditer(text)) or list(_CARD.finditer(text))
        for cell in cells:
            self._cell(cell[1].lower(), integer(cell[2]), cell[0].strip(), line)
        return bool(cells)

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
