"""How fast a store goes out and comes back, and how large it is: `python -m benchmarks.store_export`.

Receipts of about 15 kB (64 chips, 300 steps) as in `store_submit`, each with its verdict. The floors are what the same
bytes cost without any of it: pyarrow writing and reading the documents and verdicts as two columns of Parquet, and
sqlite3's own dump of the store's file.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.result import Result
from benchmarks.store_submit import document
from receipts.judging.rulebook import Rulebook
from receipts.plugins.exchange.export import ExportOptions, export
from receipts.plugins.exchange.source import source
from receipts.plugins.exchange.store_import import import_store
from receipts.receipt import Document
from receipts.store import open_store
from receipts.workflows.submit import submit

BYTES_BAR = 3_300
MEMORY_BAR = 500
_MEASURED = """
import sys
from benchmarks.store_export import most_memory, {what}
{what}(sys.argv[1], sys.argv[2])
print(most_memory())
"""


def out(store: str, place: str) -> None:
    """Export a store as Parquet."""
    with open_store(store, create=False) as opened:
        export(opened, Path(place), "parquet", ExportOptions())


def back(store: str, place: str) -> None:
    """Import an export into a new store."""
    with open_store(store) as opened:
        import_store(source(Path(place)), opened, Rulebook())


def fill(store: Path, count: int) -> None:
    """Submit so many receipts."""
    rulebook = Rulebook()
    with open_store(str(store)) as opened:
        for outcome in submit((Document(document(seed), "bench") for seed in range(count)), opened, rulebook):
            assert outcome.stored, outcome.error


def most_memory() -> int:
    """The most that this process ever held, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says of a child on Linux counts what its parent held when it forked
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) // 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most // 2**20 if sys.platform == "darwin" else most // 1024


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def _floor_out(store: Path, place: Path) -> None:
    """The same documents and verdicts, out of the same file and into Parquet at the same level."""
    import zlib

    import pyarrow as pa
    import pyarrow.parquet as pq

    with closing(sqlite3.connect(store)) as connection, connection:
        columns = {}
        for table in ("documents", "verdicts"):
            rows = connection.execute(f"SELECT body FROM {table}").fetchall()
            columns[table] = pa.array([zlib.decompress(body).decode() for (body,) in rows])
    pq.write_table(pa.table(columns), place, compression="zstd", compression_level=6, use_dictionary=False)


def _floor_back(place: Path, store: Path) -> None:
    """The same texts out of Parquet, packed, and into one table of SQLite, a few hundred a transaction."""
    import zlib

    import pyarrow.parquet as pq

    connection = sqlite3.connect(store, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (document BLOB, verdict BLOB)")
    for batch in pq.ParquetFile(place).iter_batches(250):
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        packed = [[zlib.compress(text.encode(), 3) for text in row] for row in rows]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO rows VALUES (?, ?)", packed)
        connection.execute("COMMIT")
    connection.close()


def _memory(what: str, *words: str) -> int:
    """The most memory that a process of its own takes for it, in MB."""
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED.format(what=what), *words],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout.split()[-1])


def figures(count: int, folder: Path | None = None) -> dict[str, float]:
    """Seconds on the clock and of CPU, bytes a receipt, and megabytes. ``folder`` decides on which disk."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        place = Path(made)
        store, exported = place / "store.sqlite", place / "out"
        fill(store, count)
        found: dict[str, float] = {"receipts": count}
        calls: dict[str, Callable[[], object]] = {
            "floor_out": lambda: _floor_out(store, place / "floor.parquet"),
            "out": lambda: out(str(store), str(exported)),
            "floor_back": lambda: _floor_back(place / "floor.parquet", place / "floor.sqlite"),
            "back": lambda: back(str(place / "back.sqlite"), str(exported)),
        }
        for name, call in calls.items():
            found[f"{name}_s"], found[f"{name}_cpu_s"] = _timed(call)
        size = sum(path.stat().st_size for path in exported.rglob("*") if path.is_file())
        found["bytes"] = size / count
        found["document_bytes"] = len(document(0))
        found["floor_bytes"] = (place / "floor.parquet").stat().st_size / count
        found["sqlite_bytes"] = store.stat().st_size / count
        found["out_mb"] = _memory("out", str(store), str(place / "again"))
        found["back_mb"] = _memory("back", str(place / "again.sqlite"), str(exported))
        return found


def measure(quick: bool = False) -> list[Result]:
    """Out, back, size and memory."""
    count = 500 if quick else 5_000
    found = figures(count)
    rows = {name: found[name] / count * 1e3 for name in found if name.endswith("_s")}
    return [
        Result("export a receipt, Parquet", rows["out_s"], "ms", "two columns by pyarrow", rows["floor_out_s"]),
        Result("import a receipt", rows["back_s"], "ms", "two columns into SQLite", rows["floor_back_s"]),
        Result("bytes a receipt in Parquet", found["bytes"], "B", "document", found["document_bytes"]),
        Result("bytes a receipt in Parquet, at most", found["bytes"], "B", bar=BYTES_BAR, bar_on="value"),
        Result("memory of an export", found["out_mb"], "MB", bar=MEMORY_BAR, bar_on="value"),
        Result("memory of an import", found["back_mb"], "MB", bar=MEMORY_BAR, bar_on="value"),
    ]


def main() -> int:
    """Print the figures; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--receipts", type=int, default=5_000)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--folder", type=Path, help="where to put stores and exports")
    call = parser.parse_args()
    found = figures(call.receipts, call.folder)
    if call.json:
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            print(f"{name:>16}  {value:12,.2f}")
    return int(found["bytes"] > BYTES_BAR or max(found["out_mb"], found["back_mb"]) > MEMORY_BAR)


if __name__ == "__main__":
    raise SystemExit(main())
