"""Installed distributions: versions, digests of their lists of files, and checkouts that shadow them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from probe_stage import Stage, StandIn, stand_in
from receipts.emit.probes import wheels

__all__ = ["stand_in"]
RECORD = [
    ("left/__init__.py", "sha256=aaaa", "10"),
    ("left/core.py", "sha256=bbbb", "20"),
    ("../../../bin/left", "sha256=cccc", "30"),
]


def install(root: Path, name: str, version: str, record: list[tuple[str, str, str]] | None = None, **more: str) -> Path:
    """A distribution in a folder where wheels are installed."""
    folder = root / "site-packages"
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: not this\n")
    rows = [*(record if record is not None else RECORD), (f"{info.name}/INSTALLER", "sha256=dddd", "4")]
    (info / "RECORD").write_text("".join(f"{','.join(row)}\n" for row in rows), encoding="utf-8")
    for file, text in more.items():
        (info / file.replace("_json", ".json")).write_text(text, encoding="utf-8")
    return folder


def looked(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> Stage:
    monkeypatch.setattr(sys, "path", [str(folder) for folder in folders])
    stage = Stage("wheels")
    wheels.at_start(stage.stated)
    wheels.at_end(stage.stated)
    return stage


def test_a_version_stands_whole_and_all_are_captured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "megatron-core", "0.18.0+cu132.local1")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages")])
    stage = Stage("wheels")
    wheels.at_start(stage.stated)
    assert stage.get("wheels.megatron-core") == "0.18.0+cu132.local1"
    assert stage.get("wheels.complete") is True


def test_two_installations_of_one_build_have_one_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = [*RECORD[:2], ("../../../bin/left", "sha256=ffff", "31")]
    one = looked(monkeypatch, install(tmp_path / "a", "left", "1.0")).get("wheels.left")
    two = looked(monkeypatch, install(tmp_path / "b", "left", "1.0", scripts)).get("wheels.left")
    other = [("left/__init__.py", "sha256=abcd", "10"), *RECORD[1:]]
    rebuilt = looked(monkeypatch, install(tmp_path / "c", "left", "1.0", other)).get("wheels.left")
    assert one == two
    assert one["version"] == rebuilt["version"]
    assert one["digest"] != rebuilt["digest"]


def test_of_two_of_one_name_the_first_on_the_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = install(tmp_path / "a", "Left_One", "1.0"), install(tmp_path / "b", "left-one", "2.0")
    stage = looked(monkeypatch, first, second)
    assert stage.get("wheels.Left_One")["version"] == "1.0"
    assert stage.get("wheels.left-one") is None


def test_what_a_package_brings_along_for_itself_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = install(tmp_path, "left", "1.0")
    install(tmp_path / "inner", "right", "2.0")
    vendored = own / "setuptools" / "_vendor"
    vendored.parent.mkdir()
    (tmp_path / "inner" / "site-packages").rename(vendored)
    monkeypatch.setattr(sys, "path", [str(own), str(vendored)])
    assert [wheel.name for wheel in wheels.installed()] == ["left"]


def test_a_checkout_that_shadows_a_wheel_is_told_and_digested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> None:
    folder = install(tmp_path, "left", "1.0")
    checkout = tmp_path / "checkout" / "left"
    checkout.mkdir(parents=True)
    for name in ("__init__.py", "core.py"):
        (checkout / name).write_text(f"# {name}\n", encoding="utf-8")
    stand_in("left", __file__=str(checkout / "__init__.py"))
    stand_in("left.core", __file__=str(checkout / "core.py"))
    stage = looked(monkeypatch, folder)
    found = stage.get("wheels.left")
    assert found["editable"] is True
    assert f"2 modules come from the checkout {tmp_path / 'checkout'}" in stage.notes
    (checkout / "core.py").write_text("# changed\n", encoding="utf-8")
    assert looked(monkeypatch, folder).get("wheels.left")["digest"] != found["digest"]


def test_a_wheel_whose_own_files_are_imported_is_not_shadowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> None:
    folder = install(tmp_path, "left", "1.0")
    stand_in("left", __file__=str(folder / "left" / "__init__.py"))
    assert "editable" not in looked(monkeypatch, folder).get("wheels.left")


def test_an_editable_installation_is_digested_by_what_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stand_in: StandIn
) -> None:
    checkout = tmp_path / "src dir"
    (checkout / "right").mkdir(parents=True)
    (checkout / "right" / "__init__.py").write_text("X = 1\n", encoding="utf-8")
    address = json.dumps({"url": checkout.as_uri(), "dir_info": {"editable": True}})
    folder = install(
        tmp_path, "right", "0.1", [("__editable__.right.pth", "sha256=eeee", "9")], direct_url_json=address
    )
    unused = looked(monkeypatch, folder)
    assert unused.get("wheels.right") == {"version": "0.1", "editable": True}
    assert "nothing of it was imported" in unused.notes
    stand_in("right", __file__=str(checkout / "right" / "__init__.py"))
    assert looked(monkeypatch, folder).get("wheels.right")["digest"].startswith("sha256:")


@pytest.mark.parametrize("record", ["", "no,commas\nhere", '"unclosed,x\n', "\0\0\0"])
def test_a_broken_list_of_files_leaves_the_version_alone(
    record: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install(tmp_path, "left", "1.0")
    (folder / "left-1.0.dist-info" / "RECORD").write_text(record, encoding="utf-8")
    (folder / "left-1.0.dist-info" / "direct_url.json").write_text("[", encoding="utf-8")
    assert looked(monkeypatch, folder).get("wheels.left") in ("1.0", {"version": "1.0"})


def test_the_wheels_of_this_environment_are_those_of_importlib() -> None:
    from importlib import metadata

    stage = Stage("wheels")
    wheels.at_start(stage.stated)
    for name in ("pydantic", "pytest", "numpy"):
        assert stage.get(f"wheels.{name}") == metadata.version(name)
