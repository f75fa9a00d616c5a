"""The recorder's own wheel: alone, and beside the whole one in either order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

RECORD = """
from receipts.emit import Recorder
with Recorder("cpu-torch", context="c", warmup=1, out="run.json", quiet=True) as rec:
    for _ in range(5):
        with rec.step(tokens=8):
            pass
"""
# The engine's libraries are those of this environment, behind what is installed there.
PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from receipts.cli import main; sys.exit(main())"


def _build(project: Path, into: Path) -> Path:
    """The wheel of a project file, by the hatchling of this environment; needs no network."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(into)]
    subprocess.run(command, cwd=project, capture_output=True, check=True)
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="session")
def whole(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(checkout, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="session")
def recorder(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(checkout / "recorder", tmp_path_factory.mktemp("recorder"))


@dataclass(frozen=True)
class Environment:
    """An environment that begins empty. It holds no pip: that of this environment works on it."""

    root: Path

    def pip(self, *words: str | Path) -> None:
        """Call pip, without an index."""
        command = [sys.executable, "-m", "pip", "--python", str(self.root / "bin" / "python"), *map(str, words)]
        done = subprocess.run(command, env=self._clean(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def install(self, wheel: Path) -> None:
        """Install a wheel and nothing else."""
        self.pip("install", "--quiet", "--no-index", "--no-deps", "--no-compile", wheel)

    def run(self, code: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run code in its Python."""
        command = [str(self.root / "bin" / "python"), "-c", code, *map(str, words)]
        return subprocess.run(command, cwd=self.root, env=self._clean(), capture_output=True, text=True, check=False)

    def _clean(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "RECEIPTS_"))}
        return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    root = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    return Environment(root)


def _contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}


def test_what_both_wheels_hold_is_the_same_byte_for_byte(whole: Path, recorder: Path) -> None:
    every, own = _contents(whole), _contents(recorder)
    assert {name for name, content in own.items() if every.get(name) != content} == set()
    assert {name for name in every if name.startswith("receipts/emit/")} == set(own) - {
        *("receipts/__init__.py", "receipts/__init__.pyi", "receipts/py.typed")
    }


def test_the_recorder_runs_alone_and_needs_nothing(recorder: Path, environment: Environment) -> None:
    environment.install(recorder)
    environment.pip("check")
    done = environment.run(RECORD)
    assert done.returncode == 0, done.stderr
    receipt = json.loads((environment.root / "run.json").read_text(encoding="utf-8"))
    assert len(receipt["measurement"]["step_durations_seconds"]) == 5
    notes = " ".join(receipt.get("notes", {}).get("recorder", []))
    assert "Error" not in notes
    missing = environment.run("from receipts import emit, load")
    assert missing.stderr.splitlines()[-1] == (
        "ImportError: receipts.load is not in the recorder: pip install frontier-receipts"
    )


@pytest.mark.parametrize("first", ["whole", "recorder"])
def test_both_lie_side_by_side_in_either_order_and_the_recorder_may_go_and_come(
    first: str, whole: Path, recorder: Path, environment: Environment, checkout: Path
) -> None:
    pair = [checkout / "examples" / "cpu" / f"attention-{name}-1.json" for name in ("math", "flash")]
    wheels = [whole, recorder] if first == "whole" else [recorder, whole]

    def compares() -> bool:
        done = environment.run(PROGRAM, sysconfig.get_path("purelib"), "compare", *pair)
        return (done.returncode, done.stdout.partition(" ")[0]) == (3, "UNDECIDED")

    for wheel in wheels:
        environment.install(wheel)
    assert compares()
    environment.pip("uninstall", "--quiet", "--yes", "frontier-receipts-recorder")
    environment.install(recorder)
    assert compares()
    assert environment.run(RECORD).returncode == 0
