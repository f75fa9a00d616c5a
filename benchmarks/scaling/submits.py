"""One durable submit into a large store, beside an insert of the same bytes into a table of as many."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from benchmarks.result import Result
from benchmarks.scaling.documents import Size
from benchmarks.scaling.launches import launches
from benchmarks.scaling.rows import Maker
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import open_store
from receipts.workflows.submit import submit

WARM: Final = 20
BAR: Final = 10.0


def submits(path: Path, count: int, size: Size, rounds: int) -> Iterator[Result]:
    """Submit the launches that come next, in turns with the floor. They stay in the store."""
    with tempfile.TemporaryDirectory(dir=path.parent) as place, open_store(str(path), create=False) as store:
        floor = _floor(path, Path(place) / "floor.sqlite")
        there = floor.execute("SELECT count(*) FROM documents").fetchone()[0]
        maker, rulebook = Maker(size), Rulebook()
        raw, own = list[float](), list[float]()
        # One that replaces another must name it.
        some = (item for item in islice(launches(), there, None) if not item.kind.replaces)
        for launch in islice(some, rounds + WARM):
            made, document = maker.made(launch)
            begun = time.perf_counter()
            floor.execute("BEGIN IMMEDIATE")
            floor.execute("INSERT INTO documents VALUES (?, ?)", (made.row["id"], document))
            floor.execute("COMMIT")
            between = time.perf_counter()
            (outcome,) = submit([Document(document, "scale")], store, rulebook)
            own.append((time.perf_counter() - between) * 1e3)
            raw.append((between - begun) * 1e3)
            assert outcome.submitted is not None, outcome.error
        floor.close()
    taken, beside = statistics.median(own[WARM:]), statistics.median(raw[WARM:])
    yield Result(f"{count:,}: durable submit, warm, SQLite", taken, "ms", "raw sqlite3 insert", beside, BAR)
    slowest = sorted(own[WARM:])[len(own[WARM:]) * 99 // 100]
    yield Result(f"{count:,}: p99 of a warm submit, SQLite", slowest, "ms", "its median", taken)


def _floor(path: Path, place: Path) -> sqlite3.Connection:
    """A table with an id for every receipt, as wide an index as the store's, and without their bytes."""
    floor = sqlite3.connect(place, isolation_level=None)
    for text in ("journal_mode = WAL", "synchronous = OFF"):
        floor.execute(f"PRAGMA {text}")
    floor.execute("CREATE TABLE documents (id TEXT PRIMARY KEY, body BLOB NOT NULL)")
    floor.execute("ATTACH ? AS store", (str(path),))
    floor.execute("INSERT INTO documents SELECT id, x'' FROM store.receipts ORDER BY id")
    floor.execute("DETACH store")
    floor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    floor.execute("PRAGMA synchronous = FULL")
    return floor
