"""docs/start.md: its scripts run as printed, and their receipts get a witnessed path from the files they leave.

RECEIPTS_LAB_PYTHON names an interpreter with torch, transformers and jax, RECEIPTS_LAB_XLA_PYTHON one with torch_xla.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from command_line import Shell
from probe_stage import LAB, XLA_LAB, lab

pytestmark = pytest.mark.slow
CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "start.md").read_text(encoding="utf-8")
TRAINER, XLA, JAX = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[:3]


def recorded(shell: Shell, python: str, script: str, argument: str, evidence: tuple[str, ...], **env: str) -> None:
    """One launch in the folder `one`, submitted with its evidence."""
    (shell.folder / "train.py").write_text(script, encoding="utf-8")
    (shell.folder / "one").mkdir()
    done = subprocess.run(
        [python, "train.py", argument, "one"],
        cwd=shell.folder,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (shell.folder / "one" / "stderr.log").write_text(done.stderr, encoding="utf-8")
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


def test_the_torch_xla_script_gives_a_witnessed_receipt(shell: Shell) -> None:
    env = {
        "PJRT_DEVICE": "CPU",
        "PT_XLA_DEBUG_LEVEL": "2",
        "PT_XLA_DEBUG_FILE": "one/debug.txt",
        "XLA_FLAGS": "--xla_dump_to=one/dump --xla_dump_hlo_as_text",
    }
    recorded(shell, lab(XLA_LAB, "torch_xla"), XLA, "SGD", ("one",), **env)
    assert_valid(verdict(shell))


def test_the_jax_script_gives_a_witnessed_receipt(shell: Shell) -> None:
    env = {"JAX_LOG_COMPILES": "1", "XLA_FLAGS": "--xla_dump_to=one/dump --xla_dump_hlo_as_text"}
    recorded(shell, lab(LAB, "jax"), JAX, "0.1", ("stderr.log", "dump"), **env)
    assert_valid(verdict(shell))
