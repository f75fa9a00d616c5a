"""Small training jobs for the recorder's tests: in this process, or in one of their own that may be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import receipts
from receipts.emit import Recorder

HEAD = """
import os, signal, sys, time
from receipts.emit import Recorder
"""
LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID")


def environment(**more: str) -> dict[str, str]:
    """This process's environment without a launcher's, with the package on the path."""
    found = {name: value for name, value in os.environ.items() if name not in LAUNCHER}
    return {**found, "PYTHONPATH": str(Path(receipts.__file__).parents[1]), **more}


def job(folder: Path, body: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, whatever that is."""
    script = folder / "job.py"
    script.write_text(HEAD + body, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env=environment(**(env or {})),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def read(path: str | Path) -> dict[str, Any]:
    """A document as data."""
    found: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return found


def recorder(folder: Path, **options: Any) -> Recorder:
    """A quiet recorder without probes, writing into a folder."""
    given: dict[str, Any] = {"out": str(folder / "run.json"), "probes": False, "quiet": True, **options}
    return Recorder(given.pop("lane", "cpu-torch"), **given)


def only(folder: Path, pattern: str) -> Path:
    """The one file of a pattern."""
    (found,) = folder.glob(pattern)
    return found
