"""How a store grows old: `python -m benchmarks.store_scale --receipts 10000,100000,1000000 --keep DIR --page FILE`.

Stores of a laboratory's launches (`benchmarks.scaling`), of 64 chips and 300 steps up to 10,000 of them and smaller
ones beyond, filled row by row as a submit fills them, and every question asked of launches drawn over the whole store.
Rounds alternate with a floor: raw sqlite3 or psycopg, one SELECT by primary key. Kept in a folder, a store is filled
once; ``--ask`` asks stores that are there, of either engine. ``proof`` compares what is filled in with what is
submitted.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.result import ROW, Result, row, show
from benchmarks.scaling import engines
from benchmarks.scaling.asks import ALIKE_NAME, Ask, Drawn
from benchmarks.scaling.documents import Size
from benchmarks.scaling.load import fill
from benchmarks.scaling.submits import submits
from benchmarks.submitting import servers
from receipts.store import open_store

Clock = Callable[[], float]
SERIES: Final = (10_000,)
WHOLE_UP_TO: Final = 10_000
ROUNDS: Final = 200
PATIENCE: Final = 6.0  # seconds that are spent on one question
BYTES: Final = {"SQLite": 10_000, "PostgreSQL": 14_000}


def measure(quick: bool = False) -> list[Result]:
    """Stores of 10,000 receipts on both engines; with ``quick`` of 2,000."""
    with tempfile.TemporaryDirectory() as place:
        return series((2_000,) if quick else SERIES, Path(place), 40 if quick else ROUNDS, postgresql=SERIES[0])


def series(sizes: Sequence[int], keep: Path, rounds: int, postgresql: int) -> list[Result]:
    """Every figure of stores of these sizes, those of PostgreSQL up to a size."""
    results: list[Result] = []
    for count in sizes:
        results += _sqlite(count, keep, rounds)
    if any(count <= postgresql for count in sizes):
        with ExitStack() as stack:
            try:
                server = stack.enter_context(servers.server())
            except servers.NoPostgres as missing:
                sys.stderr.write(f"PostgreSQL is left out: {missing}\n")
                return results
            for count in sizes:
                if count <= postgresql:
                    results += _postgresql(count, keep, rounds, server)
    return results


def measured(sizes: Sequence[int], keep: Path, rounds: int, postgresql: int) -> list[Result]:
    """`series`, and how the look-ups grow from one size to the next."""
    results = series(sizes, keep, rounds, postgresql)
    return [*results, *growth(results, sizes)]


def there(urls: Sequence[str], rounds: int, only: str = "") -> list[Result]:
    """Every question of stores that were filled before, by path or URL, or those whose name has this text."""
    results: list[Result] = []
    for url in urls:
        # Without the few that were submitted there and timed.
        count = engines.count(url) // 1000 * 1000
        if url.startswith("postgresql"):
            floor, clock = engines.postgresql_floor(url), engines.server_clock(url)
            results += _asked(url, count, rounds, "PostgreSQL", floor, clock, only)
        else:
            results += _asked(url, count, rounds, "SQLite", engines.sqlite_floor(Path(url)), only=only)
        results.append(_bytes(servers.size(url), count, "PostgreSQL" if url.startswith("postgresql") else "SQLite"))
    return results


def _size(count: int) -> Size:
    return "whole" if count <= WHOLE_UP_TO else "summary"


def _sqlite(count: int, keep: Path, rounds: int) -> Iterator[Result]:
    path = keep / f"{_size(count)}-{count}.sqlite"
    fill(path, count, _size(count))
    yield from _asked(str(path), count, rounds, "SQLite", engines.sqlite_floor(path))
    held = engines.sqlite_bytes(path)
    yield _bytes(held, count, "SQLite")
    yield from submits(path, count, _size(count), rounds)


def _postgresql(count: int, keep: Path, rounds: int, server: str) -> Iterator[Result]:
    path = keep / f"{_size(count)}-{count}.sqlite"
    url = servers.new_database(server, f"scale_{count}")
    engines.copy(path, url)
    yield from _asked(url, count, rounds, "PostgreSQL", engines.postgresql_floor(url), engines.server_clock(url))
    yield _bytes(servers.size(url), count, "PostgreSQL")


def _bytes(held: int, count: int, engine: str) -> Result:
    bar = BYTES[engine] if _size(count) == "whole" else None
    return Result(f"{count:,}: bytes a receipt, {engine}", held / count, "B", bar=bar, bar_on="value")


def _asked(
    url: str,
    count: int,
    rounds: int,
    engine: str,
    floor: Callable[[int], object],
    server: Clock = lambda: 0.0,
    only: str = "",
) -> Iterator[Result]:
    with open_store(url, create=False) as store:
        drawn = Drawn(store, count, _size(count), rounds)
        for ask in (item for item in drawn.asks() if only in item.name):
            yield from _figures(ask, count, engine, [partial(floor, number) for number in drawn.numbers], server)


def _figures(
    ask: Ask, count: int, engine: str, floors: Sequence[Callable[[], object]], server: Clock
) -> Iterator[Result]:
    """Median of a question, and its p99 where it was asked often enough; ``server`` is the server's own CPU."""
    ask.calls[0]()
    taken, floor, cpu, begun = list[float](), list[float](), list[float](), time.perf_counter()
    for at, call in enumerate(ask.calls):
        floor.append(_ms(floors[at % len(floors)]))
        beside, own = server(), time.process_time()
        taken.append(_ms(call))
        cpu.append((time.process_time() - own + server() - beside) * 1e3)
        if time.perf_counter() - begun > PATIENCE:
            break
    name = f"{count:,}: {ask.name}, {engine}"
    to = ("SELECT by primary key", statistics.median(floor))
    yield Result(name, statistics.median(taken), "ms", *to, ask.bar, "value")
    yield Result(f"{name}, CPU", statistics.median(cpu), "ms", *to, ask.bar, "value")
    if ask.name.startswith("neighbours, look-up"):
        yield Result(f"{name}, p99", sorted(taken)[len(taken) * 99 // 100], "ms", *to)


def _ms(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1e3


def growth(results: Sequence[Result], sizes: Sequence[int]) -> Iterator[Result]:
    """How much longer a look-up takes in the largest store than in each smaller one; log n is the most.

    Of answers that are equally long: a larger store has more neighbours to tell, up to ten of an axis (10.5 a launch of
    10,000 launches, 16.4 of a million), and telling them is no part of finding them.
    """
    medians = {item.name: item.value for item in results}
    for engine, one in product(BYTES, sizes[:-1]):
        # On the clock of the processes: two stores are asked minutes apart, and the machine has other work.
        small, large = (medians.get(f"{count:,}: {ALIKE_NAME}, {engine}, CPU") for count in (one, sizes[-1]))
        if small and large:
            name = f"{ALIKE_NAME}, {sizes[-1]:,} over {one:,}, {engine}, CPU"
            yield Result(name, large / small, "×", bar=math.log(sizes[-1]) / math.log(one), bar_on="value")


def page(results: Sequence[Result], load: float) -> str:
    """The table for the documentation."""
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    lines = [
        "# Large stores",
        "",
        "Written by `python -m benchmarks.store_scale`, which is run by hand. What it fills stores with, and what it",
        "asks of them, stands in `benchmarks/scaling`: 64 chips and 300 steps up to 10,000 receipts, 8 chips beyond.",
        f"Run on {datetime.now(UTC):%Y-%m-%d}, {machine}, at a load of {load:.1f} before it began.",
        "Medians; a ratio is to a floor of the same run, in turns with the figure. CPU is that of the process and, of",
        "PostgreSQL, of the server's beside it, but for workers that it starts for one statement. Beside other work",
        "the clock tells more of that than of a question, and CPU is what to judge by.",
        "",
        f"| {' | '.join(ROW)} |",
        "| --- | ---: | --- | ---: | ---: | --- |",
        *(f"| {' | '.join(row(item))} |" for item in results),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the figures, and write them where asked; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store_scale", description=__doc__)
    parser.add_argument("--receipts", default="10000", help="sizes of the stores, with commas between them")
    parser.add_argument("--postgresql", type=int, default=100_000, help="the largest store that PostgreSQL gets, too")
    parser.add_argument("--ask", help="stores that are there, by path or URL, with commas between them; none is filled")
    parser.add_argument("--only", default="", metavar="TEXT", help="with --ask: questions whose name has this text")
    parser.add_argument("--keep", type=Path, help="folder of the stores, which are filled where they are not full")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--page", type=Path, help="write the table there")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    if options.ask:
        urls = options.ask.split(",")
        sizes = sorted({engines.count(url) // 1000 * 1000 for url in urls})
        results = there(urls, options.rounds, options.only)
        results += growth(results, sizes)
    else:
        sizes = sorted(int(text) for text in options.receipts.split(","))
        with ExitStack() as stack:
            keep = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
            keep.mkdir(parents=True, exist_ok=True)
            results = measured(sizes, keep, options.rounds, options.postgresql)
    if options.page:
        options.page.write_text(page(results, load), encoding="utf-8")
    return show(results, as_json=options.json)


if __name__ == "__main__":
    raise SystemExit(main())
