"""The rows of an export: from what a store holds to rows of datasets, their partitions, and what writes them.

JSON lines and Parquet lose nothing; CSV is for people and has the columns alone. Parquet is a folder a dataset, with
receipts and their verdicts in Hive's folders of lane and week.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from receipts.axes.effective import effective, flag_text
from receipts.base.environment import extra
from receipts.receipt import Document, parse_again
from receipts.workflows.datasets import Dataset, Row, arrow_schema, arrow_table, datasets

if TYPE_CHECKING:
    from receipts.store.snapshot import VerdictRow, Whole


# What Hive escapes in the name of a folder, and with it Spark; every reader of such folders reads it back.
_ESCAPED: Final = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{}\[\]^]")
_MAX_NAME: Final = 200
_NOWHERE: Final = "__HIVE_DEFAULT_PARTITION__"


class Partition(NamedTuple):
    """Where receipts of one lane and one ISO week go. Weeks come first, so that sorting is by time."""

    week: str
    lane: str

    @property
    def folder(self) -> str:
        """``lane=…/week=…``, safe as the name of folders."""
        return f"lane={_safe(self.lane)}/week={_safe(self.week)}"


# Where a dataset without a row goes, so that engines find its columns.
NOWHERE: Final = Partition(_NOWHERE, _NOWHERE)


def week(at: datetime) -> str:
    """The ISO week of a moment in UTC: ``2026-W47``."""
    year, number, _ = at.astimezone(UTC).isocalendar()
    return f"{year:04d}-W{number:02d}"


def _safe(name: str) -> str:
    """A lane may be called anything; a folder's name has 255 bytes."""
    safe = _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", name) or _NOWHERE
    if len(safe.encode()) <= _MAX_NAME:
        return safe
    cut = safe.encode()[: _MAX_NAME - 9].decode(errors="ignore")
    return f"{re.sub('%.?$', '', cut)}~{sha256(name.encode()).hexdigest()[:8]}"


def receipt_row(whole: Whole, last: VerdictRow | None) -> Row:
    """A receipt's row; ``last`` is the last verdict on it."""
    entry, verdicts = whole.entry, whole.superseded
    row = entry._asdict()
    for name in ("seq", "lane", "superseded_by"):
        del row[name]
    judged = orjson.loads(last.document) if last is not None else {}
    parsed = parse_again(Document(whole.document, entry.id[:12]))
    return row | {
        "number": entry.seq,
        "run_lane": entry.lane,
        "judged_status": last.status if last else None,
        "judged_path": judged.get("path"),
        "judged_taints": judged.get("tainted"),
        "judged_rules": last.rules if last else None,
        "judged_at": last.at if last else None,
        "superseded_by": verdicts[0] if verdicts else None,
        "superseded_reason": verdicts[1] if verdicts else None,
        "superseded_at": verdicts[2] if verdicts else None,
        "axes": {
            path: orjson.dumps(value, default=str).decode()
            if isinstance(value, list | tuple | dict)
            else flag_text(value)
            for path, value in sorted(effective(parsed).items())
        },
        "document_bytes": len(whole.document),
        "document": whole.document.decode(),
    }


def last_of(verdicts: Iterable[VerdictRow]) -> dict[str, VerdictRow]:
    """The last verdict on each receipt, by its time: what came from another store may be older than what is here."""
    last: dict[str, VerdictRow] = {}
    for item in verdicts:
        receipt = item.subjects[0][1]
        if receipt not in last or (item.at, item.number) >= (last[receipt].at, last[receipt].number):
            last[receipt] = item
    return last


def verdict_row(dataset: str, verdict: VerdictRow) -> Row:
    """A row of `verdicts`, `comparisons` or `claim_verdicts`: its columns, and what its document answers."""
    judged = orjson.loads(verdict.document)
    values = {
        **judged,
        "number": verdict.number,
        "receipt": verdict.subjects[0][1] if verdict.subjects else None,
        "claim": verdict.about,
        "subjects": [{"side": side, "receipt": receipt} for side, receipt in verdict.subjects],
        "status": verdict.status,
        "metric": verdict.metric,
        "taints": judged.get("tainted"),
        "codes": [item["code"] for item in judged["findings"]],
        "rules": verdict.rules,
        "judge": verdict.judge,
        "judged_at": verdict.at,
        "document": verdict.document.decode(),
    }
    return {field.name: values[field.name] for field in datasets()[dataset].fields}


def plain_row(row: Mapping[str, Any]) -> Row:
    """A row of a plain table under the names that an export has for its columns."""
    own = "number" in row
    return {exported_name(name): value for name, value in row.items() if name != "seq" or not own}


def exported_name(column: str) -> str:
    """What an export calls a column: `at` is a word of SQL's own in DuckDB and BigQuery."""
    return {"seq": "number", "at": "written_at"}.get(column, column)


def stored_row(row: Row) -> Row:
    """A row of a plain table under the names that the store has."""
    return {("at" if name == "written_at" else name): value for name, value in row.items()}


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
        self._stream.write(b"".join(json_line({"in": name, **row}) for row in rows))


def json_line(row: Row) -> bytes:
    """A row as one line."""
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z)


class CsvTable:
    """CSV: the columns of `receipts` but for axes and documents, with lane and week; one row a receipt.

    A spreadsheet runs a text that begins with one of ``= + - @`` as a formula; such a text gets an apostrophe in front,
    unless the file is ``raw``, for programs.
    """

    def __init__(self, stream: IO[str], *, raw: bool = False) -> None:
        self._raw = raw
        self._names = [field.name for field in datasets()["receipts"].fields if field.name not in _LEFT_OUT]
        self._writer = csv.writer(stream)  # lines end as in RFC 4180; a bare carriage return is quoted then
        self._writer.writerow([*("lane" if name == "run_lane" else name for name in self._names), "week"])

    def add(self, name: str, rows: Sequence[Row], partition: Partition | None = None) -> None:
        """Write receipts; what speaks of them is left out."""
        for row in rows if name == "receipts" else ():
            cells = [_cell(row[column]) for column in self._names]
            if not self._raw:
                cells = [f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell for cell in cells]
            self._writer.writerow([*cells, week(row["finished"] or row["started"])])


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, bool):
        return str(value).lower()
    return " ".join(value) if isinstance(value, list) else value


# Documents lie raw in a column and zstd sees what receipts of one page have in common. At level 6 a 15 kB receipt (64
# chips, 300 steps) takes 2.0 kB in 0.09 ms; level 12 saves 5 % for four times the time, level 3 costs 4 % more.
_LEVEL: Final = 6
_GROUP_BYTES: Final = 32 * 2**20  # of documents, held in memory until their row group is written
_FILE_ROWS: Final = 50_000
_PAGE_BYTES: Final = 2**20
# Documents are up to 16 MiB; a page is looked at after so many.
_PAGE_ROWS: Final = 64
_PLAIN: Final = ("document", "body")


class ParquetWriter:
    """Takes rows of one dataset and partition after the other, and holds one row group of each in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, _Part] = {}
        self.files: dict[str, list[str]] = {name: [] for name in datasets()}

    def __enter__(self) -> ParquetWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._open):
            self._close(name)
        if error is None:
            # Engines read a dataset's columns from its files, and want at least one.
            for name, dataset in datasets().items():
                if not self.files[name]:
                    self.add(name, (), NOWHERE if dataset.partitioned else None)
                    self._close(name)

    def add(self, name: str, rows: Sequence[Row], partition: Partition | None = None) -> None:
        """Write rows of a dataset; those of one partition come one after the other."""
        part = self._open.get(name)
        if part is not None and part.partition != partition:
            self._close(name)
        elif name == "receipts" and part is not None and part.written >= _FILE_ROWS:
            # Their verdicts begin a new file as well: both lie in equal parts, and are read together.
            for other in ("receipts", "verdicts"):
                self._close(other)
        if name not in self._open:
            file = f"part-{len(self.files[name]):05d}.parquet"
            place = f"{name}/{partition.folder}/{file}" if partition else f"{name}/{file}"
            self.files[name].append(place)
            self._open[name] = _Part(datasets()[name], self._folder / place, partition)
        self._open[name].add(rows)

    def _close(self, name: str) -> None:
        part = self._open.pop(name, None)
        if part is not None:
            part.close()


class _Part:
    """One file."""

    def __init__(self, dataset: Dataset, place: Path, partition: Partition | None) -> None:
        pa, pq = extra("pyarrow", "data"), extra("pyarrow.parquet", "data")
        place.parent.mkdir(parents=True, exist_ok=True)
        self.partition = partition
        self.written = 0
        self._dataset = dataset
        self._tables: list[Any] = []
        self._bytes = 0
        wanted = arrow_schema(dataset)
        # Every leaf column by its path in Parquet.
        sink = pa.BufferOutputStream()
        pq.write_table(wanted.empty_table(), sink)
        columns = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
        light = [column.path for column in columns if column.path not in _PLAIN]
        self._writer = pq.ParquetWriter(
            place,
            wanted,
            compression="zstd",
            compression_level=_LEVEL,
            use_dictionary=light,
            write_statistics=light,
            data_page_size=_PAGE_BYTES,
            write_batch_size=_PAGE_ROWS,
            version="2.6",
            store_schema=True,
        )

    def add(self, rows: Sequence[Row]) -> None:
        table = arrow_table(self._dataset, rows)
        self._tables.append(table)
        self._bytes += table.nbytes
        self.written += len(rows)
        if self._bytes >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._tables:
            whole = extra("pyarrow", "data").concat_tables(self._tables)
            self._writer.write_table(whole, row_group_size=max(1, len(whole)))
        self._tables, self._bytes = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()
