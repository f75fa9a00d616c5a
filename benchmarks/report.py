"""What the weekly report costs: `python -m benchmarks.report [--receipts 1000000] [--store URL]`.

A store of a year (see `benchmarks/reporting/fill.py`): the receipts lie evenly over 52 weeks, so that a week has one in
fifty-two of them; five launches of every point of a grid in three lanes, stored verdicts under the present rules. The
command is run as a person runs it, in a process of its own, start-up and files included, from bytecode as an installed
wheel is. Beside it the floor: the same week's counts and the frontier by SQL alone, in Python's sqlite3, as
docs/scale.md has them.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.reporting.fill import BEGIN, WEEKS, fill
from benchmarks.result import Result, show
from receipts.questions.week.interval import Week

SECONDS: Final = {10_000: 2.0, 100_000: 4.0, 1_000_000: 12.0}
MEGABYTES: Final = {1_000_000: 500.0}
ROUNDS: Final = 3
ASKED: Final = 29  # weeks after the first: the middle of the year, with as much history as future
_RAN: Final = "coalesce(finished, started)"
_STANDS: Final = "NOT EXISTS (SELECT 1 FROM supersessions WHERE supersessions.receipt = receipts.id)"
FLOOR: Final = (
    f"""SELECT lane, status, {_STANDS}, count(*) FROM receipts
        WHERE {_RAN} >= :since AND {_RAN} < :until GROUP BY 1, 2, 3""",
    f"""SELECT * FROM (
        SELECT *, row_number() OVER (
            PARTITION BY lane, family, model, accelerator, sequence_length, chips
            ORDER BY tokens_per_second_per_chip DESC, seq
        ) AS place
        FROM receipts
        WHERE {_RAN} < :until AND kind = 'training' AND outcome = 'ok' AND provenance IN ('measured', 'quoted')
          AND status = 'valid' AND rate_source = 'steps' AND tokens_per_second_per_chip > 0 AND {_STANDS}
    ) WHERE place = 1""",
)


class Cost(NamedTuple):
    """Seconds of the clock and of the processor, and the most memory, in megabytes."""

    wall: float
    cpu: float
    megabytes: float


def measure(quick: bool = False, counts: tuple[int, ...] = ()) -> list[Result]:
    """Every size; a million takes a quarter of an hour to write, and is asked for by ``--receipts``."""
    results: list[Result] = []
    for count in counts or ((10_000,) if quick else (10_000, 100_000)):
        with tempfile.TemporaryDirectory() as place:
            store = str(Path(place) / "store.sqlite")
            fill(store, count)
            results += of(store, count)
    return results


def of(store: str, count: int) -> Iterator[Result]:
    """The figures of a store that is there."""
    week = Week.of(BEGIN + timedelta(weeks=ASKED))
    with tempfile.TemporaryDirectory() as bytecode:
        report(store, week, bytecode)  # writes the bytecode
        rounds = [(report(store, week, bytecode), floor(store, week)) for _ in range(ROUNDS)]
    costs, floors = zip(*rounds, strict=True)
    best, least = min(costs), min(floors)
    name = f"weekly report of {count:,} receipts, one week in {WEEKS}"
    yield Result(name, best.wall, "s", "SQL alone", least, SECONDS.get(count), "value")
    yield Result(f"{name}: processor", min(item.cpu for item in costs), "s")
    largest = max(item.megabytes for item in costs)
    yield Result(f"{name}: memory", largest, "MB", bar=MEGABYTES.get(count), bar_on="value")


def report(store: str, week: Week, bytecode: str) -> Cost:
    """Run the command once, with its bytecode in a folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPYCACHEPREFIX": bytecode}
    with tempfile.TemporaryDirectory() as out:
        words = ["--store", store, "report", "weekly", "--week", str(week), "--as-of", "2026-06-01", "--out", out]
        begun = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "receipts", *words],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        said = process.stderr.read().decode() if process.stderr is not None else ""
        assert status == 0, said
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def floor(store: str, week: Week) -> float:
    """Seconds of the same week's counts and frontier, by SQL alone."""

    def told(at: datetime) -> str:
        return f"{at:%Y-%m-%d %H:%M:%S.%f}"

    given = {"since": told(week.since), "until": told(week.until)}
    connection = sqlite3.connect(store)
    begun = time.perf_counter()
    for query in FLOOR:
        connection.execute(query, given).fetchall()
    spent = time.perf_counter() - begun
    connection.close()
    return spent


def main() -> int:
    """Print the figures; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--receipts", type=int, action="append", help="size of the store; may be given again")
    parser.add_argument("--store", help="a SQLite store that was written before, of the size --receipts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    call = parser.parse_args()
    counts = tuple(call.receipts or ())
    results = list(of(call.store, *counts)) if call.store and len(counts) == 1 else measure(counts=counts)
    return show(results, as_json=call.json)


if __name__ == "__main__":
    raise SystemExit(main())
