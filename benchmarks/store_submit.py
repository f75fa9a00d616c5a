"""How long a durable submit takes beside a raw sqlite3 insert of the same bytes: `python -m benchmarks.store_submit`.

One receipt of about 15 kB (64 chips, 300 steps), warm, in one process, every transaction on the disk (WAL, FULL).
Rounds alternate between the two, so that a busy disk falls on both. CPU is user and system time of the process.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from benchmarks.result import Result
from receipts.judge import judge_receipt
from receipts.metrics import Launch
from receipts.receipt import Document, parse
from receipts.rulebook import Rulebook
from receipts.store import open_store
from receipts.submit import submit

BASE = Path(__file__).resolve().parents[1] / "tests" / "cases" / "base.json"
CHIPS = 64
BARS = {"ratio": 8.0, "cpu_above_ms": 2.0}


def document(seed: int) -> bytes:
    """A receipt of one more launch that every rule finds in order: 64 chips with their memory, 300 steps."""
    draw = random.Random(seed)
    tree = json.loads(BASE.read_bytes())
    tree["run"]["launch"] = str(uuid.UUID(int=draw.getrandbits(128)))
    tree["run"]["label"] = f"bench-{seed}"
    tree["hardware"] |= {"chips": CHIPS, "hosts": 8}
    tree["parallelism"] |= {"data": CHIPS}
    tree["batch"] |= {"global_batch": tree["batch"]["micro_batch"] * CHIPS, "accumulation": 1}
    measured = tree["measurement"]
    steps = measured["step_durations_seconds"] = [round(draw.gauss(0.8, 0.004), 6) for _ in range(300)]
    tokens = measured["tokens_per_step"] = tree["batch"]["global_batch"] * tree["batch"]["sequence_length"]
    middle = statistics.median(steps[measured["window"]["start"] :])
    measured["stated"] |= {
        "step_seconds": round(middle, 4),
        "step_seconds_stated": f"{middle * 1e3:.1f} ms",
        "tokens_per_second": round(tokens / middle, 1),
        "tokens_per_second_stated": f"{tokens / middle:,.1f}",
    }
    tree["memory"]["chips"] = [_chip(chip, draw) for chip in range(CHIPS)]
    for file in tree["evidence"]:
        file["sha256"] = draw.randbytes(32).hex()
    return json.dumps(tree, separators=(",", ":")).encode()


def _chip(chip: int, draw: random.Random) -> dict[str, int | str]:
    used = 8_000_000_000 + draw.randrange(10**8)
    limits = {"bytes_limit": 17_179_869_184, "peak_bytes": used + draw.randrange(10**9)}
    return {"chip": chip, "phase": "steady", "bytes_used": used, **limits}


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3


def measure(quick: bool = False) -> list[Result]:
    """Durable submit beside the raw insert, wall and CPU."""
    found = figures(50 if quick else 300)
    above = Result("CPU of a warm submit above the insert", found["cpu_above_ms"], "ms", bar=2.0, bar_on="value")
    floor = ("raw sqlite3 insert", found["floor_ms"])
    size = Result("bytes a stored receipt", found["stored_bytes"], "B", "document", found["document_bytes"])
    return [Result("durable submit, warm", found["submit_ms"], "ms", *floor, BARS["ratio"]), above, size]


def figures(rounds: int = 300, folder: Path | None = None) -> dict[str, float]:
    """Medians in milliseconds, their ratio, and the CPU above the floor. ``folder`` decides on which disk."""
    documents = [document(seed) for seed in range(rounds + 20)]
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
                raw_times.append(_timed(lambda raw=raw, seed=seed: raw_insert(raw, f"{seed:064x}")))  # type: ignore[misc]
                own_times.append(_timed(lambda raw=raw: own_submit(raw)))  # type: ignore[misc]
        floor.close()
        size = (Path(place) / "store.sqlite").stat().st_size / len(documents)
    raw_wall, raw_cpu = (statistics.median(column) for column in zip(*raw_times[20:], strict=True))
    own_wall, own_cpu = (statistics.median(column) for column in zip(*own_times[20:], strict=True))
    return {
        "document_bytes": len(documents[0]),
        "stored_bytes": size,
        "floor_ms": raw_wall,
        "submit_ms": own_wall,
        "ratio": own_wall / raw_wall,
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
        for raw in [document(seed) for seed in range(rounds + 20)]:
            marks = [time.process_time()]
            parsed = parse(Document(raw, "bench"))
            marks.append(time.process_time())
            (facts,) = store.facts_of_new([parsed])
            marks.append(time.process_time())
            launch = Launch(parsed, rulebook.lanes.of(parsed.receipt.run.lane))
            verdict = judge_receipt(parsed, launch.lane, rulebook.rules, facts, launch)
            marks.append(time.process_time())
            store.submit(launch, verdict)
            marks.append(time.process_time())
            spent.append(tuple((b - a) * 1e3 for a, b in pairwise(marks)))
    middles = (statistics.median(column) for column in zip(*spent[20:], strict=True))
    return dict(zip(("parse", "facts", "judge", "write"), middles, strict=True))


def main() -> int:
    """Print the figures; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--folder", type=Path, help="where to put the two databases")
    call = parser.parse_args()
    found = figures(call.rounds, call.folder)
    found |= {f"{name}_cpu_ms": value for name, value in parts(call.rounds, call.folder).items()}
    if call.json:
        print(json.dumps(found, indent=2))
    else:
        for name, value in found.items():
            bar = f"   (bar: at most {BARS[name]:g})" if name in BARS else ""
            print(f"{name:>16}  {value:10.2f}{bar}")
    return int(any(found[name] > bar for name, bar in BARS.items()))


if __name__ == "__main__":
    raise SystemExit(main())
