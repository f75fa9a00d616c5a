"""Which known set of versions a launch ran on: a documented one, a validated one, both, or neither."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from receipts.axes.lane import Lane, Lineage, fits
from receipts.axes.switches import LOADED, loaded_over

if TYPE_CHECKING:
    from receipts.receipt import Parsed

State = Literal["documented", "validated", "documented and validated", "neither"]


class LineageMatch(NamedTuple):
    """How a launch's versions relate to the lineages of its lane.

    ``nearest`` is the lineage that it ran on, else the one from which the fewest versions differ; ``differs`` has the
    launch's own versions of those: empty for one that is not installed, None if it is not stated.
    """

    state: State
    nearest: Lineage
    differs: Mapping[str, str | None]

    def __str__(self) -> str:
        if self.state != "neither":
            return f"{self.state}: {self.nearest.name}"
        gaps = ", ".join(
            f"{name} {'not stated' if version is None else version or 'not installed'} "
            f"(there {self.nearest.wheels[name]})"
            for name, version in self.differs.items()
        )
        return f"neither documented nor validated; nearest {self.nearest.name}: {gaps}"


class Versions:
    """What a launch states of its versions: wheels, and leaves such as ``platform.cudnn``."""

    def __init__(self, wheels: Mapping[str, Any] | None, get: Callable[[str], Any]) -> None:
        stated = wheels or {}
        self._spelled = {_spelling(key): key for key in stated}
        self._wheels = {
            _spelling(key): str(getattr(item, "version", item)) for key, item in stated.items() if item is not True
        }
        installed = {f"wheels.{name.replace('_', '-')}": version for name, version in self._wheels.items()}
        libraries = {library: get(library) for library in LOADED}
        self._loaded = loaded_over({**installed, **libraries})
        self._absent = "" if stated.get("complete") is True else None
        self._get = get

    def of(self, name: str) -> str | None:
        """The version of a distribution or leaf; empty if it is not installed, None if it is not stated.

        Of a distribution whose library was loaded from elsewhere, what was loaded.
        """
        if "." in name:
            value = self._get(name)
            return None if value is None else str(value)
        return self._loaded.get(f"wheels.{name.replace('_', '-').lower()}") or self.installed(name)

    def installed(self, name: str) -> str | None:
        """The version of a distribution that is installed, loaded or not."""
        return self._wheels.get(_spelling(name), self._absent)

    def leaf(self, name: str) -> str:
        """The leaf that states a version."""
        return name if "." in name else f"wheels.{self._spelled.get(_spelling(name), name)}"

    def gaps(self, lineage: Lineage) -> dict[str, str | None]:
        """The versions that are not those of a lineage."""
        versions = {name: self.of(name) for name in lineage.wheels}
        return {
            name: version
            for name, version in versions.items()
            if not version or not fits(version, lineage.wheels[name])
        }


def lineage_of(lane: Lane, versions: Versions) -> LineageMatch | None:
    """The lineage of a launch; None if its lane names none."""
    known = (*lane.validated, *lane.documented)
    if not known:
        return None
    documented = next((item for item in lane.documented if not versions.gaps(item)), None)
    validated = next((item for item in lane.validated if not versions.gaps(item)), None)
    match = validated or documented
    if match is not None:
        state: State = "validated" if documented is None else "documented"
        return LineageMatch("documented and validated" if validated and documented else state, match, {})
    nearest = min((*lane.documented, *lane.validated), key=lambda item: len(versions.gaps(item)))
    return LineageMatch("neither", nearest, versions.gaps(nearest))


def ran_on(parsed: Parsed, lane: Lane) -> LineageMatch | None:
    """The lineage of a receipt; None if its lane names none."""
    return lineage_of(lane, Versions(parsed.receipt.wheels, parsed.stated.get))


def _spelling(name: str) -> str:
    return name.lower().replace("-", "_")
