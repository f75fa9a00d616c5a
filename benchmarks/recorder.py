"""What the recorder costs the run that it records: `python -m benchmarks.recorder [--python PATH]`.

A step against an empty loop with two readings of the clock in the same process; memory for 10,000 steps; the import in
a fresh process; and an A/A: launches of a loop of about 1 ms a step, recorded and bare in turns, held against each
other by the product's own test of equivalence. PATH is an interpreter with torch in it; without one the loop is plain
Python.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.result import Result, show

FLOOR = "two clock readings"
STEPS = 10_000
FILES = 850
BAR_STEP, BAR_MEMORY, BAR_IMPORT, BAR_START, BAR_EQUAL = 2.0, 1.0, 15.0, 60.0, 1.0
LAUNCHES = 24
# The C library gives the heap's end back when a step's tensors are freed, and takes it again page by page: a hundred
# page faults a step or none, as the heap happens to lie, whoever else is called. In the A/A it keeps what it has.
HEAP = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),
    "MALLOC_TOP_PAD_": str(1 << 26),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}

# Rounds take turns, and the fastest of each counts: what is slower was somebody else's.
STEP = """
import json, sys
from time import perf_counter_ns
from receipts.emit import Recorder
STEPS, ROUNDS = int(sys.argv[1]), int(sys.argv[2])
def floor():
    begin = perf_counter_ns()
    for _ in range(STEPS):
        perf_counter_ns()
        perf_counter_ns()
    return perf_counter_ns() - begin
def recorded(rec):
    begin = perf_counter_ns()
    for _ in range(STEPS):
        with rec.step(tokens=4096):
            pass
    return perf_counter_ns() - begin
def busy(rec):
    begin = perf_counter_ns()
    for _ in range(STEPS):
        with rec.step(tokens=4096):
            with rec.span("data"):
                pass
        rec.loss(2.5)
    return perf_counter_ns() - begin
def run(loop, number, **options):
    with Recorder("cpu-torch", out=f"step{number}.json", probes=False, quiet=True, **options) as rec:
        return loop(rec)
timings = {"floor": [], "step": [], "memory": [], "busy": []}
for number in range(ROUNDS):
    timings["floor"].append(floor())
    timings["step"].append(run(recorded, 3 * number))
    timings["memory"].append(run(recorded, 3 * number + 1, journal=False))
    timings["busy"].append(run(busy, 3 * number + 2))
print(json.dumps({name: min(times) / STEPS / 1000 for name, times in timings.items()}))
"""
MEMORY = """
import json, sys, tracemalloc
from receipts.emit import Recorder
STEPS = int(sys.argv[1])
def resident():
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * 4096
def run(name, steps):
    with Recorder("cpu-torch", out=name, probes=False, quiet=True) as rec:
        before, held = tracemalloc.get_traced_memory()[0], resident()
        tracemalloc.reset_peak()
        for number in range(steps):
            with rec.step(tokens=4096):
                pass
            rec.loss(2.5)
        grown, more = tracemalloc.get_traced_memory()[1] - before, resident() - held
        tracemalloc.reset_peak()
    return grown, more, tracemalloc.get_traced_memory()[1] - before
run("warm.json", 10)
tracemalloc.start()
grown, _, whole = run("traced.json", STEPS)
tracemalloc.stop()
_, more, _ = run("resident.json", STEPS)
print(json.dumps({"grown": grown, "resident": more, "whole": whole}))
"""
IMPORT = """
import time
begin = time.perf_counter()
import receipts.emit
print(time.perf_counter() - begin)
"""
# A project of many files: what they read is looked for when the recorder starts, and its bar is on that alone.
START = """
import sys, time, types
from pathlib import Path
source = "import os\\nDEPTH = int(os.environ.get('DEPTH_%d', 3))\\nparser.add_argument('--lr_%d', default=1e-3)\\n"
filling = "def name(value):\\n    return value * 2 + 1  # as code goes\\n" * 80
for number in range(int(sys.argv[1])):
    path = Path(f"m{number}.py")
    path.write_text((source % (number, number) if number % 20 == 0 else "") + filling)
    module = sys.modules[f"m{number}"] = types.ModuleType(f"m{number}")
    module.__file__ = str(path.resolve())
from receipts.emit import Recorder
from receipts.emit.probes import inputs
took = []
for probes in ([], [inputs]):
    rec = Recorder("cpu-torch", out="start.json", probes=probes, quiet=True)
    begin = time.perf_counter()
    rec.start()
    took.append(time.perf_counter() - begin)
    rec.finish()
print(took[1] - took[0])
"""
LOOP = """
import json, sys
from array import array
from itertools import permutations
from time import perf_counter_ns
steps, kind = int(sys.argv[1]), sys.argv[2]
if kind == "torch":
    import torch
    torch.manual_seed(0)
    torch.set_num_threads(1)
    weights = torch.randn(256, 256, requires_grad=True)
    inputs = torch.randn(384, 256)
    optimizer = torch.optim.SGD([weights], 1e-6)
    def work():
        loss = (inputs @ weights).relu().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
else:
    def work():
        total = 0
        for number in range(26000):
            total += number * number
        return float(total)
from receipts.emit import Recorder
def bare(steps):
    marks = array("q", bytes(8 * (steps + 1)))
    for number in range(steps):
        marks[number] = perf_counter_ns()
        loss = work()
    marks[steps] = perf_counter_ns()
    return marks
def recorded(steps):
    marks = array("q", bytes(8 * (steps + 1)))
    for number in range(steps):
        marks[number] = perf_counter_ns()
        with rec.step(tokens=4096):
            loss = work()
        rec.loss(loss)
    marks[steps] = perf_counter_ns()
    return marks
def itself(steps):
    marks = array("q", bytes(8 * (steps + 1)))
    for number in range(steps):
        marks[number] = perf_counter_ns()
        loss = work()
    marks[steps] = perf_counter_ns()
    return marks
# Timed around the calls. The loss is held until the next has been taken: its graph is the job's to let go of.
def calls(steps):
    spent, held = [], None
    for _ in range(steps):
        one = perf_counter_ns()
        with rec.step(tokens=4096):
            two = perf_counter_ns()
            loss = work()
            three = perf_counter_ns()
        rec.loss(loss)
        spent.append((perf_counter_ns() - three + two - one) / 1e3)
        held = loss
    return spent
def clocks(steps):
    spent, held = [], None
    for _ in range(steps):
        one = perf_counter_ns()
        two = perf_counter_ns()
        loss = work()
        three = perf_counter_ns()
        spent.append((perf_counter_ns() - three + two - one) / 1e3)
        held = loss
    return spent
timings = {"bare": [], "recorded": [], "itself": []}
with Recorder("cpu-torch", out=sys.argv[3], probes=False, quiet=True) as rec:
    orders = list(permutations((bare, recorded, itself)))
    for loop in orders[0]:
        loop(50)
    for block in range(steps // 10):
        # Every order of the three in short blocks: what else the machine does meets all.
        for loop in orders[block % len(orders)]:
            marks = loop(10)
            timings[loop.__name__] += [(b - a) / 1e9 for a, b in zip(marks, marks[1:])]
    timings["clocks"], timings["calls"] = clocks(300), calls(300)
print(json.dumps(timings))
"""


def measure(quick: bool = False, python: str | None = None) -> list[Result]:
    """The figures that the recorder's bars speak of; ``python`` has torch in it."""
    with tempfile.TemporaryDirectory() as place:
        call = _Caller(Path(place))
        starts = [_import(call, quick), _start(call, quick)]
        return [*_steps(call, quick), *_memory(call), *starts, *_same(call, quick, python)]


class _Caller:
    """Runs programs in a folder, with this checkout's package and nothing of this process's environment of Python."""

    def __init__(self, place: Path) -> None:
        self.place = place
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "RECEIPTS_"))}
        self._environment = {**kept, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": str(place / "bytecode")}

    def __call__(
        self, program: str, *words: object, python: str = sys.executable, heap: dict[str, str] | None = None
    ) -> str:
        command, environment = [python, "-c", program, *map(str, words)], {**self._environment, **(heap or {})}
        done = subprocess.run(command, cwd=self.place, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def __repr__(self) -> str:
        return f"_Caller({str(self.place)!r})"


def _steps(call: _Caller, quick: bool) -> list[Result]:
    timings = json.loads(call(STEP, STEPS, 3 if quick else 30))
    return [
        Result("recorder, a step with the journal", timings["step"], "µs", FLOOR, timings["floor"], BAR_STEP, "value"),
        Result("recorder, a step without the journal", timings["memory"], "µs", FLOOR, timings["floor"]),
        Result("recorder, a step with a span and a loss", timings["busy"], "µs", FLOOR, timings["floor"]),
    ]


def _memory(call: _Caller) -> list[Result]:
    timings = {name: count / 1e6 for name, count in json.loads(call(MEMORY, STEPS)).items()}
    return [
        Result("recorder, memory of Python's in 10,000 steps", timings["grown"], "MB", bar=BAR_MEMORY, bar_on="value"),
        Result("recorder, resident set in 10,000 steps", timings["resident"], "MB", bar=BAR_MEMORY, bar_on="value"),
        Result("recorder, the same with the receipt's writing", timings["whole"], "MB", bar=BAR_MEMORY, bar_on="value"),
    ]


def _import(call: _Caller, quick: bool) -> Result:
    times = sorted(float(call(IMPORT)) * 1e3 for _ in range(4 if quick else 16))
    return Result(
        "recorder, its import in a fresh process", times[len(times) // 2], "ms", bar=BAR_IMPORT, bar_on="value"
    )


def _start(call: _Caller, quick: bool) -> Result:
    times = [float(call(START, FILES)) * 1e3 for _ in range(3 if quick else 9)]
    what = f"recorder, its inputs at the start of a project of {FILES} files"
    return Result(what, min(times), "ms", bar=BAR_START, bar_on="value")


def _same(call: _Caller, quick: bool, python: str | None) -> list[Result]:
    """The A/A, the same of the loop over itself, and the calls by themselves where the processor's caches are cold.

    Each process runs blocks of all loops, and is one pair: how its memory happens to lie slows all of them.
    """
    from receipts.stats.distributions import median

    kind, launches = ("torch" if python else "python"), (4 if quick else LAUNCHES)
    times: dict[str, list[float]] = {"bare": [], "recorded": [], "itself": [], "calls": [], "clocks": []}
    for number in range(launches):
        words = (1500, kind, f"same{number}.json")
        timings = json.loads(call(LOOP, *words, python=python or sys.executable, heap=HEAP))
        for name, values in timings.items():
            times[name].append(median(values))
    loop = f"a {kind} loop of {1e3 * min(times['bare']):.2f} ms"
    cold, clocks = median(times["calls"]), median(times["clocks"])
    return [
        _equal(f"A/A, {loop}, recorded over bare", times["bare"], times["recorded"], BAR_EQUAL),
        _equal(f"A/A, {loop}, bare over itself", times["bare"], times["itself"], None),
        Result("recorder, a step and a loss in that loop, timed around the calls", cold, "µs", FLOOR, clocks),
    ]


def _equal(name: str, bare: list[float], other: list[float], bar: float | None) -> Result:
    """How far the ends of the 90 % interval of other over bare lie from 1: equivalent where both are within δ."""
    from receipts.stats import effect

    pairs = [(number, number) for number in range(len(bare))]
    difference = effect.compare(bare, other, delta=BAR_EQUAL / 100, pairs=pairs)
    apart = 100.0
    if difference.low90 is not None and difference.high90 is not None:
        apart = 100 * max(abs(difference.high90 - 1), abs(1 - difference.low90))
    ratio = "" if difference.ratio is None else f", {100 * (difference.ratio - 1):+.2f} %"
    return Result(f"{name}: {difference.kind}{ratio}", apart, "%", bar=bar, bar_on="value")


def main() -> int:
    """Print the figures; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--python", metavar="PATH", help="an interpreter with torch, for the A/A")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    return show(measure(options.quick, options.python), as_json=options.json)


if __name__ == "__main__":
    raise SystemExit(main())
