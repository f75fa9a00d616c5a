"""Filling a store with launches, a state of the code at a time; what is there already is not made again."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, func, select

from benchmarks.scaling.documents import Size
from benchmarks.scaling.launches import Launch, launches
from benchmarks.scaling.rows import Maker
from receipts.axes.configuration import AxisPart, Configuration
from receipts.base.environment import this_process
from receipts.store import Store, index, open_store
from receipts.store.database import writing
from receipts.store.sql import engine_of
from receipts.store.submission import Prepared, _New, _rows
from receipts.store.tables import configurations, receipts, verdicts

AT_ONCE: Final = 2000
_TOLD: Final = 10  # batches from one line to the next
# A load that is cut off begins with the last batch again; that a power cut would lose more of it does not matter here.
_QUICK: Final = ("synchronous = OFF", "foreign_keys = OFF", "cache_size = -1500000", "wal_autocheckpoint = 50000")


def fill(path: Path, count: int, size: Size) -> None:
    """Bring a SQLite store to so many launches."""
    with open_store(str(path)) as opened:
        there = _count(opened)
    if there < count:
        store(path, islice(launches(), there, count), size, AT_ONCE)


def store(path: Path, some: Iterable[Launch], size: Size, at_once: int) -> None:
    """Store launches, so many in a transaction."""
    maker, writer, begun, done = Maker(size), Writer(), time.monotonic(), 0
    with open_store(str(path)) as opened:
        _pragmas(opened, _QUICK)
        for at, batch in enumerate(_batches(iter(some), at_once), 1):
            with writing(opened.database.engine) as connection:
                writer.put(connection, _made(maker, batch))
            done += len(batch)
            if at % _TOLD == 0:
                sys.stderr.write(f"{path.name}: {done:,} receipts more, {time.monotonic() - begun:,.0f} s\n")
        _pragmas(opened, ["wal_checkpoint(TRUNCATE)"])


def _pragmas(opened: Store, texts: Sequence[str]) -> None:
    """Outside a transaction, on the one connection that the store has by now."""
    connection = opened.database.engine.raw_connection()
    for text in texts:
        connection.cursor().execute(f"PRAGMA {text}").fetchall()
    connection.close()


def _count(opened: Store) -> int:
    with opened.database.reading() as connection:
        found: int = connection.execute(select(func.count()).select_from(receipts)).scalar_one()
        return found


def _batches(found: Iterator[Launch], at_once: int) -> Iterator[list[Launch]]:
    while batch := list(islice(found, at_once)):
        yield batch


def _made(maker: Maker, batch: Sequence[Launch]) -> list[tuple[Prepared, Prepared | None]]:
    """Receipts, each with the one that it replaces, which came just before it."""
    made: list[tuple[Prepared, Prepared | None]] = []
    for launch in batch:
        replaced = None
        if launch.kind.replaces:
            replaced = made[-1][0] if made else maker.made(_before(launch))[0]
        made.append((maker.made(launch, replaced.row["id"] if replaced else None)[0], replaced))
    return made


def _before(launch: Launch) -> Launch:
    return launch._replace(number=launch.of, kind=launch.kind._replace(replaces=False))


class Writer:
    """Writes new receipts as a submit does; of the axis index, it remembers values that it met."""

    def __init__(self) -> None:
        self._values: dict[AxisPart, int] = {}
        self._known: dict[bytes, int] = {}

    def put(self, connection: Connection, made: Sequence[tuple[Prepared, Prepared | None]]) -> None:
        """Write them, in the transaction of the caller."""
        placed = self._placed(connection, [item.configuration for item, _ in made])
        last = connection.execute(select(func.max(receipts.c.seq))).scalar() or 0
        verdict = connection.execute(select(func.max(verdicts.c.seq))).scalar() or 0
        new = [
            _New(item, last + at, verdict + at, int(replaced is not None), list(_said(item, replaced)))
            for at, (item, replaced) in enumerate(made, 1)
        ]
        engine_of(connection).write(connection, _rows(new, placed, str(this_process())), end=True)

    def _placed(self, connection: Connection, asked: Sequence[Configuration]) -> dict[bytes, int]:
        found = {item.whole: item for item in asked}
        unknown = [item for whole, item in found.items() if whole not in self._known]
        keys = {(item.digest, item.whole) for item in unknown}
        there = {bytes(whole): seq for _, whole, seq in index._OF_WHOLE.read(connection, keys)}
        new = sorted((item for item in unknown if item.whole not in there), key=lambda item: (item.digest, item.whole))
        made = there | self._configure(connection, new)
        placed = {whole: self._known.get(whole) or made[whole] for whole in found}
        self._known = placed
        return placed

    def _configure(self, connection: Connection, new: Sequence[Configuration]) -> dict[bytes, int]:
        parts = {part for item in new for part in item.parts.values()} - self._values.keys()
        if parts:
            self._values |= index.interned(connection, parts)
        first = 1 + (connection.execute(select(func.max(configurations.c.seq))).scalar() or 0)
        rows, axes = [], []
        for seq, item in enumerate(new, first):
            rows.append((seq, item.digest, item.whole, *index.columns_of(item, self._values)))
            axes += index.axes_of(seq, item, self._values)
        driver: Any = connection.connection.driver_connection
        driver.executemany(
            "INSERT INTO configurations (seq, digest, whole, catalogue, lane, anchor, line, value_numbers) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        axes.sort(key=itemgetter(0, 1))
        driver.executemany("INSERT INTO axes (value, configuration, leave_one_out) VALUES (?, ?, ?)", axes)
        return {item.whole: seq for seq, item in enumerate(new, first)}


def _said(item: Prepared, replaced: Prepared | None) -> Iterator[dict[str, Any]]:
    if replaced is not None:
        row = item.row
        yield {
            "receipt": replaced.row["id"],
            "successor": row["id"],
            "reason": row["supersedes_reason"],
            "at": row["submitted_at"],
        }
