"""Each ring can be deleted: without a folder of plugins or of readers, the kernel and its tests are whole."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
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
# A ring imports no other ring (the layers say so), so several go at once, or each alone.
TOGETHER = unless_thorough(10, 1)
GROUPS = [RINGS[first : first + TOGETHER] for first in range(0, len(RINGS), TOGETHER)]
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


class Smoke:
    """The program `kernel_smoke` with the engine of a copy."""

    def __init__(self, copy: Path, errors: Path) -> None:
        program, examples = copy / "tests" / "support" / "kernel_smoke.py", copy / "examples" / "cpu"
        env = {**os.environ, "PYTHONPATH": str(copy)}
        words = [sys.executable, "-P", str(program), str(examples)]
        self.errors = errors
        with errors.open("w") as err:
            self.program = subprocess.Popen(
                words, cwd=errors.parent, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True
            )

    def __call__(self, folder: Path, lost: Iterable[str] = ()) -> dict[str, Any]:
        """What the kernel answers that is in the copy now."""
        assert self.program.stdin is not None
        assert self.program.stdout is not None
        self.program.stdin.write(json.dumps([str(folder), sorted(lost)]) + "\n")
        self.program.stdin.flush()
        code = self.program.stdout.readline()
        assert code == "0\n", self.errors.read_text()
        answers: dict[str, Any] = json.loads((folder / "smoke.json").read_bytes())
        return answers


@pytest.fixture(scope="module")
def smoke(copy: Path) -> Iterator[Smoke]:
    smoke = Smoke(copy, copy.parent / "errors")
    with smoke.program:
        yield smoke


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


@pytest.mark.parametrize("rings", GROUPS, ids=" ".join)
def test_the_kernel_works_without_a_ring(rings: list[str], copy: Path, smoke: Smoke, tmp_path: Path) -> None:
    lost = {name for name, plugin in verbs().items() if plugin in rings}
    deleted = tuple(f"receipts.{ring.replace('/', '.')}." for ring in rings)
    with ExitStack() as stack:
        for ring in rings:
            stack.enter_context(without(copy, ring))
        found = smoke(tmp_path, lost)
        holds(found, tmp_path)
        assert [name for name in found["loaded"] if f"{name}.".startswith(deleted)] == []
        assert set(verbs()) - set(found["helps"]) == lost
        for name, (code, out, err) in found["lost"].items():
            assert (code, out) == (2, "")
            assert f"There is no command '{name}'" in err
        if unless_thorough(False, True):
            run_kernel_tests(copy, "-m", "not slow")


def test_the_kernel_and_its_tests_need_no_ring_at_all(copy: Path, smoke: Smoke, tmp_path: Path) -> None:
    with ExitStack() as stack:
        for kind in ("plugins", "readers"):
            stack.enter_context(without(copy, kind))
        found = smoke(tmp_path)
        holds(found, tmp_path)
        assert [name for name in found["loaded"] if not name.startswith("receipts.emit")] == []
        assert not set(verbs()) & set(found["helps"])
        run_kernel_tests(copy, *unless_thorough(("--collect-only",), ()))


def run_kernel_tests(copy: Path, *words: str) -> None:
    """Collect or run the kernel's tests in the copy."""
    rooms = [str(copy / "tests" / room) for room in KERNEL_TESTS]
    env = {name: value for name, value in os.environ.items() if name != "RECEIPTS_TEST_THOROUGH"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "-p", "no:cacheprovider", "-q", *words, *rooms],
        cwd=copy,
        env={**env, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
    )
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
