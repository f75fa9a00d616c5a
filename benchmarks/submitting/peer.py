"""The same launch kept by MLflow, in a SQLite store of its own, installed into a throw-away environment."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from benchmarks.submitting.documents import document

# What a receipt of 15 kB says, as MLflow's own pages advise to log it: settings as parameters, steps and chips as
# metrics in batches, the rest as tags.
LOGGER = """
import json, logging, pathlib, sys, time
logging.disable(logging.CRITICAL)
from mlflow.entities import Metric, Param, RunTag
from mlflow.tracking import MlflowClient

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
experiment = client.create_experiment("bench", artifact_location=str(folder / "artifacts"))

def leaves(node, path=""):
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, f"{path}.{key}" if path else key)
    elif not isinstance(node, list):
        yield path, node

def log(tree):
    now = int(time.time() * 1000)
    measured, memory = tree.pop("measurement"), tree.pop("memory")
    run = client.create_run(experiment, run_name=tree["run"]["label"]).info.run_id
    params = [Param(key, str(value)) for key, value in leaves(tree)]
    for start in range(0, len(params), 100):
        client.log_batch(run, params=params[start:start + 100])
    steps = [Metric("step_seconds", value, now, step) for step, value in enumerate(measured["step_durations_seconds"])]
    chips = [
        Metric(f"chip_{row['chip']}_{name}", row[name], now, 0)
        for row in memory["chips"] for name in ("bytes_used", "bytes_limit", "peak_bytes")
    ]
    stated = [Metric(key, value, now, 0) for key, value in measured["stated"].items() if isinstance(value, float)]
    client.log_batch(run, metrics=[*steps, *chips, *stated], tags=[RunTag("lane", tree["run"]["lane"])])
    client.set_terminated(run)

trees = [json.loads(line) for line in (folder / "runs.jsonl").read_bytes().splitlines()]
times = []
for tree in trees:
    begun = time.perf_counter()
    log(tree)
    times.append(time.perf_counter() - begun)
times = sorted(times[len(times) // 5:])
size = sum(path.stat().st_size for path in folder.rglob("mlflow.db*"))
print(json.dumps({"ms": times[len(times) // 2] * 1e3, "bytes": size / len(trees)}))
"""


class Peer(NamedTuple):
    """A launch kept by MLflow: median milliseconds, and bytes on the disk."""

    version: str
    ms: float
    bytes: float


class NoPeer(Exception):
    """MLflow could not be installed or did not run; the message says why."""


def mlflow(rounds: int = 40) -> Peer:
    """Install MLflow beside the project, for this run alone, and log so many launches. Raises NoPeer."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        python = folder / "venv" / "bin" / "python"
        _run([sys.executable, "-m", "venv", str(folder / "venv")])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "mlflow"])
        (folder / "runs.jsonl").write_bytes(b"".join(document(seed) + b"\n" for seed in range(rounds)))
        said = _run([str(python), "-c", LOGGER, str(folder), str(rounds)]).splitlines()[-1]
        version = _run([str(python), "-c", "import mlflow; print(mlflow.__version__)"]).splitlines()[-1]
        return Peer(version, **json.loads(said))


def _run(call: list[str]) -> str:
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoPeer(f"{' '.join(call[:5])}… ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout
