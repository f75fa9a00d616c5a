"""The folders that ship with the program are found, in a checkout and in a wheel, or missed in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.base import environment
from receipts.base.errors import ResourceError


def _package(root: Path) -> Path:
    package = root / "receipts"
    package.mkdir(parents=True)
    return package


def _checkout(root: Path, name: str = "frontier-receipts") -> Path:
    """A checkout of a project called `name`, and the path of its package."""
    package = _package(root)
    (root / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n', encoding="utf-8")
    return package


@pytest.mark.parametrize("name", environment.FOLDERS)
def test_every_folder_of_the_program_is_found(name: str) -> None:
    found = environment.bundled_folder(name)
    assert found.is_dir()
    assert found.is_absolute()
    assert found.name == name


def test_in_a_checkout_the_originals_are_used(checkout: Path) -> None:
    assert environment.bundled_folder("schema") == checkout / "schema"


def test_the_copy_in_the_wheel_comes_before_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = _checkout(tmp_path)
    (tmp_path / "schema").mkdir()
    (package / "_bundled" / "schema").mkdir(parents=True)
    monkeypatch.setattr(environment, "_PACKAGE", package)
    assert environment.bundled_folder("schema") == package / "_bundled" / "schema"


def test_another_project_around_the_package_is_not_its_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_PACKAGE", _checkout(tmp_path, name="somebody-elses"))
    (tmp_path / "schema").mkdir()
    assert environment.checkout() is None
    with pytest.raises(ResourceError, match="schema/ is missing"):
        environment.bundled_folder("schema")


def test_a_missing_folder_is_named_with_both_places_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = _checkout(tmp_path)
    monkeypatch.setattr(environment, "_PACKAGE", package)
    with pytest.raises(ResourceError) as missing:
        environment.bundled_folder("reports")
    message = str(missing.value)
    assert str(package / "_bundled" / "reports") in message
    assert str(tmp_path / "reports") in message
    assert "pip install --force-reinstall frontier-receipts" in message
    assert missing.value.exit_code == 4


def test_a_package_without_a_checkout_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_PACKAGE", _package(tmp_path))
    with pytest.raises(ResourceError, match="there is none around"):
        environment.bundled_folder("migrations")


@pytest.mark.parametrize("name", ["tests", "../schema", "", "schema/examples"])
def test_a_folder_that_does_not_ship_is_refused(name: str) -> None:
    with pytest.raises(ResourceError, match="is not a folder of this program"):
        environment.bundled_folder(name)
