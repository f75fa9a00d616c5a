"""Each ring can be deleted: without a folder of plugins or of readers, the kernel and its tests are whole."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from receipts.base.plugins import plugins
from thorough import unless_thorough

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("receipts", "tests")  # the rest of the checkout is linked
RINGS = sorted(
    f"{kind}/{path.parent.name}"
    for kind in ("plugins", "readers")
    for path in (ROOT / "receipts" / kind).glob("*/__init__.py")
)
# The tests of the kernel: what is not of a ring, nor of the project as a whole.
KERNEL_TESTS = sorted(
    path.name
    for path in (ROOT / "tests").iterdir()
    if path.name not in ("plugins", "readers", "emit", "project", "support") and any(path.glob("test_*.py"))
)


@pytest.fixture(scope="module")
def copy(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose engine and tests may be cut."""
    import shutil

    folder = tmp_path_factory.mktemp("rings") / "checkout"
    folder.mkdir()
    for path in checkout.iterdir():
        if path.name in COPIED:
            shutil.copytree(path, folder / path.name)
        elif path.name[0] != ".":
            (folder / path.name).symlink_to(path)
    return folder


@contextmanager
def without(copy: Path, ring: str) -> Iterator[None]:
    """The copy without a ring and its tests, which come back."""
    moved = {copy / part / ring: copy / f"{part} {ring.replace('/', ' ')}" for part in COPIED}
    moved = {place: aside for place, aside in moved.items() if place.exists()}
    for place, aside in moved.items():
        place.rename(aside)
    try:
        yield
    finally:
        for place, aside in moved.items():
            aside.rename(place)


def run(copy: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with the engine of the copy, in a folder of its own."""
    env = {name: value for name, value in os.environ.items() if name != "RECEIPTS_TEST_THOROUGH"}
    env["PYTHONPATH"] = str(copy)
    return subprocess.run([sys.executable, "-P", *words], cwd=folder, env=env, capture_output=True, text=True)


def smoke(copy: Path, folder: Path) -> dict[str, Any]:
    """What the kernel of the copy answers."""
    program, examples = copy / "tests" / "support" / "kernel_smoke.py", copy / "examples" / "cpu"
    done = run(copy, folder, str(program), str(examples))
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def verbs() -> dict[str, str]:
    """Every command of a plugin, and the plugin's folder."""
    return {
        name: package.removeprefix("receipts.").replace(".", "/")
        for package, plugin in plugins().items()
        for name in plugin.verbs
    }


def holds(found: dict[str, Any], folder: Path) -> None:
    """The kernel was imported, explained itself, and answered."""
    assert len(found["modules"]) > 200
    assert {name: said for name, said in found["helps"].items() if said[0] or "Usage: receipts" not in said[1]} == {}
    answers = found["answers"]
    assert {name: answer for name, answer in answers.items() if answer[0] not in (0, 3)} == {}
    assert len(json.loads(answers["list"][1])) == 6
    assert "attention" in answers["compare"][1]
    assert list((folder / "report").rglob("*.html"))
    receipt = json.loads((folder / "run.json").read_bytes())
    assert receipt["measurement"]["step_durations_seconds"] == [0.5] * 30


@pytest.mark.parametrize("ring", RINGS)
def test_the_kernel_works_without_a_ring(ring: str, copy: Path, tmp_path: Path) -> None:
    with without(copy, ring):
        found = smoke(copy, tmp_path)
        holds(found, tmp_path)
        assert [name for name in found["loaded"] if f"{name}.".startswith(f"receipts.{ring.replace('/', '.')}.")] == []
        lost = {name for name, plugin in verbs().items() if plugin == ring}
        assert set(verbs()) - set(found["helps"]) == lost
        for name in sorted(lost):
            gone = run(copy, tmp_path, "-m", "receipts", name)
            assert (gone.returncode, gone.stdout) == (2, "")
            assert f"There is no command '{name}'" in gone.stderr
        if unless_thorough(False, True):
            run_kernel_tests(copy, "-m", "not slow")


def test_the_kernel_and_its_tests_need_no_ring_at_all(copy: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        for kind in ("plugins", "readers"):
            stack.enter_context(without(copy, kind))
        found = smoke(copy, tmp_path)
        holds(found, tmp_path)
        assert [name for name in found["loaded"] if not name.startswith("receipts.emit")] == []
        assert not set(verbs()) & set(found["helps"])
        run_kernel_tests(copy, *unless_thorough(("--collect-only",), ()))


def run_kernel_tests(copy: Path, *words: str) -> None:
    """Collect or run the kernel's tests in the copy."""
    rooms = [str(copy / "tests" / room) for room in KERNEL_TESTS]
    done = run(copy, copy, "-m", "pytest", "-p", "no:cacheprovider", "-q", *words, *rooms)
    assert done.returncode == 0, done.stdout[-4000:]
    assert len(re.findall(r"test_\w+\.py", done.stdout)) or "passed" in done.stdout


def test_the_tests_of_a_ring_import_no_other_ring() -> None:
    files = [path for ring in RINGS for path in sorted((ROOT / "tests" / ring).rglob("*.py"))]
    assert len(files) > 60
    named = {
        (path.name, name)
        for path in files
        for name in re.findall(r"receipts\.((?:plugins|readers)\.\w+)", path.read_text(encoding="utf-8"))
        if Path(name.replace(".", "/")) not in path.relative_to(ROOT / "tests").parents
    }
    assert named == set()
