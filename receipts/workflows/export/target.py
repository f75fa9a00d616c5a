"""The file or folder that an export becomes: made beside its place, and put there whole or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from receipts.base import files
from receipts.base.errors import UsageError

ABOUT: Final = "export.json"


@contextmanager
def whole_file(place: Path, *, force: bool) -> Iterator[Path]:
    """A file to write to, which becomes ``place`` when all went well. Raises UsageError where it may not."""
    _check(place, force)
    if place.is_dir():
        raise UsageError(f"{place}: this is a folder; name a file")
    with files.writable(place), files.staged(place, over=force) as staged:
        yield staged


@contextmanager
def whole_folder(place: Path, *, force: bool) -> Iterator[Path]:
    """A folder to write to, which becomes ``place`` when all went well. Raises UsageError where it may not.

    An earlier export is replaced where it is forced; a folder with anything else in it never is.
    """
    _check(place, force)
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place}: this is a file, and this format fills a folder; name a folder")
    if place.is_dir() and any(place.iterdir()) and not (place / ABOUT).is_file():
        raise UsageError(f"{place}: this folder holds something else than an export and is left alone; name another")
    staged = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        with files.writable(place):
            staged.mkdir()
            yield staged
            _put(staged, place)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _put(staged: Path, place: Path) -> None:
    for path in staged.rglob("*"):
        files.to_disk(path)
    old = staged.with_suffix(".old")
    if place.exists():
        os.replace(place, old)
    os.replace(staged, place)
    files.to_disk(place.parent)
    shutil.rmtree(old, ignore_errors=True)


def _check(place: Path, force: bool) -> None:
    if not place.parent.is_dir():
        raise UsageError(f"{place}: there is no folder {place.parent}; make it with: mkdir -p {place.parent}")
    if place.exists() and not force:
        raise UsageError(f"{place}: this is there already; name another place, or replace it with --force")
