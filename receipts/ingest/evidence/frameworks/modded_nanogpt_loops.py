"""Plain PyTorch loops of the nanoGPT family: nanoGPT, build-nanogpt, nanochat and their many copies.

``dt`` and ``time`` are milliseconds of one iteration, ``tok/sec`` is over all chips. nanoGPT divides its MFU by the
peak of an A100 whatever it runs on, and prints ``-100.00%`` until it has one.
"""

from __future__ import annotations

import re
from typing import ClassVar

from receipts.ingest.evidence.numbers import judged, number
from receipts.ingest.evidence.reader import LineReader, Spans
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.shapes import Columns
from receipts.ingest.evidence.steps import ABSENT

_STEP = re.compile(r"\b(iter|step):?\s+(\d{1,12})(?:/\d{1,12})?\s*(?:\([\d.]{1,12}%\)\s*)?[:|,]")
_CELL = re.compile(
    r"(?<![\w ])\s?(train loss|loss|grad norm|norm|dt|time|tok/sec|tokens/sec|bf16_mfu|mfu):?"
    r" +(-?[\d.,]{1,24}|nan|inf)(ms|s\b|%)?"
)
_FIELDS = {
    "train loss": "loss",
    "loss": "loss",
    "grad norm": "grad_norm",
    "norm": "grad_norm",
    "dt": "time",
    "time": "time",
    "tok/sec": "tokens_per_second",
    "tokens/sec": "tokens_per_second",
    "bf16_mfu": "mfu",
    "mfu": "mfu",
}


class PlainLoop(LineReader):
    """Reads the step lines of plain loops; a line needs a step, a loss and a time."""

    source: ClassVar[str] = "pytorch-loop"
    anchors: ClassVar[tuple[bytes, ...]] = (b"tok/sec: ", b"tokens/sec: ", b", mfu ", b"ms, tok/sec")

    def __init__(self) -> None:
        super().__init__()
        self._lines = 0
        self._bad = self._good = False
        self._divided = False

    def line(self, text: str, number: int) -> bool:
        """Take one line; none needs the next."""
        match = _STEP.search(text)
        if match is None:
            return False
        cells = {name: (word.strip(",."), unit) for name, word, unit in _CELL.findall(text, match.end() - 1)}
        self._step(match[1], int(match[2]), cells, number)
        return False

    def spans(self, text: str) -> Spans:
        """Step and figures of one record."""
        match = _STEP.search(text)
        if match is None or _STEP.search(text, match.end()):
            return {}
        found = {match[1]: match.span(2)}
        for cell in _CELL.finditer(text, match.end() - 1):
            field, word = _FIELDS[cell[1]], cell[2].strip(",.")
            if field == "time":
                field = {"ms": "milliseconds", "s": "seconds"}.get(cell[3], "")
            if field in found or not field or number(word) is None:
                return {}
            place = text.index(word, cell.start(2))
            found[field] = place, place + len(word)
        return found if "loss" in found and found.keys() & {"milliseconds", "seconds"} else {}

    def many(self, columns: Columns) -> bool:
        """Take records, of which none is the first, or the first with an MFU."""
        word = "iter" if "iter" in columns else "step"
        try:
            steps = columns.whole(word)
            figures = {name: columns.decimals(name) for name in columns.names if name != word}
        except ValueError:
            return False
        if not self._lines or (word == "iter" and "mfu" in figures and not self._divided):
            return False
        milliseconds, shares = figures.pop("milliseconds", None), figures.get("mfu")
        if milliseconds is not None:
            figures["step_seconds"] = [time * 1e-3 for time in milliseconds]
        else:
            figures["step_seconds"] = figures.pop("seconds")
        if shares is not None:
            figures["mfu"] = [ABSENT if share < 0 else share / 100 for share in shares]
        bad, good = judged(figures["loss"])
        self._bad, self._good = self._bad or bad, self._good or good
        self._lines += len(steps)
        self.reading.steps.extend(steps, figures)
        return True

    def finish(self) -> Reading | None:
        """The reading."""
        if not self._lines:
            return None
        self.reading.records = self._lines
        if self._bad or self._good:
            self.reading.diverged = self._bad
        return self.reading

    def _step(self, word: str, step: int, cells: dict[str, tuple[str, str]], line: int) -> None:
        time, unit = cells.get("dt") or cells.get("time") or ("", "")
        seconds, loss = number(time), number((cells.get("loss") or cells.get("train loss") or ("", ""))[0])
        if seconds is None or loss is None or not unit:
            return
        norm = number((cells.get("grad norm") or cells.get("norm") or ("", ""))[0])
        rate = number((cells.get("tok/sec") or cells.get("tokens/sec") or ("", ""))[0])
        share = number((cells.get("bf16_mfu") or cells.get("mfu") or ("", ""))[0])
        if share is not None and share < 0:
            share = None
        if word == "iter" and share is not None and not self._divided:
            self._divided = True
            self.reading.remark("contradiction", "nanoGPT divides MFU by an A100's 312 TFLOP/s on any chip", line)
        if not self._lines:
            self.reading.not_steady[step] = "warmup"
        self._lines += 1
        self._bad, self._good = self._bad or loss - loss != 0, self._good or loss - loss == 0
        values = {
            "loss": loss,
            "grad_norm": norm,
            "step_seconds": seconds * (1e-3 if unit == "ms" else 1.0),
            "tokens_per_second": rate,
            "mfu": None if share is None else share / 100,
        }
        self.reading.steps.put(step, values)


READERS = (PlainLoop,)
