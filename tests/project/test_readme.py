"""The README's sessions are run as they stand: every command, every line that it shows of the output."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from page_sessions import pattern, sessions
from receipts.cli.group import commands
from receipts.receipt import Document, parse

pytestmark = pytest.mark.slow

# What a shell of the reader starts; a stranger's Python has nothing of this project.
PROGRAMS = {"receipts": [sys.executable, "-m", "receipts"], "python": [sys.executable, "-I", "-S"]}


def test_a_shown_line_that_differs_is_noticed() -> None:
    assert re.fullmatch(pattern(("one", "…", "three")), "one\ntwo\nthree\n")
    assert not re.fullmatch(pattern(("one", "three")), "one\ntwo\nthree\n")


def test_the_sessions_of_the_readme_run_as_shown(checkout: Path, tmp_path: Path) -> None:
    text = (checkout / "README.md").read_text(encoding="utf-8")
    steps = [step for session in sessions(text) for step in session if step.command.split()[0] in PROGRAMS]
    assert len(steps) >= 5, "the README shows no session"
    (tmp_path / "examples").symlink_to(checkout / "examples")
    (tmp_path / "verify.py").symlink_to(checkout / "receipts" / "plugins" / "trust" / "verify.py")
    environment = {
        **os.environ,
        "RECEIPTS_STORE": str(tmp_path / "readme.sqlite"),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "PYTHONPATH": str(checkout),
    }
    for step in steps:
        program, *parts = shlex.split(step.command)
        words = [*PROGRAMS[program], *(word for part in parts for word in _globbed(part, tmp_path))]
        ran = subprocess.run(
            words,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in ran.stderr, ran.stderr
        assert re.fullmatch(pattern(step.shown), ran.stdout), (
            f"$ {step.command}\nshown:\n" + "\n".join(step.shown) + f"\nprinted:\n{ran.stdout}{ran.stderr}"
        )


def test_the_recorder_of_the_readme_writes_a_receipt(checkout: Path, tmp_path: Path) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```$", (checkout / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert len(blocks) == 1
    environment = {**os.environ, "PYTHONPATH": str(checkout), "NO_COLOR": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", blocks[0]], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    parsed = parse(Document((tmp_path / "run.json").read_bytes(), "run.json"))
    assert parsed.receipt.run.outcome == "ok"
    assert len(parsed.receipt.measurement.step_durations_seconds) == 80
    assert parsed.receipt.batch.global_batch == 4


def _globbed(word: str, folder: Path) -> list[str]:
    """What a shell makes of a word: its files in order, or itself."""
    if not any(sign in word for sign in "*?[") or "=" in word:
        return [word]
    return sorted(str(path.relative_to(folder)) for path in folder.glob(word)) or [word]


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_two_commands_of_the_readme_are_targets(checkout: Path, target: str) -> None:
    text = (checkout / "README.md").read_text(encoding="utf-8")
    assert f"make {target}" in text
    assert re.search(rf"^{target}:", (checkout / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_readme_names_every_command_and_links_every_page(checkout: Path) -> None:
    text = (checkout / "README.md").read_text(encoding="utf-8")
    table = text[text.index("## Commands") : text.index("## Where things are")]
    named = {word for cell in re.findall(r"`([^`]+)`", table) for word in cell.split()[:1]}
    assert set(commands()) - named == set()
    pages = {f"docs/{page.name}" for page in (checkout / "docs").glob("*.md")}
    assert pages - set(re.findall(r"\]\((docs/[\w-]+\.md)", text)) == set()
