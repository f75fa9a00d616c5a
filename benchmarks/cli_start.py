"""What one call of the program costs, in multiples of `python -c pass`: `python -m benchmarks.cli_start`.

Every process is fresh and starts from bytecode, as an installed wheel does. Calls alternate with the floor, so that a
busy machine slows both; each figure is a median of 15 calls.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.result import Result, show
from benchmarks.store_submit import document

ROUNDS = 15
FLOOR = "python -c pass"
# What pip's console script does.
PROGRAM = "import sys; from receipts.cli import main; sys.exit(main())"
BARS = {
    "receipts --version": 2.0,
    "receipts COMMAND --help": 8.0,
    "receipts compare FILE FILE": 30.0,
    "receipts compare ID ID": 50.0,
    "receipts submit FILE": 50.0,
}
# A store is not empty: a grid of this many launches, over micro batch and learning rate, lies beside the pair.
OTHERS = 50
Arguments = Callable[[int], Sequence[str]]


def _help(name: str) -> Arguments:
    return lambda _n: (name, "--help")


def measure(quick: bool = False) -> list[Result]:
    """The slowest command's ``--help``, and the other calls that the bars speak of."""
    from receipts.cli.group import commands

    rounds = 3 if quick else ROUNDS
    with tempfile.TemporaryDirectory() as place:
        call = _caller(Path(place))
        calls = _calls(Path(place), call, rounds)
        helps: dict[str, Arguments] = {"": lambda _n: ("--help",), **{name: _help(name) for name in commands()}}
        slowest = max(_timed(call, helps, rounds).items(), key=lambda item: item[1][0] / item[1][1])
        timings = _timed(call, calls, rounds)
    timings["receipts COMMAND --help"] = slowest[1]
    say = {"receipts COMMAND --help": f"receipts {slowest[0]} --help, the slowest".replace("  ", " ")}
    return [
        Result(say.get(name, name), timings[name][0] * 1e3, "ms", FLOOR, timings[name][1] * 1e3, bar)
        for name, bar in BARS.items()
    ]


def _caller(place: Path) -> Callable[[Sequence[str]], float]:
    """A function that runs the interpreter with arguments and gives the seconds; it raises where the call fails."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "RECEIPTS_"))},
        "PYTHONPATH": str(ROOT),
        "PYTHONPYCACHEPREFIX": str(place / "bytecode"),
        "RECEIPTS_STORE": str(place / "store.sqlite"),
    }

    def call(arguments: Sequence[str]) -> float:
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *arguments], env=environment, cwd=place, capture_output=True, check=False
        )
        seconds = time.perf_counter() - start
        if done.returncode not in (0, 1, 3):
            raise RuntimeError(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr.decode()}")
        return seconds

    return call


def _timed(
    call: Callable[[Sequence[str]], float], calls: Mapping[str, Arguments], rounds: int
) -> dict[str, tuple[float, float]]:
    """Medians in seconds of each call and of its floor; the first round, which writes the bytecode, is left out."""
    floors: dict[str, list[float]] = {name: [] for name in calls}
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, arguments in calls.items():
            floors[name].append(call(["-c", "pass"]))
            times[name].append(call(["-c", PROGRAM, *arguments(number)]))
    return {name: (statistics.median(times[name][1:]), statistics.median(floors[name][1:])) for name in calls}


def _calls(place: Path, call: Callable[[Sequence[str]], float], rounds: int) -> dict[str, Arguments]:
    """The calls that the bars speak of, each with what it needs on the disk."""
    import hashlib

    for number in range(rounds + 1):
        _receipt(place / f"new{number}.json", 1000 + number)
    pair = [_receipt(place / "a.json", 1), _receipt(place / "b.json", 2, micro_batch=2)]
    others = [
        _receipt(place / f"other{number}.json", 10 + number, micro_batch=1 << number % 5, rate=number // 5)
        for number in range(OTHERS)
    ]
    call(["-c", PROGRAM, "submit", "--quiet", *map(str, (*pair, *others))])
    ids = [hashlib.sha256(path.read_bytes()).hexdigest()[:12] for path in pair]
    files = [str(path) for path in pair]
    return {
        "receipts --version": lambda _n: ("--version",),
        "receipts compare FILE FILE": lambda _n: ("compare", *files),
        "receipts compare ID ID": lambda _n: ("compare", *ids),
        "receipts submit FILE": lambda n: ("submit", str(place / f"new{n}.json")),
    }


def _receipt(path: Path, seed: int, *, micro_batch: int | None = None, rate: int | None = None) -> Path:
    """A receipt of 64 chips and 300 steps, written as people write JSON: about 15 kB."""
    tree = json.loads(document(seed))
    if micro_batch is not None:
        tree["batch"] |= {"micro_batch": micro_batch, "global_batch": 64 * micro_batch}
        tree["measurement"]["tokens_per_step"] = 64 * micro_batch * tree["batch"]["sequence_length"]
        tree["measurement"].pop("stated")  # the rates of another batch
    if rate is not None:
        tree["numerics"]["learning_rate"] = 1e-4 * (1 + rate)
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def main() -> int:
    """Print the figures; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three calls each")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    return show(measure(options.quick), as_json=options.json)


if __name__ == "__main__":
    raise SystemExit(main())
