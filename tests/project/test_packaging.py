"""What is in the wheel and the sdist, what the lock holds, and that the folders stay folders."""

from __future__ import annotations

import email.parser
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from receipts import __version__
from receipts.base import environment

pytestmark = pytest.mark.slow


def _build(source: Path, kind: str, into: Path) -> Path:
    """Builds the wheel or the sdist of `source` with the hatchling of this environment; needs no network."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(into)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="session")
def sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(checkout, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build(checkout, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def project(checkout: Path) -> dict[str, object]:
    table: dict[str, object] = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def _files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _originals(root: Path) -> set[str]:
    """The files under `root` by their paths, less what Python leaves behind there."""
    files = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(root).as_posix() for path in files}


@pytest.mark.parametrize("folder", environment.FOLDERS)
def test_the_wheel_holds_every_file_of_the_folder(folder: str, wheel: Path, checkout: Path) -> None:
    originals = _originals(checkout / folder)
    assert originals
    bundled = {f"receipts/_bundled/{folder}/{name}" for name in originals}
    assert bundled - _files(wheel) == set()


def test_the_wheel_puts_nothing_beside_the_package(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in _files(wheel)}
    assert tops == {"receipts", f"frontier_receipts-{__version__}.dist-info"}


def test_the_wheel_holds_no_tests_and_no_caches(wheel: Path) -> None:
    wrong = re.compile(r"(^|/)(tests|benchmarks|__pycache__)/|\.(pyc|sqlite)$")
    assert [name for name in _files(wheel) if wrong.search(name)] == []


def test_the_wheel_tells_type_checkers_that_it_is_typed(wheel: Path) -> None:
    assert "receipts/py.typed" in _files(wheel)


def test_the_wheel_is_the_same_when_it_is_built_from_the_sdist(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        # 3.11 has filters since 3.11.4; systems still bring earlier ones.
        archive.extractall(tmp_path / "source", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (source,) = (tmp_path / "source").iterdir()
    assert _files(_build(source, "wheel", tmp_path / "again")) == _files(wheel)


def test_the_distribution_is_called_frontier_receipts_and_its_command_receipts(wheel: Path) -> None:
    info = f"frontier_receipts-{__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.parser.BytesParser().parsebytes(archive.read(f"{info}/METADATA"))
        scripts = archive.read(f"{info}/entry_points.txt").decode()
    assert (metadata["Name"], metadata["Version"]) == ("frontier-receipts", __version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert "receipts = receipts.cli:main" in scripts.splitlines()


@pytest.mark.parametrize("folder", environment.FOLDERS)
def test_the_folder_is_not_a_package(folder: str, checkout: Path) -> None:
    assert (checkout / folder).is_dir()
    assert not (checkout / folder / "__init__.py").exists()


def _locked(path: Path) -> dict[str, set[str]]:
    """The versions of each distribution in a lock file; one may have several, each for its own Pythons."""
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE):
        pins.setdefault(name, set()).add(version)
    return pins


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found.group()).lower()


@pytest.mark.parametrize("lock", ["runtime", "test", "dev"])
def test_the_lock_holds_every_runtime_dependency(lock: str, checkout: Path, project: dict[str, object]) -> None:
    declared = project["dependencies"]
    assert isinstance(declared, list)
    missing = {_name(entry) for entry in declared} - _locked(checkout / "requirements" / f"{lock}.txt").keys()
    assert missing == set(), "run make lock"


def _imported(root: Path) -> set[str]:
    """The top-level names that any file below ``root`` imports, wherever in the file."""
    line = re.compile(r"^\s*(?:from|import) ([A-Za-z_]\w*)", re.MULTILINE)
    return {name for path in root.rglob("*.py") for name in line.findall(path.read_text(encoding="utf-8"))}


def test_every_runtime_dependency_is_imported_by_the_engine(checkout: Path, project: dict[str, object]) -> None:
    declared = project["dependencies"]
    assert isinstance(declared, list)
    modules = {"google-re2": "re2", "markdown-it-py": "markdown_it", "pyyaml": "yaml"}
    imported = _imported(checkout / "receipts")
    names = {_name(entry) for entry in declared}
    unused = {name for name in names if modules.get(name, name.replace("-", "_")) not in imported}
    assert unused == set()


@pytest.mark.parametrize("lock", ["runtime", "test"])
def test_what_is_tested_is_what_is_locked_for_users(lock: str, checkout: Path) -> None:
    used = _locked(checkout / "requirements" / f"{lock}.txt")
    dev = _locked(checkout / "requirements" / "dev.txt")
    assert {name: pins for name, pins in used.items() if dev.get(name) != pins} == {}


@pytest.mark.parametrize("lock", ["runtime", "test", "dev", "browser", "docs"])
def test_every_pin_of_the_lock_has_a_hash_and_none_an_address(lock: str, checkout: Path) -> None:
    text = (checkout / "requirements" / f"{lock}.txt").read_text(encoding="utf-8")
    pins = re.split(r"\n(?=\S)", text.strip())
    assert [pin.partition("\n")[0] for pin in pins if "--hash=sha256:" not in pin] == []
    assert "://" not in text


@pytest.mark.parametrize("name", ["pyproject.toml", "recorder/pyproject.toml"])
def test_the_classifiers_name_the_pythons_that_ci_runs(name: str, checkout: Path) -> None:
    table = tomllib.loads((checkout / name).read_text(encoding="utf-8"))["project"]
    workflow = (checkout / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"^ +python: \[(.+)\]$", workflow, re.MULTILINE)
    named = {item.rpartition(" ")[2] for item in table["classifiers"] if re.search(r":: 3\.\d+$", item)}
    assert named == set(re.findall(r"[\d.]+", matrix))


def test_the_first_target_of_the_makefile_is_help(checkout: Path) -> None:
    done = subprocess.run(["make"], cwd=checkout, capture_output=True, text=True, check=True)
    shown = re.findall(r"^  ([a-z-]+) ", done.stdout, re.MULTILINE)
    assert shown[0] == "help"
    assert {"demo", "quick", "test", "coverage", "lint", "types", "layers", "site"} <= set(shown)


def test_the_changelog_has_an_entry_for_this_version(checkout: Path) -> None:
    headings = re.findall(r"^## \[(\S+)\]", (checkout / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert __version__.partition(".dev")[0] in headings
