"""How long a preflight takes at a million signatures, beside one indexed SELECT: `python -m benchmarks.preflight`.

A store of a million training launches: 20,000 bases of 50 launches each, a tenth of which ran out of memory, and one
base that 10,000 launches share. The launches that answers stand on were submitted whole. Warm, in one process: the
plan's file is read, parsed, signed and looked up. Rounds alternate between the figures, so that a busy disk
falls on all.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.result import Result
from receipts.axes.shape import sign
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import Rulebook
from receipts.metrics import Launch
from receipts.questions.ladder import next_rung
from receipts.questions.plan import read_plan
from receipts.questions.preflight import preflight
from receipts.receipt import Document, Parsed, parse
from receipts.store import Store, open_store

BASE = Path(__file__).resolve().parents[1] / "tests" / "cases" / "base-tpu.json"
WHOLE, QUICK = 1_000_000, 20_000
SHARED = 10_000  # launches of the one base that everybody runs
BAR_MS = 50.0
FAILURE = {"phase": "compile", "class": "compile_hbm", "used_bytes": 45902462976, "limit_bytes": 33554432000}
_CHUNK = 20_000


def document(**leaves: Any) -> bytes:
    """A v6e receipt with some leaves set, `__` for the dot."""
    tree = json.loads(BASE.read_bytes())
    for path, value in leaves.items():
        section, _, key = path.partition("__")
        if key:
            tree.setdefault(section, {})[key] = value
        else:
            tree[section] = value
    return json.dumps(tree).encode()


def _submit(store: Store, rulebook: Rulebook, raw: bytes) -> Parsed:
    parsed = parse(Document(raw, "benchmark"))
    launch = Launch(parsed, rulebook.lanes.of(parsed.receipt.run.lane))
    store.submit(launch, judge_receipt(parsed, launch.lane, rulebook.rules))
    return parsed


def fill(path: Path, count: int, shared: Parsed, rulebook: Rulebook) -> None:
    """Launches beside those that were submitted: their rows and signatures, without documents, which nothing reads."""
    made = sign(shared, rulebook.lanes.of(shared.receipt.run.lane))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous = OFF")
    names = [row[1] for row in connection.execute("PRAGMA table_info(receipts)")]
    template = dict(
        zip(names, connection.execute("SELECT * FROM receipts ORDER BY seq LIMIT 1").fetchone(), strict=True)
    )
    columns = [name for name in names if name != "seq"]
    draw = random.Random(0)
    insert = f"INSERT INTO receipts (seq, {', '.join(columns)}) VALUES (?{', ?' * len(columns)})"
    for rows in _chunks(count):
        receipts, signatures = [], []
        for seq in rows:
            failed, hot = draw.random() < 0.1, seq % (count // min(SHARED, count // 2)) == 0
            micro, length = draw.choice((8, 16, 32)), draw.choice((8192, 16384))
            row = template | {"id": draw.randbytes(32).hex(), "launch": f"launch-{seq}", "label": None}
            row |= {"outcome": "oom" if failed else "ok", "micro_batch": micro, "sequence_length": length}
            receipts.append((seq, *(row[name] for name in columns)))
            base = made.base if hot else draw.randrange(count // 50) - 2**40
            signatures.append((seq, draw.randbytes(32).hex(), base, row["outcome"], micro, length, "[]"))
        with connection:
            connection.executemany(insert, receipts)
            connection.executemany(
                "INSERT INTO signatures (receipt, signature, base, outcome, micro_batch, sequence_length, extras) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                signatures,
            )
    connection.execute("ANALYZE")
    connection.close()


def _chunks(count: int) -> Iterator[range]:
    for start in range(100, count + 100, _CHUNK):
        yield range(start, min(start + _CHUNK, count + 100))


def _ms(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) * 1e3


def measure(quick: bool = False) -> list[Result]:
    """Look-ups in the store and whole calls, beside one SELECT by signature."""
    timings = figures(QUICK if quick else WHOLE, 20 if quick else 200)
    floor = ("one indexed SELECT", timings.pop("floor"))
    return [Result(f"preflight, {name}", value, "ms", *floor, BAR_MS, "value") for name, value in timings.items()]


def figures(count: int, rounds: int, folder: Path | None = None) -> dict[str, float]:
    """Medians in milliseconds by name; ``floor`` is one indexed SELECT of a signature that is there."""
    rulebook = Rulebook()
    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = Path(place) / "store.sqlite"
        with open_store(str(file)) as store:
            shared = _submit(store, rulebook, document(run__launch="good"))
            failed = {"run__outcome": "oom", "failure": FAILURE}
            for micro in (8, 16):
                _submit(store, rulebook, document(run__launch=f"bad-{micro}", batch__micro_batch=micro, **failed))
        fill(file, count, shared, rulebook)
        with open_store(str(file)) as store:
            return _medians(_calls(Path(place), store, rulebook, shared, file), rounds)


def _calls(
    place: Path, store: Store, rulebook: Rulebook, shared: Parsed, file: Path
) -> dict[str, Callable[[], object]]:
    lane = rulebook.lanes.of(shared.receipt.run.lane)
    made = sign(shared, lane)
    raw = sqlite3.connect(file)
    select = "SELECT receipt, outcome FROM signatures WHERE signature = ?"

    def written(name: str, **leaves: Any) -> str:
        (place / name).write_bytes(document(**leaves))
        return str(place / name)

    def call(path: str, status: str) -> Callable[[], object]:
        def run() -> None:
            answer = preflight(read_plan(path), lane, store)
            if answer.status != status:
                raise RuntimeError(f"{path} is {answer.status}, and not {status}: {answer.why}")

        return run

    def stepped() -> None:
        plan = read_plan(failing)
        next_rung(plan, lane, lambda other: preflight(other, lane, store), preflight(plan, lane, store))

    failing = written("failing.json", batch__micro_batch=8)
    return {
        "floor": lambda: raw.execute(select, (made.signature,)).fetchall(),
        "look-up by signature": lambda: store.query.same_signature(made),
        f"look-up by a base of {SHARED:,} launches": lambda: store.query.dominating(made),
        "known to work, whole call": call(written("good.json"), "worked"),
        "known to fail, whole call": call(failing, "failed"),
        "predicted by a smaller pressure, whole call": call(written("more.json", batch__micro_batch=64), "predicted"),
        "unknown and estimated, whole call": call(
            written("new.json", batch__micro_batch=1, model__hidden=2048), "unknown"
        ),
        "known to fail, with the next rung's plan": stepped,
    }


def _medians(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(_ms(call))
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preflight", description=__doc__)
    parser.add_argument("--signatures", type=int, default=WHOLE)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="where the store is made")
    options = parser.parse_args()
    for name, value in figures(options.signatures, options.rounds, options.folder).items():
        print(f"{value:10.3f} ms  {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
