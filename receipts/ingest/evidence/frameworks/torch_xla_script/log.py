"""Lines of the training scripts that come with torch_xla, of torchprime, and of what was copied from them.

``| Training Device=xla:0/0 Epoch=1 Step=20 Loss=6.79297 Rate=117.16 GlobalRate=45.84 Time=06:13:36`` is
`test/test_utils.py`; ``[xla:0](20) Loss=…`` is that of older scripts and notebooks. `RateTracker` gives samples a
second of one process, smoothed (``Rate``) or since the start (``GlobalRate``): without the batch no time of a step
follows, and none is made up. torchprime's ``trace time`` is the host's time to trace a step and never the step's.
"""

from __future__ import annotations

import math
import re
from typing import ClassVar, Final

from receipts.ingest.evidence.numbers import number as parse
from receipts.ingest.evidence.reader import LineReader
from receipts.ingest.evidence.reading import Reading

_TRAINING = re.compile(r"\| Training Device=(\S{1,40})\s+(.{1,400})")
_ORDINAL = re.compile(r"\[(?:xla:)?(\d{1,6})\]\((\d{1,12})\)\s*(Loss=.{1,300})")
_CELL = re.compile(r"([A-Za-z_]{1,30})=\s*([^\s|,]{1,40})")
_PRIME = re.compile(
    r"(?:\bEpoch: (?P<epoch>[\d.]{1,12}), )?\b[Ss]tep: (?P<step>\d{1,12}), loss: (?P<loss>[-\d.einfa+]{1,24}),"
    r"(?P<middle>.{0,200}?)trace time: (?P<trace>[\d.]{1,16}) ms(?:, step time: (?P<rest>[\d.]{1,16}) ms)?"
)
_NORM = re.compile(r"grad_norm: ([-\d.einfa+]{1,24})")
_PLACE = re.compile(r"(\d{1,6})(?:/(\d{1,6}))?$")
_START: Final = "| Training Device="


class TorchXlaScript(LineReader):
    """Reads the scripts' step lines. Steps count anew in each epoch there: here they go on."""

    source: ClassVar[str] = "torch-xla-script"
    anchors: ClassVar[tuple[bytes, ...]] = (b"| Training Device=", b") Loss=", b")\tLoss=", b"trace time: ")

    def __init__(self) -> None:
        super().__init__()
        self._epoch = 0
        self._offset = 0
        self._highest = -1
        self._stride = 1
        self._previous: int | None = None
        self._finite: bool | None = None
        self._rates = False
        self._ranks: set[int] = set()
        self._traced = 0

    def line(self, text: str, number: int) -> bool:
        """Take one line, of one record or of several that processes wrote into each other."""
        if _START in text:
            for part in text.split(_START)[1:]:
                if match := _TRAINING.match(_START + part):
                    self._training(match[1], dict(_CELL.findall(match[2])))
        for match in _ORDINAL.finditer(text) if ") Loss=" in text or ")\tLoss=" in text else ():
            cells = dict(_CELL.findall(match[3]))
            self._step(int(match[2]), int(match[1]), None, cells)
        if "trace time: " in text and (prime := _PRIME.search(text)):
            self._prime(prime)
        return False

    def finish(self) -> Reading | None:
        """The reading, with what the rates are and are not."""
        reading = self.reading
        if not reading.records:
            return None
        reading.diverged = None if self._finite is None else not self._finite
        if self._rates:
            text = "Rate and GlobalRate are samples a second of one process, smoothed or since the start; no step time"
            reading.remark("note", text)
        if self._offset:
            reading.remark("note", "steps are counted anew in each epoch; here they go on by the printed stride")
        if self._traced:
            reading.remark("note", "trace time is the host's time to trace a step, not the time of a step")
        reading.see("framework", "torch-xla", "backend")
        return reading

    def _training(self, device: str, cells: dict[str, str]) -> None:
        place = _PLACE.search(device)
        # `xla:0/3` is the device and, behind the stroke, the process's place among all.
        rank = int(place[2] or place[1]) if place else 0
        step = parse(cells.get("Step", ""))
        epoch = parse(cells.get("Epoch", ""))
        if step is not None and step >= 0 and step == int(step):
            self._step(int(step), rank, None if epoch is None else int(epoch), cells)

    def _step(self, step: int, rank: int, epoch: int | None, cells: dict[str, str]) -> None:
        reading = self.reading
        loss = parse(cells.get("Loss", ""))
        if loss is None:
            return
        if epoch is not None and epoch > self._epoch:
            if self._epoch:
                self._offset = self._highest + self._stride
            self._epoch, self._previous = epoch, None
        if self._previous is not None and step > self._previous:
            self._stride = step - self._previous
        self._previous = step
        step += self._offset
        self._highest = max(self._highest, step)
        self._rates = self._rates or "Rate" in cells or "Throughput" in cells
        self._finite = self._finite is not False and math.isfinite(loss)
        self._ranks.add(rank)
        reading.records += 1
        reading.steps.put(step, {"loss": loss}, rank)

    def _prime(self, match: re.Match[str]) -> None:
        loss = parse(match["loss"])
        if loss is None:
            return
        norm = _NORM.search(match["middle"])
        seconds = None
        if match["rest"] is not None:
            # Printed after waiting for the device: what is left of the step once it was traced.
            parts = parse(match["trace"]), parse(match["rest"])
            seconds = sum(part for part in parts if part is not None) / 1e3
        else:
            self._traced += 1
        self.reading.records += 1
        self._finite = self._finite is not False and math.isfinite(loss)
        values = {"loss": loss, "grad_norm": parse(norm[1]) if norm else None, "step_seconds": seconds}
        self.reading.steps.put(int(match["step"]), values)


READERS = (TorchXlaScript,)
