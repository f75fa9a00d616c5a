"""The same launch kept by MLflow, in a SQLite store of its own, or by Aim, each in an environment of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
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

client = MlflowClient(sys.argv[2])
folder = pathlib.Path(sys.argv[1])
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
    durations = measured.get("step_durations_seconds", [])
    steps = [Metric("step_seconds", value, now, step) for step, value in enumerate(durations)]
    chips = [
        Metric(f"chip_{row['chip']}_{name}", row[name], now, 0)
        for row in memory.get("chips", []) for name in ("bytes_used", "bytes_limit", "peak_bytes")
    ]
    stated = [Metric(key, value, now, 0) for key, value in measured["stated"].items() if isinstance(value, float)]
    client.log_batch(run, metrics=[*steps, *chips, *stated], tags=[RunTag("lane", tree["run"]["lane"])])
    client.set_terminated(run)

trees = [json.loads(line) for line in (folder / "runs.jsonl").read_bytes().splitlines()]
"""
# The same with Aim: settings as parameters of a run, steps as its metric; nothing is captured beside them.
AIM_LOGGER = """
import json, logging, pathlib, sys, time
logging.disable(logging.CRITICAL)
from aim import Run

folder = pathlib.Path(sys.argv[1])
quiet = {"system_tracking_interval": None, "log_system_params": False, "capture_terminal_logs": False}

def log(tree):
    measured, memory = tree.pop("measurement"), tree.pop("memory")
    run = Run(repo=sys.argv[2], experiment="bench", **quiet)
    run.name = tree["run"]["label"]
    run["receipt"], run["memory"], run["stated"] = tree, memory, measured["stated"]
    for step, value in enumerate(measured.get("step_durations_seconds", [])):
        run.track(value, name="step_seconds", step=step)
    run.close()

trees = [json.loads(line) for line in (folder / "runs.jsonl").read_bytes().splitlines()]
"""
ONE_BY_ONE = """
times = []
for tree in trees:
    begun = time.perf_counter()
    log(tree)
    times.append(time.perf_counter() - begun)
times = sorted(times[len(times) // 5:])
size = sum(path.stat().st_size for path in folder.rglob("mlflow.db*"))
print(json.dumps({"ms": times[len(times) // 2] * 1e3, "bytes": size / len(trees)}))
"""
AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
log(trees.pop())
begun = time.perf_counter()
with ThreadPoolExecutor(int(sys.argv[3])) as pool:
    list(pool.map(log, trees))
print(json.dumps({"ms": (time.perf_counter() - begun) * 1e3 / len(trees)}))
"""


class Peer(NamedTuple):
    """A launch kept by MLflow: median milliseconds, and bytes on the disk."""

    version: str
    ms: float
    bytes: float


class NoPeer(Exception):
    """The peer could not be installed or did not run; the message says why."""


def mlflow(rounds: int = 40) -> Peer:
    """Install MLflow beside the project, for this run alone, and log so many launches. Raises NoPeer."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        python = folder / "venv" / "bin" / "python"
        _run([sys.executable, "-m", "venv", str(folder / "venv")])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "mlflow"])
        (folder / "runs.jsonl").write_bytes(b"".join(document(seed) + b"\n" for seed in range(rounds)))
        logged = _run([str(python), "-c", LOGGER + ONE_BY_ONE, str(folder), f"sqlite:///{folder}/mlflow.db"])
        version = _run([str(python), "-c", "import mlflow; print(mlflow.__version__)"]).splitlines()[-1]
        return Peer(version, **json.loads(logged.splitlines()[-1]))


def mlflow_server(python: Path, documents: Sequence[bytes], clients: int) -> float:
    """Milliseconds a launch that so many clients log to MLflow's server, with the Python that has MLflow."""
    store = ["--backend-store-uri", "sqlite:///{folder}/mlflow.db", "--artifacts-destination", "{folder}"]
    command = [str(python), "-m", "mlflow", "server", "--port", "{port}", *store]
    return _served(command, python, LOGGER + AT_ONCE, "http://127.0.0.1:{port}", documents, clients)


def aim_server(python: Path, documents: Sequence[bytes], clients: int) -> float:
    """Milliseconds a launch that so many clients log to Aim's tracking server, with the Python that has Aim."""
    command = [str(python.parent / "aim"), "server", "--host", "127.0.0.1", "--port", "{port}", "--repo", "{folder}"]
    return _served([*command, "-y"], python, AIM_LOGGER + AT_ONCE, "aim://127.0.0.1:{port}", documents, clients)


def _served(
    command: Sequence[str], python: Path, script: str, url: str, documents: Sequence[bytes], clients: int
) -> float:
    """Start a server over an empty folder, and have a script log the documents to it."""
    with tempfile.TemporaryDirectory() as place, socket.socket() as free:
        folder = Path(place)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        (folder / "runs.jsonl").write_bytes(b"".join(raw + b"\n" for raw in documents))
        words = [word.format(folder=folder, port=port) for word in command]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        try:
            _wait(port)
            call = [str(python), "-c", script, str(folder), url.format(port=port), str(clients)]
            return float(json.loads(_run(call).splitlines()[-1])["ms"])
        finally:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _wait(port: int, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise NoPeer(f"the server did not listen within {seconds:g} s")


def _run(call: list[str]) -> str:
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoPeer(f"{' '.join(call[:5])}… ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout
