"""Start a set of launches one after the other, sides interleaved, each in a clean environment on one processor.

    python benchmarks/decoder/launches.py attention --python PYTHON --output DIR

writes `DIR/LABEL.json` (raw facts, with the exit code) and `DIR/evidence/LABEL.json`. `receipt.py` makes receipts of
them. Linux only: processors are set by affinity.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
TORCH = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # A compile is cold in every launch: a warm cache is another regime.
    "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",
}
JAX = {"OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}


@dataclass(frozen=True, slots=True)
class Side:
    """What is started under one label."""

    label: str
    script: str
    arguments: tuple[str, ...]

    @property
    def environment(self) -> dict[str, str]:
        """Threads are fixed from outside, since they are read when a runtime is imported."""
        return TORCH if self.script == "train_torch.py" else JAX


def torch(label: str, *arguments: str) -> Side:
    return Side(label, "train_torch.py", ("--depth", "2", *arguments))


def jax(label: str, *arguments: str) -> Side:
    return Side(label, "train_jax.py", ("--depth", "2", *arguments))


MATH = torch("attention-math", "--attention", "math")
FLASH = torch("attention-flash", "--attention", "flash")
EAGER = torch("posture-eager", "--attention", "flash")
WHOLE = torch("posture-whole-graph", "--attention", "flash", "--posture", "whole_graph")
KEPT, RECOMPUTED = jax("recompute-none"), jax("recompute-full", "--recompute", "full")

# A drifting machine must not pass for an effect: sides alternate, and which comes first alternates too.
SETS: dict[str, tuple[Side, ...]] = {
    "attention": (MATH, FLASH, FLASH, MATH, MATH, FLASH, FLASH, MATH, MATH, FLASH),
    "recompute": (KEPT, RECOMPUTED, RECOMPUTED, KEPT, KEPT, RECOMPUTED),
    "posture": (EAGER, WHOLE, WHOLE, EAGER, EAGER, WHOLE),
    "broken": (
        torch("nan", "--attention", "math", "--learning-rate", "1e4", "--steps", "100"),
        torch("left-path", "--attention", "flash", "--inner-attention", "math"),
        torch("many-axes", "--attention", "flash", "--micro-batch", "4"),
        torch("oom", "--attention", "math", "--micro-batch", "512", "--address-space-limit-bytes", "3000000000"),
    ),
}


def start(side: Side, name: str, asked: argparse.Namespace) -> int:
    """One launch. Its exit code is added to the raw facts: a process cannot know its own."""
    output, evidence = asked.output / f"{name}.json", asked.output / "evidence" / f"{name}.json"
    evidence.parent.mkdir(parents=True, exist_ok=True)
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}
    command = [str(asked.python), str(FOLDER / side.script), *side.arguments]
    command += ["--output", str(output.resolve()), "--evidence", str(evidence.resolve())]

    def settle() -> None:
        os.sched_setaffinity(0, {asked.processor})
        os.setpriority(os.PRIO_PROCESS, 0, asked.nice)
        # Linux shares a processor between sessions first, so a priority acts only if the session has it too.
        autogroup = Path("/proc/self/autogroup")
        if asked.nice and autogroup.exists():
            autogroup.write_text(str(asked.nice))

    done = subprocess.run(
        command,
        env={**environment, **side.environment},
        preexec_fn=settle,
        start_new_session=True,
        capture_output=True,
        text=True,
    )
    if not output.exists():
        raise SystemExit(f"{name}: it left no facts: {done.stderr[-2000:]}")
    raw = {"label": name, **json.loads(output.read_text()), "exit_code": done.returncode, "nice": asked.nice}
    output.write_text(json.dumps(raw) + "\n")
    return done.returncode


def main() -> None:
    """Run one set, numbering each label on from what the folder already holds."""
    options = argparse.ArgumentParser(description="Start a set of launches, sides interleaved.")
    options.add_argument("set", choices=sorted(SETS))
    options.add_argument("--python", type=Path, default=Path(sys.executable), help="interpreter that has the framework")
    options.add_argument("--output", type=Path, required=True)
    options.add_argument("--processor", type=int, default=max(os.sched_getaffinity(0)))
    options.add_argument("--nice", type=int, default=0)
    asked = options.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    numbers = Counter(path.stem.rpartition("-")[0] for path in asked.output.glob("*.json"))
    for side in SETS[asked.set]:
        numbers[side.label] += 1
        name = f"{side.label}-{numbers[side.label]}"
        print(f"{name}: exit {start(side, name, asked)}", flush=True)


if __name__ == "__main__":
    main()
