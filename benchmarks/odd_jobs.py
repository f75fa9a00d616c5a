"""Jobs that end in every odd way, launched as `receipts record` does: `python -m benchmarks.odd_jobs [--jobs 500]`.

Each job writes down every step that has ended. Its receipt must have them all, its exit code must be its own, and the
launcher must neither raise nor wait. Half of the jobs are killed at a random moment. Prints what went wrong, by kind.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.result import Result, show
from receipts.plugins.run.outer_clock import LaunchFolder, ObservedLaunch

STEPS = 30
JOB = """
import os, signal, sys, threading, time
from receipts.emit import Recorder
ended = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
at = int(sys.argv[2])
{before}
with Recorder("cpu-torch", warmup=2, probes=False, quiet=True) as rec:
    for step in range(30):
        with rec.step(tokens=8):
            time.sleep(0.002)
        os.write(ended, b".")
        if step == at:
            {within}
{after}
"""
KILLED = "threading.Timer(0.0005 * at, os.kill, (os.getpid(), {})).start()"
# Kind → (parts of the script, the exit code; None for whichever the kernel's moment gives).
KINDS: dict[str, tuple[dict[str, str], int | None]] = {
    "runs to its end": ({}, 0),
    "SIGKILL within a step": ({"before": KILLED.format(9)}, None),
    "SIGKILL between steps": ({"within": "os.kill(os.getpid(), 9)"}, -9),
    "SIGTERM within a step": ({"before": KILLED.format(15)}, None),
    "SIGTERM between steps": ({"within": "os.kill(os.getpid(), 15)"}, -15),
    "SIGINT": ({"within": "os.kill(os.getpid(), 2)"}, -2),
    "SIGSEGV": ({"within": "os.kill(os.getpid(), 11)"}, -11),
    "SIGABRT": ({"within": "os.abort()"}, -6),
    "SIGUSR1": ({"within": "os.kill(os.getpid(), 10)"}, -10),
    "os._exit": ({"within": "os._exit(7)"}, 7),
    "sys.exit": ({"within": "sys.exit(5)"}, 5),
    "exits after the run": ({"after": "sys.exit(3)"}, 3),
    "raises": ({"within": "raise ValueError('x' * 10_000)"}, 1),
    "raises in a thread": ({"within": "threading.Thread(target=lambda: 1 / 0).start()"}, 0),
    "runs out of memory": ({"within": "raise MemoryError"}, 1),
    "forks, and the child goes on": ({"within": "os.fork() or os._exit(0)"}, 0),
    "a child that outlives it": ({"within": "os.fork() or (os.close(ended), time.sleep(0.2), os._exit(0))"}, 0),
    "closes every file": ({"within": "os.closerange(3, ended); os.closerange(ended + 1, 64)"}, 0),
    "closes standard error": ({"within": "os.close(2)"}, 0),
    "leaves and removes its folder": ({"before": "import tempfile; os.chdir(d := tempfile.mkdtemp()); os.rmdir(d)"}, 0),
    "changes the environment": ({"before": "os.environ.pop('PYTHONPATH')"}, 0),
    "ignores SIGTERM": ({"before": "signal.signal(15, signal.SIG_IGN)", "within": "os.kill(os.getpid(), 15)"}, 0),
    "is another program at last": ({"after": "os.execv('/bin/sh', ['sh', '-c', 'exit 6'])"}, 6),
    "replaces the clock": ({"before": "time.perf_counter_ns = lambda: 0"}, 0),
    "two recorders, one after the other": ({"after": "Recorder('cpu-torch', quiet=True, probes=False).start()"}, 0),
}


def one(kind: str, place: Path, number: int, at: int) -> str:
    """Launch one job; what went wrong, empty where nothing did."""
    parts, code = KINDS[kind]
    script = place / f"job-{number}.py"
    script.write_text(JOB.format(**{"before": "", "within": "pass", "after": "", **parts}))
    marks = place / f"ended-{number}"
    folder = LaunchFolder(place / f"launch-{number}")
    environment = folder.environment({**os.environ, "PYTHONPATH": str(ROOT), "RECEIPTS_SIGHT": "0"}, {})
    quiet = f'exec "$0" "$@" >{os.devnull} 2>&1'
    words = ["/bin/sh", "-c", quiet, sys.executable, str(script), str(marks), str(at)]
    launch = ObservedLaunch(words, folder, environment)
    if code is not None and launch.exit_code != code:
        return f"exit code {launch.exit_code}, not {code}"
    steps = marks.stat().st_size if marks.exists() else 0
    receipts = launch.receipts()
    if len(receipts) != 1:
        return f"{len(receipts)} receipts" if steps else ""
    tree = json.loads(receipts[0].receipt.read_bytes())
    recorded = len(tree.get("measurement", {}).get("step_durations_seconds", ()))
    if recorded - steps not in (0, 1):  # it may die between its step and the mark
        return f"{recorded} steps of {steps}"
    well = tree["run"]["outcome"] == "ok"
    return f"outcome {tree['run']['outcome']} of exit code {launch.exit_code}" if well != (not launch.exit_code) else ""


def measure(quick: bool = False, jobs: int = 500) -> list[Result]:
    """Jobs with a lost step, a changed exit code, another outcome or no receipt: none may."""
    source, wrong = random.Random(1), Counter[str]()
    jobs = 2 * len(KINDS) if quick else jobs
    with tempfile.TemporaryDirectory() as place:
        for number in range(jobs):
            # Every second one is killed within a step, where most can go wrong.
            kind = ["SIGKILL within a step", list(KINDS)[number // 2 % len(KINDS)]][number % 2]
            try:
                fault = one(kind, Path(place), number, source.randrange(1, STEPS - 1))
            except Exception as error:
                fault = f"the launcher raised {type(error).__name__}: {error}"
            if fault:
                wrong[f"{kind}: {fault}"] += 1
    for text, count in wrong.most_common():
        sys.stderr.write(f"{count} × {text}\n")
    return [Result(f"odd jobs that went wrong, of {jobs}", wrong.total(), "jobs", bar=0, bar_on="value")]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=500)
    show(measure(jobs=parser.parse_args().jobs))
