"""Histories of golden values to receipts: one for each commit that changed the values of a test.

A history is a file of JSON lines. Each line holds the metrics of one commit as Megatron-LM's golden values do, with the
commit, its date and the file. A commit that repeats the values of the one before it measured nothing, and is left out.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from receipts.base.errors import Problem, UsageError
from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading
from receipts.plugins.exchange.mlflow_import import ImportedReceipt

SOURCE: Final = "golden-history"
MAX_LINE: Final = 16 << 20
# golden_values_dev_dgx_h100, and of 2025 also golden_values_dev_dgxh100_eos with its cluster.
_ACCELERATOR: Final = re.compile(r"(?:_|dgx)(g?[abh]\d{3})(?![a-z0-9])", re.IGNORECASE)


def import_history(files: Sequence[Path]) -> Iterator[ImportedReceipt]:
    """An entry for every line of the files, in their order. Raises UsageError where a file cannot be read."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder) / "golden.json"
        for file in files:
            yield from _file(file, scratch)


def _file(file: Path, scratch: Path) -> Iterator[ImportedReceipt]:
    before: dict[str, Any] | None = None
    try:
        with file.open("rb") as stream:
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE), b""), 1):
                where = f"{file.name}:{number}"
                entry = _object(line)
                if entry is None:
                    yield ImportedReceipt(where, None, (Problem("", "this line is not a JSON object"),))
                    continue
                metrics = {name: block for name, block in entry.items() if isinstance(block, dict)}
                if metrics and metrics == before:
                    yield ImportedReceipt(where, None, repeated=True)
                    continue
                before = metrics
                scratch.write_bytes(line)
                yield _entry(where, file, entry, scratch)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _entry(where: str, file: Path, entry: dict[str, Any], scratch: Path) -> ImportedReceipt:
    commit, date = entry.get("commit"), _date(entry.get("date"))
    if not isinstance(commit, str) or not commit or date is None:
        return ImportedReceipt(where, None, (Problem("", "this line has no commit with a date; it is not a history"),))
    # The reader of golden values takes a file. This one holds the line as it is, so that its digest is the line's.
    values = read(scratch, where)
    if not any(reading.steps.numbers() for reading in values.readings):
        return ImportedReceipt(where, None, (Problem("", "no metric of this commit is known; iteration-time is"),))
    values = replace(values, readings=(*values.readings, _stated(file, entry, commit, date)))
    ingested = assemble([values], Options(lane="unlisted"))
    return ImportedReceipt(where, None if ingested.problems else ingested.raw, ingested.problems)


def _stated(file: Path, entry: dict[str, Any], commit: str, date: str) -> Reading:
    """What the line says beside its values. A commit's date is the latest that the launch can have."""
    reading = Reading(SOURCE, records=1)
    test, _, name = file.name.partition("__golden_values")
    reading.state("run.started", date, f"the commit's date, {entry['date']}; the launch was before it")
    reading.state("run.outcome", "ok", "golden values are of a test that passed")
    reading.state("run.label", f"{test} {commit[:12]}", file.name)
    reading.state("run.context", str(entry.get("file") or file.name)[:200], file.name)
    reading.state("code.commit", commit, commit)
    if accelerator := _ACCELERATOR.search(name):
        reading.state("hardware.accelerator", f"NVIDIA {accelerator[1].upper()}", name)
    return reading


def _date(value: Any) -> str | None:
    try:
        return datetime.fromisoformat(value).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (TypeError, ValueError, OverflowError):
        return None
