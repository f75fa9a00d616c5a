"""What it takes to read all evidence again: `python -m benchmarks verify`.

Receipts of launches on a processor, each with a trace of its own that the store keeps, verified by ``receipts verify
--all`` in two processes. Two stores give the start of the program and the time of a receipt; the figure is that of
10,000 receipts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.result import Result
from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options
from receipts.ingest.files import InputFile, gather
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import open_store
from receipts.store.evidence import files_beside
from receipts.workflows.submit import submit

RECEIPTS, BAR_SECONDS = 10_000, 60.0
_EVENTS: Final = (
    {"ph": "X", "cat": "cpu_op", "name": "ProfilerStep#3", "ts": 1, "dur": 90},
    {"ph": "X", "cat": "cpu_op", "name": "aten::_scaled_dot_product_flash_attention_for_cpu", "ts": 2, "dur": 5},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 9, "dur": 5},
)
_ROUNDS: Final = 40  # of these events in a trace


def measure(quick: bool = False) -> list[Result]:
    """Seconds for 10,000 receipts, by the difference between a large store and a small one."""
    small, large = (20, 220) if quick else (100, 1100)
    with tempfile.TemporaryDirectory() as folder:
        taken = {count: _verified(_filled(Path(folder), count)) for count in (small, large)}
    (wall, cpu), (least, _) = ((taken[large][at] - taken[small][at]) / (large - small) for at in (0, 1)), taken[small]
    whole = least + wall * (RECEIPTS - small)
    return [
        Result(
            "CPU to verify a receipt with evidence", cpu * 1e3, "ms", bar=2e3 * BAR_SECONDS / RECEIPTS, bar_on="value"
        ),
        Result(f"verify {RECEIPTS:,} receipts with evidence", whole, "s", bar=BAR_SECONDS, bar_on="value"),
    ]


def _filled(folder: Path, count: int) -> Path:
    """A store of so many receipts, and the kept files beside it."""
    place, rulebook = folder / f"{count}.sqlite", Rulebook()
    kept = files_beside(place)
    with open_store(str(place), create=True) as store:
        for outcome in submit(_documents(folder, count, rulebook), store, rulebook):
            assert outcome.error is None, outcome.error
    for trace in folder.glob("*.trace.json"):
        kept.put(trace)
        trace.unlink()
    return place


def _documents(folder: Path, count: int, rulebook: Rulebook) -> Iterator[Document]:
    for number in range(count):
        trace = folder / f"{number}.trace.json"
        trace.write_text(json.dumps({"schemaVersion": 1, "number": number, "traceEvents": _EVENTS * _ROUNDS}))
        stated = {
            "run.launch": f"launch {number}",
            "run.outcome": "ok",
            "run.provenance": "measured",
            "run.started": f"2026-03-02T09:{number // 60 % 60:02d}:{number % 60:02d}Z",
        }
        options = Options("cpu-torch", "training", stated, (rulebook.lanes.of("cpu-torch"),))
        yield Document(assemble(gather([InputFile(trace, trace.name)]), options).raw, trace.name)


def _verified(place: Path) -> tuple[float, float]:
    """Wall and CPU seconds."""
    begun, before = time.perf_counter(), os.times()
    command = ["-m", "receipts", "--store", str(place), "verify", "--all", "--jobs", "2"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout[-500:]
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begun, cpu
