"""Change points and planned looks, measured: `python -m benchmarks.history [--logs FOLDER] [--quick]`.

`FOLDER` holds MLPerf results as published (`ORG/results/SYSTEM/BENCHMARK/result_N.txt`): each group is a line of
launches. Without it the launches are simulated.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Iterator
from pathlib import Path

from receipts.plugins.track.change_points import LevelChange, changes

MARK = ":::MLLOG"
MIN_LAUNCHES = 8  # launches of a group that is replayed
DELTA = 0.01


def groups_of(folder: Path) -> dict[str, list[float]]:
    """Logs of the median interval of each launch by group, the oldest launch first."""
    result = {}
    for place in sorted({path.parent for path in folder.rglob("result_*.txt")}):
        launches = sorted(item for path in place.glob("result_*.txt") if (item := _launch(path)) is not None)
        if len(launches) >= MIN_LAUNCHES:
            result[str(place.relative_to(folder))] = [math.log(value) for _, value in launches]
    return result


def _launch(path: Path) -> tuple[int, float] | None:
    """Start in milliseconds, and the median step time, seconds a sample, or length of a block."""
    started, steps, samples, blocks, opened = 0, [], [], [], None
    for record in _records(path):
        key, value, at = record.get("key"), record.get("value"), record.get("time_ms")
        if key == "run_start":
            started = at
        elif key == "tracked_stats" and isinstance(value, dict):
            steps += [value["train_step_time"]] if value.get("train_step_time") else []
            samples += [1.0 / value["throughput"]] if value.get("throughput") else []
        elif key == "block_start":
            opened = at
        elif key == "block_stop" and opened is not None:
            blocks.append(at - opened)
    values = steps or samples or blocks
    return (started, statistics.median(values)) if values else None


def _records(path: Path) -> Iterator[dict]:
    with path.open(errors="replace") as stream:
        for line in stream:
            _, mark, text = line.partition(MARK)
            if mark:
                try:
                    yield json.loads(text)
                except ValueError:
                    continue


def simulated(rng: random.Random, count: int) -> dict[str, list[float]]:
    """Groups of ten launches, 0.05 to 1 % apart; every third has an outlier now and then."""
    groups = {}
    for index in range(count):
        sigma = 0.0005 * 20 ** rng.random()
        tail = [1.0, 1.0, 4.0][index % 3]
        groups[f"group {index}"] = [rng.gauss(0.0, sigma) * (tail if rng.random() < 0.1 else 1.0) for _ in range(10)]
    return groups


def incidents(series: list[float]) -> list[LevelChange]:
    """Steps beyond δ."""
    return [item for item in changes(series) if item.kind == "step" and abs(item.log) > math.log1p(DELTA)]


def measure(groups: dict[str, list[float]], rng: random.Random, repeats: int) -> dict[str, float]:
    """Shares over all groups: shuffled groups with an incident or a change, steps found, drifts called drift."""
    totals = dict.fromkeys(("shuffled", "incident", "change", "steps", "within one", "drifts", "called drift"), 0)
    for logs in groups.values():
        spread = statistics.stdev(logs)
        for _ in range(repeats):
            shuffled = rng.sample(logs, len(logs))
            every = changes(shuffled)
            totals["shuffled"] += 1
            totals["incident"] += bool(incidents(shuffled))
            totals["change"] += bool(every)
            step = math.log1p(max(0.02, 4.0 * spread))
            twenty = rng.sample(logs, len(logs)) + [value + step for value in rng.sample(logs, len(logs))]
            totals["steps"] += 1
            totals["within one"] += any(abs(item.at - len(logs)) <= 1 for item in incidents(twenty))
            slope = max(0.02, 4.0 * spread) / 10.0
            drifting = [
                value + slope * at for at, value in enumerate(rng.sample(logs, len(logs)) + rng.sample(logs, len(logs)))
            ]
            totals["drifts"] += 1
            totals["called drift"] += [item.kind for item in changes(drifting)] == ["drift"]
    return {
        "shuffled groups with an incident": totals["incident"] / totals["shuffled"],
        "shuffled groups with a change": totals["change"] / totals["shuffled"],
        "steps found within one launch": totals["within one"] / totals["steps"],
        "drifting groups called drift": totals["called drift"] / totals["drifts"],
    }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rng = random.Random(25)
    repeats = 3 if options.quick else 50
    groups = groups_of(options.logs) if options.logs else simulated(rng, 30)
    print(f"{len(groups)} groups, {repeats} repeats each")
    for name, value in measure(groups, rng, repeats).items():
        print(f"{name}: {100 * value:.1f} %")


if __name__ == "__main__":
    main()
