"""What evidence costs the run that gives it: step time and start, with each switch against the same run without.

    python benchmarks/evidence_cost.py --python PATH [--launches 3] [--json]

PATH is an interpreter with torch or JAX in it. Launches with and without a switch take turns; printed are the ratio of
median step times (median over launches) and the CPU seconds that the whole launch takes more. The figures of
``docs/evidence.md`` that say "CPU" are this script's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Last, and never first: statistics.py lies here as well.
sys.path[:] = [*(place for place in sys.path if Path(place or ".").resolve() != HERE), str(HERE)]

from statistics import median

_TORCH_PROFILER = """
import runpy, sys, torch
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU]) as found:
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit:
        pass
found.export_chrome_trace(sys.argv[sys.argv.index("--evidence") + 1] + ".trace.json")
"""
_JAX_PROFILER = """
import runpy, sys, jax
jax.profiler.start_trace(sys.argv[sys.argv.index("--evidence") + 1] + ".trace")
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    jax.profiler.stop_trace()
"""


@dataclass(frozen=True, slots=True)
class Switch:
    """One way to get evidence: environment variables, or a program around the script. ``{dir}`` is a folder."""

    framework: str
    name: str
    environment: tuple[tuple[str, str], ...] = ()
    around: str = ""


SWITCHES = (
    Switch("torch", "torch.profiler over every step", around=_TORCH_PROFILER),
    Switch("torch", "TORCH_LOGS=recompiles,graph_breaks", (("TORCH_LOGS", "recompiles,graph_breaks"),)),
    Switch(
        "jax",
        "JAX_LOG_COMPILES=1 JAX_EXPLAIN_CACHE_MISSES=1",
        (("JAX_LOG_COMPILES", "1"), ("JAX_EXPLAIN_CACHE_MISSES", "1")),
    ),
    Switch("jax", "XLA_FLAGS=--xla_dump_to", (("XLA_FLAGS", "--xla_dump_to={dir}/hlo --xla_dump_hlo_as_text"),)),
    Switch("jax", "JAX_TRANSFER_GUARD=log", (("JAX_TRANSFER_GUARD", "log"),)),
    Switch("jax", "jax.profiler over every step", around=_JAX_PROFILER),
)


@dataclass(frozen=True, slots=True)
class Launch:
    """Median step seconds, CPU seconds of the process, and bytes of evidence that it left."""

    step_seconds: float
    cpu_seconds: float
    evidence_bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """One switch against none."""

    framework: str
    switch: str
    launches: int
    step_ratio: float
    more_cpu_seconds: float
    evidence_bytes: int


def launch(python: str, framework: str, switch: Switch | None, steps: int) -> Launch:
    """One launch of the small decoder. Raises CalledProcessError with what it printed."""
    script = str(HERE / "decoder" / f"train_{framework}.py")
    with tempfile.TemporaryDirectory() as place:
        written = {"--output": f"{place}/run.json", "--evidence": f"{place}/witness.json"}
        arguments = [script, "--steps", str(steps), "--profile-steps", "0"]
        arguments += [word for pair in written.items() for word in pair]
        # One thread: what several do beside each other depends on who else is on the machine.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        for name, value in switch.environment if switch else ():
            environment[name] = value.replace("{dir}", place)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        program = [python, *arguments]
        if switch and switch.around:
            # As a program of its own, so that the script is run as it is.
            program = [python, "-c", f"import sys; sys.argv = sys.argv[1:]\n{switch.around}", *arguments]
            environment["PYTHONPATH"] = str(HERE / "decoder")
        subprocess.run(program, env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        raw = json.loads(Path(written["--output"]).read_bytes())
        own = {Path(item) for item in written.values()}
        kept = sum(item.stat().st_size for item in Path(place).rglob("*") if item.is_file() and item not in own)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Launch(median(raw["durations"]), seconds, kept)


def cost(python: str, switch: Switch, launches: int, steps: int) -> Cost:
    """Launches with and without the switch, in turns."""
    plain, switched = [], []
    for _ in range(launches):
        plain.append(launch(python, switch.framework, None, steps))
        switched.append(launch(python, switch.framework, switch, steps))
    return Cost(
        framework=switch.framework,
        switch=switch.name,
        launches=launches,
        step_ratio=median(b.step_seconds / a.step_seconds for a, b in zip(plain, switched, strict=True)),
        more_cpu_seconds=median(b.cpu_seconds - a.cpu_seconds for a, b in zip(plain, switched, strict=True)),
        evidence_bytes=switched[-1].evidence_bytes,
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure every switch of the frameworks that the interpreter has."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter with torch or JAX")
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    there = [
        name
        for name in ("torch", "jax")
        if subprocess.run([chosen.python, "-c", f"import {name}"], capture_output=True).returncode == 0
    ]
    if not there:
        parser.error(f"{chosen.python} has neither torch nor JAX; name one that has with --python")
    found = [cost(chosen.python, item, chosen.launches, chosen.steps) for item in SWITCHES if item.framework in there]
    if chosen.json:
        print(json.dumps([asdict(item) for item in found], indent=1))
        return 0
    for item in found:
        print(
            f"{item.framework:<6} {item.switch:<46} step ×{item.step_ratio:.2f}   "
            f"{item.more_cpu_seconds:+.1f} s CPU a launch   {item.evidence_bytes / 1e6:.1f} MB"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
