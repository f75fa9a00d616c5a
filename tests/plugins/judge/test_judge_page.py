"""The sessions of docs/judge.md are run as they stand, in a repository with one changed file."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from page_sessions import pattern, sessions

pytestmark = pytest.mark.slow

JOB = """
import os, time
from receipts.emit import Recorder
from step import SECONDS
with Recorder("cpu-torch", warmup=2, label=os.environ.get("RECEIPTS_LABEL")) as rec:
    for step in range(40):
        with rec.step(tokens=4096):
            time.sleep(SECONDS)
        rec.loss(5.0 - step / 20)
"""


def test_a_change_is_judged_as_the_page_shows(checkout: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "train.py").write_text(JOB)
    (repository / "step.py").write_text("SECONDS = 0.02\n")
    own = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {
        **os.environ,
        **own,
        "PYTHONPATH": str(checkout),
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "RECEIPTS_STORE": str(tmp_path / "store.sqlite"),
    }
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "base"]):
        subprocess.run(["git", *words], cwd=repository, env=environment, check=True)
    (repository / "step.py").write_text("SECONDS = 0.012\n")
    steps = [step for session in sessions((checkout / "docs" / "judge.md").read_text("utf-8")) for step in session]
    assert [shlex.split(step.command)[1] for step in steps] == ["judge", "campaign"]
    for step, code in zip(steps, (0, 3), strict=True):
        words = [sys.executable if word == "python" else word for word in shlex.split(step.command)[1:]]
        ran = subprocess.run(
            [sys.executable, "-m", "receipts", *words],
            cwd=repository,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == code, ran.stderr
        assert re.fullmatch(pattern(step.shown), ran.stdout), f"{ran.stdout}\n{ran.stderr}"
    again = subprocess.run(
        [sys.executable, "-m", "receipts", "judge", "HEAD", "--campaign", "faster", "--", sys.executable, "train.py"],
        cwd=repository,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (again.returncode, "was judged already" in again.stderr) == (0, True), again.stderr
