"""Files are written whole or not at all, whatever fails on the way."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from receipts.base import files
from receipts.base.errors import DiskError, UsageError


def _full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"x" * 10)
    assert files.read_small(small, 10) == b"x" * 10
    for place in (small, Path("/dev/zero")):
        with pytest.raises(OSError, match="larger than"):
            files.read_small(place, 9)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    files.write(tmp_path / "a", "old")
    monkeypatch.setattr(os, step, _full)
    with pytest.raises(DiskError, match=r"a cannot be written: No space left on device, and nothing was changed"):
        files.write(tmp_path / "a", "new", over=True)
    assert _names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_a_disk_that_fills_up_half_way_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(self: Path, content: bytes) -> None:
        with self.open("wb") as stream:
            stream.write(content[: len(content) // 2])
        _full()

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(DiskError, match="No space left"):
        files.write(tmp_path / "a", "content")
    assert _names(tmp_path) == []


def test_a_folder_gets_all_of_its_files_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "one" / "two"
    files.write_folder(folder, {"a": "old a", "b": "old b"})
    calls: list[object] = []

    def second(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            _full()

    monkeypatch.setattr(os, "fsync", second)
    with pytest.raises(DiskError, match="No space left"):
        files.write_folder(folder, {"a": "new a", "b": "new b"}, over=True)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a": "old a", "b": "old b"}


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    files.write(tmp_path / "a", "mine")
    with pytest.raises(UsageError, match="a exists and is kept; name another file, or remove it first"):
        files.write(tmp_path / "a", "other")
    assert (tmp_path / "a").read_text() == "mine"
    assert _names(tmp_path) == ["a"]


def test_without_hard_links_an_existing_file_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", lambda *_: _full())
    files.write(tmp_path / "a", "mine")
    with pytest.raises(UsageError, match="exists and is kept"):
        files.write(tmp_path / "a", "other")
    assert (tmp_path / "a").read_text() == "mine"
    assert _names(tmp_path) == ["a"]


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file or directory; name a place"):
        files.write(tmp_path / "none" / "a", "content")


def test_a_new_file_has_the_mode_of_every_new_file_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write(tmp_path / "new", "content")
        files.write(tmp_path / "old", "content")
        (tmp_path / "old").chmod(0o604)
        files.write(tmp_path / "old", "again", over=True)
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o604


def test_a_link_is_followed_and_a_device_stays_a_device(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    files.write(tmp_path / "link", "content", over=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "content"
    files.write("/dev/null", "content", over=True)
    assert Path("/dev/null").is_char_device()
