"""Commands of a weekly report's first screen run as printed, and settle what is said: of the demo and of real weeks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from receipts.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MAPPING = ROOT / "examples" / "lab" / "mapping.toml"
_STEP = re.compile(r"^- \*\*(?P<topic>\w+)\*\*: (?P<says>.*?)`(?P<command>receipts [^`]+)`", re.MULTILINE)


def _filled(store: Path, runs: Path, *receipts: Path) -> Path:
    assert main(["--store", str(store), "import", "notebook", str(runs), "--mapping", str(MAPPING), "--submit"]) == 0
    assert main(["--store", str(store), "submit", *map(str, receipts)]) in (0, 1)
    return store


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``examples/demo.sh`` stores."""
    place = tmp_path_factory.mktemp("steps") / "demo.sqlite"
    return _filled(place, ROOT / "examples" / "lab" / "runs.json", *sorted((ROOT / "examples" / "cpu").glob("*.json")))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, cases: Path) -> Path:
    """The notebooks of a laboratory."""
    place = tmp_path_factory.mktemp("steps") / "lab.sqlite"
    return _filled(place, cases / "lab" / "runs.json", *sorted((ROOT / "examples" / "recorder").glob("*.json")))


@pytest.mark.parametrize("week", ["2026-W48", "2026-W15"])
def test_each_command_of_the_demo_s_week_runs_and_settles_what_is_said(
    demo: Path, week: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _settles_what_is_said(demo, week, capsys)


@pytest.mark.parametrize("week", ["2026-W15", "2026-W16", "2026-W20"])
def test_each_command_of_a_real_week_runs_and_settles_what_is_said(
    lab: Path, week: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _settles_what_is_said(lab, week, capsys)


def _settles_what_is_said(store: Path, week: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    words = ["report", "weekly", "--week", week, "--as-of", "2026-11-29", "--first-screen", "markdown"]
    assert main(["--store", str(store), *words]) == 0
    screen = capsys.readouterr().out
    steps = list(_STEP.finditer(screen))
    assert len(steps) == screen.count("`receipts ") > 2
    for step in steps:
        command, says = step["command"], step["says"]
        code = main(["--store", str(store), *shlex.split(command)[1:]])
        answer = capsys.readouterr().out
        assert code in (0, 1, 3), command
        assert answer, command
        assert "NOT YET" not in answer, command
        verb = command.split()[1]
        if verb == "compare" and step["topic"] == "accepted":
            (change,) = re.findall(r"[+−][\d.]+ %(?= \()", says)
            assert answer.startswith("ACCEPTED")
            assert change in answer  # the same number on both
        elif verb == "compare" and step["topic"] == "lost":
            reason = re.search(r"rejected: \d+ (changed several settings at once|.*?) ([CR]\d{3})", says)
            assert reason is not None
            assert answer.startswith("REJECTED")
            assert ("settings changed" if reason[2] == "C101" else f"({reason[2]})") in answer
        elif verb == "compare":
            assert answer.startswith("UNDECIDED"), answer[:80]
        elif verb == "repro" and says.startswith("Repeat"):
            assert "not stated" not in answer
        elif verb == "list":
            assert re.search(r"oom|crash|nan", answer)
