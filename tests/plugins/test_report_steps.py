"""Commands of a weekly report's first screen run as printed, and settle what is said: of the demo and of real weeks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from receipts.cli import main
from thorough import unless_thorough

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MAPPING = ROOT / "examples" / "lab" / "mapping.toml"
LAB_WEEKS = ("2026-W15", "2026-W16", "2026-W18", "2026-W20", "2026-W21")
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


@pytest.mark.parametrize(("week", "verbs"), [("2026-W48", {"compare", "show"}), ("2026-W15", {"compare"})])
def test_each_command_of_the_demo_s_week_runs_and_settles_what_is_said(
    demo: Path, week: str, verbs: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert verbs <= _settles_what_is_said(demo, week, capsys)


@pytest.mark.parametrize("week", unless_thorough(("2026-W15", "2026-W16", "2026-W21"), LAB_WEEKS))
def test_each_command_of_a_real_week_runs_and_settles_what_is_said(
    lab: Path, week: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "compare" in _settles_what_is_said(lab, week, capsys)


def _settles_what_is_said(store: Path, week: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Run each command, and return their verbs."""
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
            assert (code, answer.partition(" ")[0]) == (0, "ACCEPTED")
            assert change in answer  # the same number on both
        elif verb == "compare" and step["topic"] == "lost":
            reason = re.search(r"rejected: \d+ (changed several settings at once|.*?) \(([CR]\d{3})\)", says)
            assert reason is not None
            assert (code, answer.partition(" ")[0]) == (1, "REJECTED")
            assert ("settings changed" if reason[2] == "C101" else f"({reason[2]})") in answer
        elif verb == "compare":
            assert (code, answer.partition(" ")[0]) == (3, "UNDECIDED"), answer[:80]
            assert "undecided change" not in says or "missing" in answer
        elif verb == "repro" and says.startswith("Repeat"):
            assert "not stated" not in answer
        elif verb == "list":
            assert re.search(r"oom|crash|nan", answer)
    return {step["command"].split()[1] for step in steps}
