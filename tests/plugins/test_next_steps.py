"""Every command on the first screen of a weekly report runs as it is printed, and settles what its line says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from receipts.cli import main
from thorough import unless_thorough

pytestmark = pytest.mark.slow

LAB = unless_thorough(("2026-W21",), ("2026-W15", "2026-W18", "2026-W21"))


def steps(folder: Path, week: str) -> list[tuple[str, str]]:
    """The lines of a week's first screen that end in a command, each with the command."""
    store = ["--store", str(folder / "store.sqlite")]
    assert main([*store, "report", "weekly", "--week", week, "--as-of", "2026-11-30", "--out", str(folder / week)]) == 0
    text = (folder / week / "report.md").read_text(encoding="utf-8")
    screen = text.partition("## In short")[2].partition("\n## ")[0]
    return re.findall(r"^- (.*?) ?`(receipts [^`]*)`$", screen, re.MULTILINE)


def run_steps(folder: Path, week: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    verbs = set()
    for line, command in steps(folder, week):
        words = shlex.split(command)[1:]
        capsys.readouterr()
        code, answer = main(["--store", str(folder / "store.sqlite"), *words]), capsys.readouterr().out
        assert code in (0, 1, 3), (line, command, answer)
        verbs.add(words[0])
        if "rejected" in line:
            assert code == 1, (line, answer)
            first = re.findall(r"#rule-([A-Z]\d{3})", line)[0]
            assert first in answer, (line, answer)
        elif "undecided change" in line:
            assert (code, "missing" in answer) == (3, True), (line, answer)
        elif "launches." in line and words[0] == "compare":
            assert code == 0, (line, answer)
        if "**Repeat**" in line or line.startswith("Repeat"):
            assert "not stated" not in answer, (line, answer)
    return verbs


@pytest.fixture(scope="module")
def demo(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    runs, mapping = (str(checkout / "examples" / "lab" / name) for name in ("runs.json", "mapping.toml"))
    store = ["--store", str(folder / "store.sqlite")]
    assert main([*store, "import", "notebook", runs, "--mapping", mapping, "--submit"]) == 0
    assert main([*store, "submit", *map(str, sorted((checkout / "examples" / "cpu").glob("*.json")))]) == 0
    return folder


@pytest.mark.parametrize(("week", "verbs"), [("2026-W48", {"compare", "show"}), ("2026-W15", {"compare"})])
def test_each_step_of_the_demo_settles_what_it_says(
    demo: Path, week: str, verbs: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert verbs <= run_steps(demo, week, capsys)


@pytest.fixture(scope="module")
def lab(cases: Path, checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    given = [str(cases / "lab" / "runs.json"), "--mapping", str(checkout / "examples" / "lab" / "mapping.toml")]
    assert main(["--store", str(folder / "store.sqlite"), "import", "notebook", *given, "--submit"]) == 0
    return folder


@pytest.mark.parametrize("week", LAB)
def test_each_step_of_a_labs_week_settles_what_it_says(
    lab: Path, week: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "compare" in run_steps(lab, week, capsys)
