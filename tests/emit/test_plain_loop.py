"""docs/plain-loop.md, run from nothing: its loop, by its one command, to an accepted comparison.

RECEIPTS_LAB_PYTHON names the interpreter of an environment that has torch.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Shell
from probe_stage import lab

pytestmark = pytest.mark.slow
CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "plain-loop.md").read_text(encoding="utf-8")
LOOP = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line.strip() for line in PAGE.splitlines() if line.strip().startswith("receipts ")]


def test_one_command_leads_from_the_loop_to_an_accepted_comparison(shell: Shell) -> None:
    python = lab("RECEIPTS_LAB_PYTHON", "torch")
    (shell.folder / "train.py").write_text(LOOP[0], encoding="utf-8")
    words = [word.replace("python ", f"{python} ") for word in shlex.split(COMMANDS[0])[1:]]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "receipts", *words], cwd=shell.folder, env=env, capture_output=True, text=True
    )
    if done.returncode == 3:
        pytest.skip(f"other work on this machine made the launches unsteady: {done.stdout[-300:]}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "path witnessed" in " ".join(done.stdout.split())
