"""Writing Parquet: a folder a dataset; receipts and their verdicts in Hive's folders of lane and week."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from receipts.plugins.exchange.rows import NOWHERE, Partition
from receipts.workflows.datasets import Dataset, Row, arrow_schema, arrow_table, datasets

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
            whole = pa.concat_tables(self._tables)
            self._writer.write_table(whole, row_group_size=max(1, len(whole)))
        self._tables, self._bytes = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()
