"""Installed distributions: all by name and version, the digest of each, and which of them a checkout shadows.

At the start names and versions alone, from the heads of their metadata. At the end, digests from their lists of files
(RECORD), and a comparison of those lists with the files that were really imported: where a module comes from another
folder than its wheel's, the wheel is shadowed, and its digest is that of the imported files.
"""

from __future__ import annotations

import os
import sys

from receipts.emit.files import sha256
from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.probing import ProbeOutput

NAME = "wheels"
MAY_BLOCK = True
RANKS = "host"
LIMIT_SECONDS = 10.0
MAX_RECORD = 64 << 20
# What a package brings along for itself is not installed: setuptools puts its own on the path when it is imported, as
# torch.compile does, so that compiling would change the wheels.
_VENDORED = ("_vendor", "_vendored", "_distutils_hack")
# Written by the installer and not by who built the wheel.
_INSTALLERS = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json")


class InstalledWheel:
    """One installed distribution: its name, its version, its metadata's folder, and the root that it is in."""

    __slots__ = ("folder", "name", "root", "version")

    def __init__(self, name: str, version: str, folder: str, root: str) -> None:
        self.name = name
        self.version = version
        self.folder = folder
        self.root = root

    def record(self) -> list[tuple[str, str]]:
        """Files and digests as the wheel lists them; empty where it has no list."""
        import csv

        path = os.path.join(self.folder, "RECORD")
        try:
            if os.path.getsize(path) > MAX_RECORD:
                return []
            with open(path, encoding="utf-8", errors="replace", newline="") as stream:
                return [(row[0].replace("\\", "/"), row[1]) for row in csv.reader(stream) if len(row) > 1]
        except (OSError, csv.Error):
            return []

    @property
    def editable(self) -> bool:
        """Whether the installer was told to leave the files where they are."""
        if self.folder.endswith(".egg-info"):
            return not imported.is_installed(self.folder + os.sep)
        info = self._origin().get("dir_info")
        return isinstance(info, dict) and info.get("editable") is True

    def checkouts(self) -> list[str]:
        """The folders that an editable installation points to."""
        from urllib.parse import unquote, urlsplit

        if self.folder.endswith(".egg-info"):
            return [os.path.realpath(self.root)]
        try:
            address = urlsplit(str(self._origin().get("url", "")))
        except ValueError:
            return []
        return [os.path.realpath(unquote(address.path))] if address.scheme == "file" else []

    def _origin(self) -> dict[str, Any]:
        import json

        try:
            with open(os.path.join(self.folder, "direct_url.json"), encoding="utf-8") as stream:
                origin = json.loads(stream.read(1 << 16))
        except (OSError, ValueError):
            return {}
        return origin if isinstance(origin, dict) else {}

    def __repr__(self) -> str:
        return f"InstalledWheel({self.name!r}, {self.version!r})"


def at_start(stated: ProbeOutput) -> None:
    """State every installed distribution by its version, and that these are all."""
    for wheel in installed():
        stated.wheel(wheel.name, wheel.version)
    stated.complete("wheels")


def at_end(stated: ProbeOutput) -> None:
    """State digests, and which wheels are shadowed."""
    files = imported.module_files()
    wanted = {imported.relative_path(name, path): (name, path) for name, path in files.items() if name != "__main__"}
    own = imported.project_files(files)
    for wheel in installed():
        record, root = wheel.record(), os.path.realpath(wheel.root)
        # Modules that this wheel holds and that were imported from elsewhere, with their files.
        items = {path: wanted[path] for path, _ in record if path in wanted}
        shadow = {
            name: file
            for path, (name, file) in items.items()
            if not imported.is_installed(file) and os.path.realpath(file) != os.path.join(root, *path.split("/"))
        }
        if wheel.editable and not shadow:
            places = tuple(place + os.sep for place in wheel.checkouts())
            modules = ((name, path) for name, path in own.items() if name != "__main__")
            shadow = {name: path for name, path in modules if os.path.realpath(path).startswith(places)}
        if shadow or wheel.editable:
            stated.wheel(wheel.name, wheel.version, digest=_digest(stated, shadow), editable=True)
            words = f"{wheel.name} {wheel.version} is installed from a checkout, and nothing of it was imported"
            if shadow:
                name, path = min(shadow.items())
                top = path[: -len(imported.relative_path(name, path))].rstrip(os.sep)
                words = f"{wheel.name}: {len(shadow)} modules come from the checkout {top}, and not from wheel "
                words += wheel.version
            stated.note(words)
        elif listed := digest(record):
            stated.wheel(wheel.name, wheel.version, digest=listed)


def installed() -> list[InstalledWheel]:
    """Distributions on the interpreter's path, in order of their names; of two of one name the first is in force."""
    wheels: dict[str, InstalledWheel] = {}
    for root in (root or "." for root in dict.fromkeys(sys.path)):
        try:
            names = os.listdir(root) if os.path.basename(os.path.normpath(root)) not in _VENDORED else []
        except OSError:
            continue
        for name in names:
            folder = os.path.join(root, name)
            head = _head(folder) if name.endswith((".dist-info", ".egg-info")) else {}
            if head.get("Name") and head.get("Version"):
                wheel = InstalledWheel(head["Name"], head["Version"], folder, root)
                wheels.setdefault(wheel.name.lower().replace("-", "_").replace(".", "_"), wheel)
    return [wheels[key] for key in sorted(wheels)]


def version(name: str) -> str | None:
    """The version of one installed distribution; None where it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _head(folder: str) -> dict[str, str]:
    """Name and version, which stand at the head of the metadata."""
    # An .egg-info may be a file, of the oldest kind.
    path = (
        folder
        if os.path.isfile(folder)
        else os.path.join(folder, "METADATA" if folder.endswith(".dist-info") else "PKG-INFO")
    )
    fields: dict[str, str] = {}
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            for line in stream.read(1 << 12).splitlines():
                name, sign, value = line.partition(":")
                if not sign or {"Name", "Version"} <= fields.keys():
                    break
                if name in ("Name", "Version"):
                    fields[name] = value.strip()
    except OSError:
        return {}
    return fields


def digest(record: list[tuple[str, str]]) -> str | None:
    """One digest of a wheel's list of files; the same for two installations of one build, wherever they stand."""
    import hashlib

    lines = sorted(
        f"{path}\0{sha}\n"
        for path, sha in record
        # Scripts name the interpreter's folder; files without a digest were made on the spot.
        if "=" in sha and not path.startswith(("../", "/")) and path.rpartition("/")[2] not in _INSTALLERS
    )
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}" if lines else None


def _digest(stated: ProbeOutput, shadow: dict[str, str]) -> str | None:
    try:
        digests = {name: sha256(path) for name, path in shadow.items()}
    except OSError as error:
        stated.note(f"an imported file could not be read: {error.strerror}")
        return None
    return f"sha256:{imported.digest_of_files(digests)}" if digests else None
