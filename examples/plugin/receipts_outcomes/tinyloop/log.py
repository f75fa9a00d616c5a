"""The lines of tinyloop: ``tinyloop> step 3: loss=2.5 seconds=0.5``."""

from __future__ import annotations

import re

from receipts.ingest.literals import FIGURE
from receipts.ingest.record import Form
from receipts.ingest.record_reader import RecordReader


class TinyLoop(RecordReader, table="tinyloop"):
    """Reads the steps of tinyloop."""

    forms = (
        Form(
            re.compile(r"tinyloop> step (?P<step>\d{1,12}): "),
            (re.compile(rf"(?P<label>loss|seconds)=(?P<word>{FIGURE})", re.IGNORECASE),),
        ),
    )


READERS = (TinyLoop,)
