"""Installed distributions: all by name and version, the digest of each, and which of them a checkout shadows.

At the start names and versions alone, from the heads of their metadata. At the end, digests from their lists of files
(RECORD), and a comparison of those lists with the files that were really imported: where a module comes from another
folder than its wheel's, the wheel is shadowed, and its digest is that of the imported files.
"""

from __future__ import annotations

import os
import sys

from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
        import json

        if self.folder.endswith(".egg-info"):
            return not imported.is_installed(self.folder + os.sep)
        try:
            with open(os.path.join(self.folder, "direct_url.json"), encoding="utf-8") as stream:
                origin = json.loads(stream.read(1 << 16))
        except (OSError, ValueError):
            return False
        info = origin.get("dir_info") if isinstance(origin, dict) else None
        return isinstance(info, dict) and info.get("editable") is True

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
        record = wheel.record()
        shadow = _shadow(wheel, record, wanted)
        if wheel.editable and not shadow:
            shadow = _checkout(wheel, own)
        if shadow or wheel.editable:
            stated.wheel(wheel.name, wheel.version, digest=_digest(stated, shadow), editable=True)
            _tell(stated, wheel, shadow)
        elif listed := digest(record):
            stated.wheel(wheel.name, wheel.version, digest=listed)


def installed() -> list[InstalledWheel]:
    """Distributions on the interpreter's path, in order of their names; of two of one name the first is in force."""
    wheels: dict[str, InstalledWheel] = {}
    for root in dict.fromkeys(sys.path):
        if os.path.basename(os.path.normpath(root or ".")) in _VENDORED:
            continue
        for wheel in _in(root or "."):
            wheels.setdefault(wheel.name.lower().replace("-", "_").replace(".", "_"), wheel)
    return [wheels[key] for key in sorted(wheels)]


def version(name: str) -> str | None:
    """The version of one installed distribution; None where it is not installed."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _in(root: str) -> Iterator[InstalledWheel]:
    try:
        names = os.listdir(root)
    except OSError:
        return
    for name in names:
        if not name.endswith((".dist-info", ".egg-info")):
            continue
        folder = os.path.join(root, name)
        head = _head(folder)
        if head.get("Name") and head.get("Version"):
            yield InstalledWheel(head["Name"], head["Version"], folder, root)


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


def _shadow(wheel: InstalledWheel, record: list[tuple[str, str]], wanted: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Modules that this wheel holds and that were imported from elsewhere, with their files."""
    shadows = {}
    root = os.path.realpath(wheel.root)
    for path, _ in record:
        item = wanted.get(path)
        if item is not None and not imported.is_installed(item[1]):
            name, file = item
            if os.path.realpath(file) != os.path.join(root, *path.split("/")):
                shadows[name] = file
    return shadows


def _checkout(wheel: InstalledWheel, own: dict[str, str]) -> dict[str, str]:
    """Imported modules below the folder that an editable installation points to."""
    places = [os.path.realpath(place) for place in _pointed(wheel)]
    return {
        name: path
        for name, path in own.items()
        if name != "__main__" and any(os.path.realpath(path).startswith(place + os.sep) for place in places)
    }


def _pointed(wheel: InstalledWheel) -> list[str]:
    import json
    from urllib.parse import unquote, urlsplit

    if wheel.folder.endswith(".egg-info"):
        return [wheel.root]
    places = []
    try:
        with open(os.path.join(wheel.folder, "direct_url.json"), encoding="utf-8") as stream:
            address = urlsplit(str(json.loads(stream.read(1 << 16)).get("url", "")))
        if address.scheme == "file":
            places.append(unquote(address.path))
    except (OSError, ValueError, AttributeError):
        return []
    return places


def _digest(stated: ProbeOutput, shadow: dict[str, str]) -> str | None:
    try:
        digests = {name: imported.sha256(path) for name, path in shadow.items()}
    except OSError as error:
        stated.note(f"an imported file could not be read: {error.strerror}")
        return None
    return f"sha256:{imported.digest_of_files(digests)}" if digests else None


def _tell(stated: ProbeOutput, wheel: InstalledWheel, shadow: dict[str, str]) -> None:
    if not shadow:
        stated.note(f"{wheel.name} {wheel.version} is installed from a checkout, and nothing of it was imported")
        return
    name, path = min(shadow.items())
    root = path[: -len(imported.relative_path(name, path))].rstrip(os.sep)
    stated.note(
        f"{wheel.name}: {len(shadow)} modules come from the checkout {root}, and not from wheel {wheel.version}"
    )
