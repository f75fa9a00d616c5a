"""Plain PyTorch loops of the nanoGPT family: nanoGPT, build-nanogpt, nanochat and their many copies.

``dt`` and ``time`` are milliseconds of one iteration, ``tok/sec`` is over all chips. nanoGPT divides its MFU by the
peak of an A100 whatever it runs on, and prints ``-100.00%`` until it has one.
"""

from __future__ import annotations

import re
from typing import ClassVar

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.numbers import FIGURE
from receipts.ingest.evidence.record import Form, RecordRows
from receipts.ingest.evidence.records import RecordReader

_LABEL = (
    "train loss|train_loss|loss|grad norm|grad_norm|norm|dt|step time|step_time|iter time|time|step_ms|ms/step|s/step|"
    "tok/sec|tok/s|tokens/sec|bf16_mfu|mfu"
)


class PlainLoop(RecordReader):
    """Reads the step lines of plain loops; a line needs a step, a loss and a time of stated unit."""

    source: ClassVar[str] = "pytorch-loop"
    anchors: ClassVar[tuple[bytes, ...]] = (
        *(b"tok/sec: ", b"tok/s: ", b"tokens/sec: ", b", mfu ", b"ms, tok/sec", b", time ", b", Loss: "),
        *(b" s/step", b" ms/step", b"step_time=", b"step_time: ", b"step_ms="),
    )
    labels = vocabulary.line("nanogpt")
    needs = frozenset({"loss", "step_seconds"})
    forms = (
        Form(
            re.compile(
                r"\b(?:iter|step)(?:\s?[:=]\s?|\s+)(?P<step>\d{1,12})(?:/\d{1,12})?\s*(?:\([\d.]{1,12}%\)\s*)?(?=[]:|,\s])",
                re.IGNORECASE,
            ),
            (
                re.compile(
                    rf"(?<![\w/ ])\s?(?P<label>{_LABEL})(?:\s?[:=]\s?|\s+)"
                    rf"(?P<word>{FIGURE})(?: ?(?P<unit>ms|s|%)(?![\w/]))?",
                    re.IGNORECASE,
                ),
                re.compile(rf"(?<![\w.])(?P<word>{FIGURE}) (?P<label>ms/step|s/step|ms(?= \|))(?!\w)"),
            ),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self.fresh = True
        self._divided = False

    def rows(self, rows: RecordRows) -> None:
        """Take records; the peak by which nanoGPT divides is said once."""
        if not self._divided and "mfu" in rows.figures and "iter " in rows.text and max(rows.figures["mfu"]) > 0:
            self._divided = True
            what = "nanoGPT divides MFU by an A100's 312 TFLOP/s on any chip"
            self.reading.remark("contradiction", what, rows.lines[0])
        self.put(rows)


READERS = (PlainLoop,)
