"""DLLogger's JSON lines: ``DLLL {"timestamp": …, "type": "LOG", "step": 12, "data": {"train_loss": …}}``.

Source: `dllogger/logger.py` (`JSONStreamBackend`), 1.0 (2020). A step is a number, or a list of an epoch and an
iteration, of which the last counts; an empty list is a summary of the run. The step ``PARAMETER`` holds settings, which
NeMo and Megatron name ``cfg/…`` after their arguments.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from receipts.ingest import megatron, record_reader
from receipts.ingest.literals import FIGURE
from receipts.ingest.reading import Reading
from receipts.ingest.record import Form
from receipts.ingest.record_reader import RecordReader

_PARAMETERS: Final = re.compile(r'DLLL (\{.{0,400}?"step": ?"PARAMETER".*\})\s*$')
_MEGATRON: Final = "tensor_model_parallel_size"


class DLLogger(RecordReader, table="dllogger"):
    """Reads the steps and the settings that DLLogger keeps."""

    # Evaluations and timers have steps, too.
    needs = frozenset()
    any_of = frozenset({"loss", "step_seconds"})
    forms = (
        Form(
            re.compile(r'DLLL \{.{0,400}?"step": ?(?:\[(?:\d{1,12}, ?){0,3})?(?P<step>\d{1,12})\]?, ?"data": ?(?=\{)'),
            (re.compile(rf'"(?P<label>[^"]{{1,120}})": ?(?P<word>{FIGURE})(?=[,}}\s])', re.IGNORECASE),),
        ),
    )

    def other(self, text: str, number: int) -> None:
        """Take the settings; Megatron's arguments mean what they do in its own log."""
        match = _PARAMETERS.search(text)
        data = _object(match[1]).get("data") if match else None
        if not isinstance(data, dict):
            return
        settings = {str(name).rpartition("/")[2]: (str(value), number) for name, value in data.items()}
        self.reading.records += 1
        if _MEGATRON in settings:
            megatron.state_arguments(self.reading, settings)

    def finish(self) -> Reading | None:
        """The reading; a slow start and stalls are known by the times."""
        reading = super().finish()
        if reading is not None:
            record_reader.mark_not_steady(reading, ())
        return reading


def _object(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}


READERS = (DLLogger,)
