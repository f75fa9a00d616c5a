"""The lines of the tests' own loop: ``plain> step 3: loss=2.5 seconds=0.5``."""

from __future__ import annotations

import re

from receipts.ingest.literals import FIGURE
from receipts.ingest.record import Form
from receipts.ingest.record_reader import RecordReader


class PlainLoop(RecordReader, table="plain"):
    """Reads its steps."""

    forms = (
        Form(
            re.compile(r"plain> step (?P<step>\d{1,12}): "),
            (re.compile(rf"(?P<label>loss|seconds)=(?P<word>{FIGURE})", re.IGNORECASE),),
        ),
    )


READERS = (PlainLoop,)
