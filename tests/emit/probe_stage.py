"""A stage for probes: what they state, modules that stand in for what cannot run here, and an interpreter with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jobs import environment
from receipts.emit.facts import StatedFacts
from receipts.emit.probing import ProbeOutput
from receipts.emit.steps import StepTimer

LAB = "RECEIPTS_LAB_PYTHON"
XLA_LAB = "RECEIPTS_LAB_XLA_PYTHON"
StandIn = Callable[..., ModuleType]


class Stage:
    """Facts and steps, and a probe's door to them."""

    def __init__(self, probe: str = "probe", **place: Any) -> None:
        self.facts = StatedFacts()
        self.steps = StepTimer(lambda _: bytearray(), lambda _: None)
        self.stated = ProbeOutput(self.facts, probe, steps=self.steps, **place)

    def ended(self, count: int) -> Stage:
        """So many steps have ended."""
        self.steps.ended, self.steps.at = count, 0
        return self

    def get(self, path: str) -> Any:
        """What is stated at a path."""
        return self.facts.get(path)

    @property
    def notes(self) -> str:
        """Every note in one text."""
        return "\n".join(line for lines in self.facts.notes.values() for line in lines)

    def observed(self, kind: str) -> dict[str, Any]:
        """What the one row of evidence of a kind holds."""
        (row,) = [row for row in self.facts.evidence if row["kind"] == kind]
        found: dict[str, Any] = row.get("observed", {})
        return found


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Put a module of this name, with these attributes, among the imported ones until the test ends."""

    def put(name: str, **attributes: Any) -> ModuleType:
        module = ModuleType(name)
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return put


def lab(variable: str, module: str) -> str:
    """The interpreter that a variable names, where it imports a module; else the test is skipped with the reason."""
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"{variable} names no interpreter with {module}")
    done = subprocess.run(
        [path, "-c", f"import importlib.util as u; print(u.find_spec({module!r}) is not None)"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stdout.strip() != "True":
        pytest.skip(f"the interpreter that {variable} names has no {module}")
    return path


def lab_job(python: str, folder: Path, body: str, **variables: str) -> dict[str, Any]:
    """Run a script that writes run.json in another interpreter; its receipt."""
    script = folder / "job.py"
    script.write_text(body, encoding="utf-8")
    env = {name: value for name, value in environment(**variables).items() if name not in ("OMP_NUM_THREADS",)}
    done = subprocess.run(
        [python, str(script)], cwd=folder, env=env | variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return found
