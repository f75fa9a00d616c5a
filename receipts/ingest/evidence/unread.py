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
_SHOWN: Final = 90
_LOSS: Final = rf"\w*loss[\w/]*['\"]?\s{{0,4}}[:=]?\s{{0,4}}['\"]?{FIGURE}"
_LINE = re.compile(
    r"(?i)(?:\b(?:step|iter(?:ation)?|batch|update)s?['\"]?\s{0,4}[:=\[#]?\s{0,4}(?P<number>\d{1,12})\b"
    rf"|(?P<done>\d{{1,12}})/\d{{1,12}}\s{{0,4}}\[).{{0,400}}?\b{_LOSS}"
)


def steps_unread(text: bytes, readings: Sequence[Reading]) -> list[Remark]:
    """A remark where the beginning of a log shows several steps and its readings none."""
    if any(len(reading.steps) or reading.means or reading.diverged is not None for reading in readings):
        return []
    numbers: set[str] = set()
    first = (0, "")
    for at, line in enumerate(ANSI.sub(b"", text[:MAX_TEXT]).decode("utf-8", "replace").split("\n"), 1):
        for match in _LINE.finditer(line[:4000]):
            numbers.add(match["number"] or match["done"])
            first = first if first[0] else (at, match[0])
    if len(numbers) < _FEW:
        return []
    shown = " ".join(first[1].split())[:_SHOWN]
    what = f"looks like a training step (`{shown}`) in a form that no reader knows: neither times nor losses are read"
    return [Remark("missing", f"{what}; docs/ingest-map.md shows how to have them read", Place(first[0]))]
