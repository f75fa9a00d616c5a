"""What looks like training steps in a form that no reader knows: said, so that silence is never taken for a short log.

Progress bars of Lightning, Keras and plain tqdm, and lines that name a step and a loss in words of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from receipts.ingest.evidence.numbers import FIGURE
from receipts.ingest.evidence.reading import Place, Reading, Remark
from receipts.ingest.evidence.shapes import ANSI

MAX_TEXT: Final = 1 << 18
_FEW: Final = 2
# It prints times and rates, and leaves the loss to the program.
_LOSSLESS: Final = "deepspeed"
_SHOWN: Final = 90
_LOSS: Final = rf"(?:\w*loss[\w/]*|xent)['\"]?\s{{0,4}}[:=]?\s{{0,4}}['\"]?{FIGURE}"
_LINE = re.compile(
    r"(?i)(?:\b(?:step|iter(?:ation)?|batch|update)s?['\"]?\s{0,4}[:=\[#]?\s{0,4}\d{1,12}\b"
    rf"|\d{{1,12}}/\d{{1,12}}\s{{0,4}}[]\[]|\d{{1,12}}batch:|^\s{{0,8}}\d{{1,12}}\s{{0,4}}[|:,]).{{0,400}}?\b{_LOSS}"
    # The figure before its name: tinygrad.
    rf"|^\s{{0,8}}\d{{1,12}}\s.{{0,200}}?(?<![\w.]){FIGURE} loss\b"
)


def steps_unread(text: bytes, readings: Sequence[Reading]) -> list[Remark]:
    """A remark where the beginning of a log shows several steps and its readings none."""
    if any(_read(reading) for reading in readings):
        return []
    shown: set[str] = set()
    first = (0, "")
    for at, line in enumerate(ANSI.sub(b"", text[:MAX_TEXT]).decode("utf-8", "replace").split("\n"), 1):
        for match in _LINE.finditer(line[:4000]):
            shown.add(match[0])
            first = first if first[0] else (at, match[0])
    if len(shown) < _FEW:
        return []
    words = " ".join(first[1].split())[:_SHOWN]
    what = f"looks like a training step (`{words}`) in a form that no reader knows: what it prints is not read"
    return [Remark("missing", f"{what}; docs/ingest-map.md shows how to have them read", Place(first[0]))]


def _read(reading: Reading) -> bool:
    """Whether a reading knows the steps, or their losses."""
    return bool(reading.diverged is not None or reading.means or (len(reading.steps) and reading.source != _LOSSLESS))
