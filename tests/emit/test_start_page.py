"""docs/start.md: its scripts run as printed, and their receipts get a witnessed path from the files they leave.

RECEIPTS_LAB_PYTHON names an interpreter with torch, transformers and jax, RECEIPTS_LAB_XLA_PYTHON one with torch_xla.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Shell
from probe_stage import LAB, XLA_LAB, lab

pytestmark = pytest.mark.slow
CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "start.md").read_text(encoding="utf-8")
TRAINER, XLA, JAX = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[:3]


def recorded(shell: Shell, python: str, script: str, argument: str, evidence: tuple[str, ...]) -> None:
    """One launch in the folder `one`, submitted with its evidence."""
    (shell.folder / "train.py").write_text(script, encoding="utf-8")
    (shell.folder / "one").mkdir()
    done = subprocess.run(
        [python, "train.py", argument, "one"],
        cwd=shell.folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    shell("submit", "one/run.json", *(word for name in evidence for word in ("--evidence", name)))


def verdict(shell: Shell) -> str:
    (row,) = shell("list", "--json").json
    return shell("check", row["id"]).out


def assert_valid(shown: str) -> None:
    """Valid, or open for steps that another program on this machine made unsteady."""
    assert "path witnessed" in shown
    assert shown.startswith("VALID") or "1 fact keeps it from being valid: steady steps" in " ".join(shown.split())


def test_the_trainers_script_gives_a_witnessed_receipt(shell: Shell) -> None:
    recorded(shell, lab(LAB, "transformers"), TRAINER, "FLASH_ATTENTION", ("trace.json", "trainer_state.json"))
    assert_valid(verdict(shell))


def command(shell: Shell, python: str, script: str, argument: str, **env: str) -> str:
    """What `receipts record` says of one launch, with no line of the script changed."""
    (shell.folder / "train.py").write_text(script, encoding="utf-8")
    words = [sys.executable, "-m", "receipts", "record", "--", python, "train.py", argument]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), **env}
    done = subprocess.run(words, cwd=shell.folder, env=env, capture_output=True, text=True, check=False)
    return " ".join((done.stdout + done.stderr).split())


def assert_witnessed(text: str) -> None:
    """Valid, or open for the steadiness of its steps alone, with how many would do."""
    assert re.search(r"[0-9a-f]{12} valid|1 fact keeps it from being valid: steady steps", text), text


def test_the_torch_xla_script_gives_a_witnessed_receipt(shell: Shell) -> None:
    assert_witnessed(command(shell, lab(XLA_LAB, "torch_xla"), XLA, "SGD", PJRT_DEVICE="CPU"))


def test_the_jax_script_gives_a_witnessed_receipt(shell: Shell) -> None:
    assert_witnessed(command(shell, lab(LAB, "jax"), JAX, "0.1"))
