"""Files and folders that an input names: settings by key, data by digest, folders by what they list.

A value that names a file is compared by what the file holds and not by where it lies.
"""

from __future__ import annotations

import hashlib
import os
import re
import time

from receipts.emit import configuration
from receipts.emit.launch_values import THEN
from receipts.emit.own_launch import within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

MAX_ROWS = 16
MAX_BYTES = 64 << 20  # bytes of a file that are digested whole
_AT_ONCE = 4 << 20  # bytes that the start of a run has time for
_SAMPLES = 16
_LISTED = 2000
_SECONDS = 0.5  # of listing one folder; a network disk may take long
_MAX_FILES = 50  # files of a folder of settings
_GLOB = re.compile(r"[*?\[]")


class NamedFiles:
    """What was found of each name. ``rows`` are rows of `inputs.files`, ``over`` says that there were too many.

    ``variables`` are those that a configuration names, ``composes`` says that one is composed of others. What the run
    itself writes to has a name and no digest.
    """

    def __init__(self, root: str) -> None:
        self.rows: list[dict[str, Any]] = []
        self.over = False
        self.variables: set[str] = set()
        self.composes = False
        self._absent: dict[str, str] = {}
        self._places: dict[str, str] = {}
        self._before: list[tuple[dict[str, Any], str, Any]] = []
        self._root = root
        self._seen: set[tuple[str, str]] = set()

    def take(
        self, option: str, text: str, *, only_config: bool = False, folders: bool = True, beside: str = ""
    ) -> None:
        """Look at one value, or each of several; ``beside`` is the folder of the file that names it."""
        for value in _values(text):
            if option:
                self._places[option] = os.path.abspath(value)
            path = next((item for item in _places(value, beside) if os.path.exists(item)), "")
            if not path and _GLOB.search(value) and "/" in value:
                self._listing(option, value)
            elif not path and option and "/" in value and "://" not in value:
                self._absent[option] = value
            elif path and os.path.isdir(path):
                if folders and not only_config and os.path.realpath(path) not in (self._root, os.getcwd()):
                    self._listing(option, path)
            elif path and os.path.isfile(path) and (not only_config or configuration.is_config(path)):
                self._file(option, path)

    def relative(self, text: str) -> str:
        """A value as it is to be kept: of paths that exist, or may come to, as they lie in the checkout."""
        return THEN.join(within(self._root, value) if self._is_path(value) else value for value in text.split(THEN))

    def _is_path(self, value: str) -> bool:
        known = "/" in value and "://" not in value and len(value) < 1000 and "\0" not in value
        return known and (value.startswith(self._root + "/") or os.path.exists(value))

    def at_end(self, out: str) -> Iterator[dict[str, Any]]:
        """Rows that the end knows better: places that the run made, data left for now, and what the run wrote to.

        ``out`` is the receipt, which is made later. A bare word is never a place by itself, whatever folder has its
        name: `flash` in a folder `flash` chooses what runs.
        """
        absent = self._absent.items()
        outputs = {
            option: value
            for option, value in absent
            if os.path.exists(value) or out.startswith(os.path.abspath(value) + os.sep)
        }
        outputs |= {option: place for option, place in self._places.items() if place == out}
        for option, value in outputs.items():
            yield {"option": option, "name": within(self._root, value), "kind": "output"}
        for row, path, before in self._before:
            filled = before == "" and _state(row, path) != before
            if row["kind"] == "folder" and "/" in path and (filled or os.path.dirname(out) == os.path.abspath(path)):
                yield {"option": row["option"], "name": row["name"], "kind": "output"}
            elif _state(row, path) != before:
                yield {name: value for name, value in row.items() if name != "sha256"}
            elif "sha256" not in row and before is not None:
                yield row | {"sha256": _sampled(path, row["bytes"])}

    def _file(self, option: str, path: str) -> None:
        name = within(self._root, path)
        if (option, name) in self._seen:
            return
        self._seen.add((option, name))
        if len(self.rows) >= MAX_ROWS:
            self.over = True
            return
        try:
            status = os.stat(path)
            row: dict[str, Any] = {"option": option or None, "name": name, "kind": "data", "bytes": status.st_size}
            self.rows.append(row)
            if not configuration.is_config(path):
                self._before.append((row, path, (status.st_size, status.st_mtime_ns)))
            if status.st_size > _AT_ONCE:
                return
            with open(path, "rb") as stream:
                raw = stream.read()
        except OSError:
            return
        row["sha256"] = hashlib.sha256(raw).hexdigest()
        if configuration.is_config(path):
            row["kind"] = "config"
            self._settings(row, option, path, raw)

    def _settings(self, row: dict[str, Any], option: str, path: str, raw: bytes) -> None:
        flat = configuration.file_settings(path, raw)
        if flat is None:
            return
        row["flat"] = flat
        self.composes |= any(key == "defaults" or key.startswith("defaults.") for key in flat)
        for key, text in flat.items():
            self.variables.update(re.findall(r"\$\{(?:oc\.env:|env:)?([A-Z_][A-Z0-9_]*)\b", text))
            # A file that this one includes, or that it names a tokenizer or a preset by.
            self.take(f"{option}.{key}" if option else key, text, only_config=True, beside=os.path.dirname(path))
        for key in flat:
            self._absent.pop(f"{option}.{key}" if option else key, None)

    def _listing(self, option: str, name: str) -> None:
        row: dict[str, Any] = {"option": option or None, "name": within(self._root, name), "kind": "folder"}
        listed = _state(row, name)
        if listed is not None:
            row |= {"sha256": hashlib.sha256(listed.encode("utf-8", "surrogatepass")).hexdigest()}
        self._before.append((row, name, listed))
        if len(self.rows) < MAX_ROWS:
            self.rows.append(row)
        else:
            self.over = True


def _state(row: Mapping[str, Any], path: str) -> Any:
    """What shows that a file or a folder was written to: size and time, or names and sizes."""
    if row["kind"] == "folder":
        files = _inside(path) if os.path.isdir(path) else _matches(path)
        if files is None:
            return None
        return "".join(f"{name}\0{size}\0{_settings(path, name, len(files))}\n" for name, size in sorted(files))
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _values(text: str) -> Iterator[str]:
    """The values of an option that may be a path: one, several that were repeated, or the items of a list."""
    for value in text.split(THEN):
        items = value[1:-1].split(", ") if value.startswith("[") and value.endswith("]") else [value]
        yield from (item.strip("'\"") for item in items[:100] if 0 < len(item) < 1000 and "\0" not in item)


def _places(value: str, beside: str) -> Iterator[str]:
    """Where a path may lie: as given, beside the file that names it, without `:argument`, after `@`."""
    whole = os.path.expanduser(value)
    yield whole
    if beside:
        yield os.path.join(beside, whole)
    if ".py:" in whole:
        yield whole.partition(":")[0]
    if whole.startswith("@"):
        yield whole[1:]


def _settings(folder: str, name: str, listed: int) -> str:
    """Of a configuration in a small folder its digest: an edit need not change its size."""
    path = os.path.join(folder, name)
    if listed > _MAX_FILES or not configuration.is_config(name):
        return ""
    try:
        with open(path, "rb") as stream:
            return hashlib.sha256(stream.read(configuration.MAX_FILE_BYTES)).hexdigest()
    except OSError:
        return ""


def _inside(folder: str) -> list[tuple[str, int]] | None:
    """Names below a folder with their sizes; None where there are too many, or it cannot be read."""
    files: list[tuple[str, int]] = []
    waiting = [""]
    until = time.perf_counter() + _SECONDS
    while waiting:
        if time.perf_counter() > until:
            return None
        below = waiting.pop()
        try:
            with os.scandir(os.path.join(folder, below)) as entries:
                for entry in entries:
                    name = os.path.join(below, entry.name)
                    if entry.name.startswith(".") or entry.name == "__pycache__":
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(name)
                    else:
                        files.append((name, entry.stat().st_size))
                    if len(files) + len(waiting) > _LISTED:
                        return None
        except OSError:
            return None
    return files


def _matches(pattern: str) -> list[tuple[str, int]] | None:
    import glob
    from itertools import islice

    paths = list(islice(glob.iglob(pattern), _LISTED + 1))
    try:
        files = [(os.path.basename(path), os.path.getsize(path)) for path in paths]
    except OSError:
        return None
    return files if 0 < len(files) <= _LISTED else None


def _sampled(path: str, size: int) -> str:
    """The digest of a file; of a large one that of its size and of samples over its whole length."""
    whole = hashlib.sha256()
    with open(path, "rb") as stream:
        if size <= MAX_BYTES:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        whole.update(str(size).encode())
        for number in range(_SAMPLES):
            stream.seek((size - (1 << 20)) * number // (_SAMPLES - 1))
            whole.update(stream.read(1 << 20))
    return whole.hexdigest()
