"""Writing text: JSON lines, which lose nothing, and CSV for people, which has the columns alone."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import IO, Any, Final

import orjson

from receipts.workflows.export.datasets import datasets
from receipts.workflows.export.lines import Partition, Row, week

_LEFT_OUT: Final = ("axes", "document")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # OWASP, "CSV Injection"


class JsonLines:
    """One JSON object a line: ``in`` names the dataset, and texts carry documents as they came.

    A document is valid UTF-8, and a JSON text holds every such text: newlines and quotes are escaped and come back.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def add(self, name: str, rows: Sequence[Row], partition: Partition | None = None) -> None:
        """Write rows of a dataset."""
        self._stream.write(b"".join(line({"in": name, **row}) for row in rows))


def line(row: Row) -> bytes:
    """A row as one line."""
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z)


class Comma:
    """CSV: the columns of `receipts` but for axes and documents, with lane and week; one row a receipt.

    A spreadsheet runs a text that begins with one of ``= + - @`` as a formula; such a text gets an apostrophe in front,
    unless the file is ``raw``, for programs.
    """

    def __init__(self, stream: IO[str], *, raw: bool = False) -> None:
        self._cell = _cell if raw else _harmless
        self._names = [field.name for field in datasets()["receipts"].fields if field.name not in _LEFT_OUT]
        self._writer = csv.writer(stream)  # lines end as in RFC 4180; a bare carriage return is quoted then
        self._writer.writerow([*("lane" if name == "run_lane" else name for name in self._names), "week"])

    def add(self, name: str, rows: Sequence[Row], partition: Partition | None = None) -> None:
        """Write receipts; what speaks of them is left out."""
        if name == "receipts":
            self._writer.writerows(
                [*(self._cell(row[column]) for column in self._names), week(row["finished"] or row["started"])]
                for row in rows
            )


def _harmless(value: Any) -> Any:
    cell = _cell(value)
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(value) if isinstance(value, list) else value
