"""docs/plain-loop.md, run from nothing: its loop, six launches, and its commands, to an accepted comparison.

RECEIPTS_LAB_PYTHON names the interpreter of an environment that has torch.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from command_line import Shell
from probe_stage import lab

pytestmark = pytest.mark.slow
CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "plain-loop.md").read_text(encoding="utf-8")
LOOP = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line.strip() for line in PAGE.splitlines() if line.strip().startswith("receipts ")]


def test_three_commands_lead_from_the_loop_to_an_accepted_comparison(shell: Shell) -> None:
    python = lab("RECEIPTS_LAB_PYTHON", "torch")
    (shell.folder / "train.py").write_text(LOOP[0], encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    for number in (1, 2, 3):
        for backend in ("MATH", "FLASH_ATTENTION"):
            (shell.folder / f"runs/{backend}-{number}").mkdir(parents=True)
            words = [python, "train.py", backend, f"runs/{backend}-{number}"]
            done = subprocess.run(words, cwd=shell.folder, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[-3000:]
    receipts = sorted(str(path.relative_to(shell.folder)) for path in shell.folder.glob("runs/*/run.json"))
    submit, compare, later = COMMANDS
    assert submit == "receipts submit runs/*/run.json --evidence trace.json"
    stored = shell("submit", *receipts, *submit.split()[3:])
    assert stored.code == 0, stored.err
    assert "attention kinds" not in stored.out, "the page states what its lane asks for"
    decided = shell(*compare.split()[1:])
    assert "path witnessed" in decided.out, decided.out
    if decided.code == 3:
        pytest.skip(f"other work on this machine made the launches unsteady: {decided.lines[-1]}")
    assert decided.code == 0, decided.out
    assert "comparable yes · path witnessed" in " ".join(decided.out.split())
    reason = re.findall(r'"(.*?)"', later)[0]
    again = shell(*later.replace(f' "{reason}"', "").split()[1:], reason)
    assert again.code == 0, again.err
