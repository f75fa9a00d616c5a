"""What it takes to submit: `python -m benchmarks.store_submit [--peer mlflow]`.

One receipt of about 15 kB (64 chips, 300 steps), warm, in one process, axis index and all, every transaction on the
disk (WAL, FULL), beside a raw sqlite3 insert of the same bytes. Rounds alternate between the two, so that a busy disk
falls on both. CPU is user and system time of the process. Then round trips to PostgreSQL, counted by a proxy; bytes a
receipt; many receipts at once; sixteen processes at once; and MLflow, where it is asked for.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path

from benchmarks.result import Result, show
from benchmarks.submitting import servers
from benchmarks.submitting.crowd import crowd
from benchmarks.submitting.documents import document, grid, summary
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import Rulebook
from receipts.metrics import Launch
from receipts.receipt import Document, parse
from receipts.store import open_store
from receipts.workflows.submit import BATCH, submit

__all__ = ["document", "figures", "measure", "parts"]

WARM = 20  # submits that are not counted
BARS = {"ratio": 10.0, "cpu_above_ms": 2.0, "p99_ratio": 4.0}
ONE_PROCESS, TWO_CORES = 1000 / 800, 1000 / 1500  # milliseconds a receipt
SQLITE_BYTES, POSTGRESQL_BYTES = 10_000, 14_000
FASTER, SMALLER = 25, 15  # than MLflow


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3


def measure(quick: bool = False, peer: str | None = None) -> list[Result]:
    """Every figure; those of PostgreSQL where this machine has one."""
    costs = figures(100 if quick else 1000)
    results = [
        Result(
            "durable submit, warm",
            costs["submit_ms"],
            "ms",
            "raw sqlite3 insert",
            costs["floor_ms"],
            BARS["ratio"],
        ),
        Result("CPU of a warm submit above the insert", costs["cpu_above_ms"], "ms", bar=2.0, bar_on="value"),
        Result("p99 of a warm submit", costs["p99_ms"], "ms", "its median", costs["submit_ms"], BARS["p99_ratio"]),
        Result(
            "bytes a stored receipt, SQLite",
            costs["stored_bytes"],
            "B",
            "document",
            costs["document_bytes"],
            SQLITE_BYTES,
            "value",
        ),
    ]
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        results += _engine("SQLite", lambda name: str(place / f"{name}.sqlite"), quick)
        try:
            server = stack.enter_context(servers.server())
        except servers.NoPostgres as missing:
            sys.stderr.write(f"PostgreSQL is left out: {missing}\n")
        else:
            results += [*_trips(server), *_engine("PostgreSQL", lambda name: servers.new_database(server, name), quick)]
    if peer == "mlflow":
        results += _beside_mlflow(costs)
    else:
        sys.stderr.write("MLflow is left out: ask for it with --peer mlflow, which installs it for this run\n")
    return results


def _engine(name: str, new_store: Callable[[str], str], quick: bool) -> Iterator[Result]:
    """Many receipts at once on one engine, how large they are there, and sixteen processes at once."""
    count = 1000 if quick else 4000
    for jobs, limit in ((1, ONE_PROCESS), (2, TWO_CORES)):
        processes = "one process" if jobs == 1 else f"{jobs} processes judge"
        small = bulk(new_store(f"small_{jobs}"), summary, count, jobs)
        yield Result(f"bulk, summary-sized, {processes}, {name}", small, "ms", bar=limit, bar_on="value")
        url = new_store(f"large_{jobs}")
        yield Result(f"bulk, of 15 kB, {processes}, {name}", bulk(url, document, count, jobs), "ms")
        if name == "PostgreSQL" and jobs == 1:
            held = servers.size(url) / count
            size = len(document(0))
            yield Result(f"bytes a stored receipt, {name}", held, "B", "document", size, POSTGRESQL_BYTES, "value")
    met = crowd(new_store("crowd"), 400 if quick else 2000)
    for error in met.errors[:3]:
        sys.stderr.write(f"crowd: {error}\n")
    yield Result(f"16 processes at once, lost, twice or in error, {name}", met.faults, "", bar=0, bar_on="value")


def bulk(url: str, make: Callable[[int], bytes], count: int, jobs: int) -> float:
    """Milliseconds a receipt of a load, a grid's launches, from the first batch that is on the disk to the last."""
    documents = [Document(grid(make, seed), str(seed)) for seed in range(count)]
    rulebook = Rulebook()
    with open_store(url) as store:
        moments = [
            time.perf_counter()
            for outcome in submit(documents, store, rulebook, jobs=jobs, resume=True)
            if outcome.submitted is not None and outcome.submitted.new
        ]
    assert len(moments) == count
    return (moments[-1] - moments[0]) / (count - BATCH) * 1e3


def _trips(server: str) -> Iterator[Result]:
    """Round trips of one warm submit, and how long it takes on a server that waits for the disk."""
    rulebook = Rulebook()
    url = servers.new_database(server, "trips")
    with open_store(url) as store:
        walls = [
            _timed(partial(list, submit([Document(document(seed), "bench")], store, rulebook)))[0]
            for seed in range(WARM + 100)
        ]
    yield Result("durable submit, warm, PostgreSQL", statistics.median(walls[WARM:]), "ms")
    with servers.postgres_proxy.before(url) as (proxy, through), open_store(through) as store:
        for seed in range(1000, 1010):
            before = proxy.trips
            list(submit([Document(document(seed), "bench")], store, rulebook))
    yield Result("round trips of a warm submit, PostgreSQL", proxy.trips - before, "", bar=3, bar_on="value")


def _beside_mlflow(own: dict[str, float]) -> Iterator[Result]:
    from benchmarks.submitting.peer import NoPeer, mlflow

    try:
        peer = mlflow()
    except NoPeer as missing:
        sys.stderr.write(f"MLflow is left out: {missing}\n")
        return
    name = f"MLflow {peer.version}, SQLite"
    yield Result("durable submit, warm, beside MLflow", own["submit_ms"], "ms", name, peer.ms, 1 / FASTER)
    yield Result("bytes a stored receipt, beside MLflow", own["stored_bytes"], "B", name, peer.bytes, 1 / SMALLER)


def figures(rounds: int = 300, folder: Path | None = None) -> dict[str, float]:
    """Medians in milliseconds, their ratio, and the CPU above the floor. ``folder`` decides on which disk."""
    documents = [document(seed) for seed in range(rounds + WARM)]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        floor = sqlite3.connect(Path(place) / "floor.sqlite", isolation_level=None)
        floor.execute("PRAGMA journal_mode = WAL")
        floor.execute("PRAGMA synchronous = FULL")
        floor.execute("CREATE TABLE documents (id TEXT PRIMARY KEY, body BLOB NOT NULL)")
        rulebook = Rulebook()
        raw_times, own_times = [], []

        def raw_insert(raw: bytes, name: str) -> None:
            floor.execute("BEGIN IMMEDIATE")
            floor.execute("INSERT INTO documents VALUES (?, ?)", (name, raw))
            floor.execute("COMMIT")

        with open_store(str(Path(place) / "store.sqlite")) as store:

            def own_submit(raw: bytes) -> None:
                (outcome,) = submit([Document(raw, "bench")], store, rulebook)
                assert outcome.submitted is not None, outcome.error
                assert outcome.submitted.new

            for seed, raw in enumerate(documents):
                raw_times.append(_timed(partial(raw_insert, raw, f"{seed:064x}")))
                own_times.append(_timed(partial(own_submit, raw)))
        floor.close()
        size = (Path(place) / "store.sqlite").stat().st_size / len(documents)
    raw_wall, raw_cpu = (statistics.median(column) for column in zip(*raw_times[WARM:], strict=True))
    own_wall, own_cpu = (statistics.median(column) for column in zip(*own_times[WARM:], strict=True))
    slowest = sorted(wall for wall, _ in own_times[WARM:])
    p99 = slowest[len(slowest) * 99 // 100]
    return {
        "document_bytes": len(documents[0]),
        "stored_bytes": size,
        "floor_ms": raw_wall,
        "submit_ms": own_wall,
        "ratio": own_wall / raw_wall,
        "p99_ms": p99,
        "p99_ratio": p99 / own_wall,
        "floor_cpu_ms": raw_cpu,
        "submit_cpu_ms": own_cpu,
        "cpu_above_ms": own_cpu - raw_cpu,
    }


def parts(rounds: int = 300, folder: Path | None = None) -> dict[str, float]:
    """Median CPU milliseconds of each part of a submit, in their order, on documents and a store of their own."""
    rulebook, spent = Rulebook(), list[tuple[float, ...]]()
    with (
        tempfile.TemporaryDirectory(dir=folder) as place,
        open_store(str(Path(place) / "store.sqlite")) as store,
    ):
        for raw in [document(seed) for seed in range(rounds + WARM)]:
            marks = [time.process_time()]
            parsed = parse(Document(raw, "bench"))
            marks.append(time.process_time())
            (facts,) = store.query.facts_of_new([parsed])
            marks.append(time.process_time())
            launch = Launch(parsed, rulebook.lanes.of(parsed.receipt.run.lane))
            verdict = judge_receipt(parsed, launch.lane, rulebook.rules, facts, launch)
            marks.append(time.process_time())
            store.submit(launch, verdict)
            marks.append(time.process_time())
            spent.append(tuple((b - a) * 1e3 for a, b in pairwise(marks)))
    middles = (statistics.median(column) for column in zip(*spent[WARM:], strict=True))
    return dict(zip(("parse", "facts", "judge", "write"), middles, strict=True))


def main() -> int:
    """Print the figures; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warm", action="store_true", help="one warm submit alone, and what its parts take")
    parser.add_argument("--rounds", type=int, default=300, help="submits of --warm")
    parser.add_argument("--folder", type=Path, help="where --warm puts its databases")
    parser.add_argument("--peer", choices=["mlflow"], help="install MLflow for this run, and log the same launches")
    parser.add_argument("--quick", action="store_true", help="few rounds, whose figures are rough")
    parser.add_argument("--json", action="store_true", help="print JSON")
    call = parser.parse_args()
    if call.warm:
        return _warm(call.rounds, call.folder, call.json)
    return show(measure(call.quick, call.peer), as_json=call.json)


def _warm(rounds: int, folder: Path | None, as_json: bool) -> int:
    costs = figures(rounds, folder)
    costs |= {f"{name}_cpu_ms": value for name, value in parts(rounds, folder).items()}
    if as_json:
        print(json.dumps(costs, indent=2))
    else:
        for name, value in costs.items():
            bar = f"   (bar: at most {BARS[name]:g})" if name in BARS else ""
            print(f"{name:>16}  {value:10.2f}{bar}")
    return int(any(costs[name] > bar for name, bar in BARS.items()))


if __name__ == "__main__":
    raise SystemExit(main())
