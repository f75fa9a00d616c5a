"""The bars of the estimate: the TPU compiler's answers on record, and a lab's measured peaks where they are there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


def told(checkout: Path, *words: str) -> Any:
    program, *rest = words
    done = subprocess.run(
        [sys.executable, str(checkout / "benchmarks" / program), *rest, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def test_the_estimate_is_near_the_compilers_answers_on_record(checkout: Path) -> None:
    found = told(checkout, "fit_compiler.py")
    assert found["shapes"] >= 40, "a change of the decoder makes the record stale: compile again"
    assert found["within_15"] >= 0.90 * found["with_bytes"]
    assert found["right"] >= 0.95 * found["shapes"]


def test_the_estimate_is_near_a_labs_measured_peaks(checkout: Path) -> None:
    cases = checkout.parent / "shared" / "cases" / "lab"
    if not (cases / "runs.json").exists():
        pytest.skip("the lab's records are not here")
    found = told(checkout, "fit_agreement.py", "--cases", str(cases))
    assert sum(not run["why_not"] for run in found["runs"]) >= 6
    assert found["plain"]
    assert found["calibrated"]
