"""What producers call things: tables as data, one file a producer, checked by ``tables/schema.json`` in the tests.

``line`` maps the labels of a step line, ``tracker`` the names that a framework logs to TensorBoard and W&B,
``configuration`` and ``arguments`` the names of its settings, and ``statements`` the lines that state one fact.
``record`` describes a line that needs no reader of its own. A table is the only place for a name. It lies in the folder
of its producer below ``receipts/readers``, or, without a producer, in ``receipts/ingest/tables``.

``sources.toml`` of a folder says of its sources and frameworks what the engine has to know, which names none of them.
"""

from __future__ import annotations

import importlib.util
import pkgutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.base.plugins import named_elsewhere

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

GROUP: Final = "receipts.readers"
_TRAITS: Final = "sources.toml"


@dataclass(frozen=True, slots=True)
class Label:
    """What the figure behind a label is: a field of a step or a reader's own name, and its divisor to SI units."""

    field: str
    divisor: float = 1.0


class SourceTraits(NamedTuple):
    """What a source's readings are. ``producer`` wrote the file, where the source's name is that of a format.

    ``strength`` is ``printed`` by a program of itself, ``asked`` of it before it ran, or ``noted`` by people. ``host``
    is the framework whose loop its lines show; with ``libraries`` other loops that run on these print the form, too.
    ``formula`` is behind its MFU.
    """

    producer: str = ""
    strength: str = "printed"
    host: str = ""
    libraries: tuple[str, ...] | None = None
    formula: str = ""


class FrameworkTraits(NamedTuple):
    """What a framework does, by the name that lanes have for it. ``like`` is the one whose switches it takes.

    ``compiler`` makes its programs. ``placed``: arrays are placed by annotation; elsewhere a degree of sharding names
    no partition of a compiler. ``reads_beside``: its loop reads the last step's figures while the next one runs, so
    that what stops a step is inside its program. ``switches`` are what makes it print a leaf.
    """

    like: str = ""
    compiler: str = ""
    placed: bool = False
    reads_beside: bool = False
    switches: Mapping[str, str] = MappingProxyType({})


@cache
def producers() -> tuple[str, ...]:
    """The packages of readers: the folders of `receipts.readers`, and what other distributions name in that group."""
    spec = importlib.util.find_spec(GROUP)
    places = spec.submodule_search_locations if spec is not None else None
    own = sorted(item.name for item in pkgutil.iter_modules(places, f"{GROUP}.") if item.ispkg) if places else []
    return (*own, *named_elsewhere(GROUP))


@cache
def order() -> Mapping[str, int]:
    """The place of a line reader's readings among those of a file, by its source, or by its source and its class."""
    spec = importlib.util.find_spec(GROUP)
    place = resources.files(GROUP) / "order.toml" if spec is not None else None
    if place is None or not place.is_file():
        return MappingProxyType({})
    sources: list[str] = tomllib.loads(place.read_text(encoding="utf-8"))["sources"]
    return MappingProxyType({source: at for at, source in enumerate(sources)})


@cache
def _places() -> Mapping[str, Traversable]:
    """Where each table lies: with its reader, or, where several readers share it, with the engine."""
    places: dict[str, Traversable] = {}
    for folder in (resources.files("receipts.ingest") / "tables", *map(resources.files, producers())):
        for place in folder.iterdir():
            if not place.name.endswith(".toml") or place.name == _TRAITS:
                continue
            name = place.name.removesuffix(".toml")
            if name in places:
                raise ValueError(f"two tables are called {name}: {places[name]} and {place}")
            places[name] = place
    return MappingProxyType(places)


@cache
def _traits() -> tuple[Mapping[str, SourceTraits], Mapping[str, FrameworkTraits]]:
    sources: dict[str, dict[str, Any]] = {name: {"host": host} for name, host in hosts().items()}
    frameworks: dict[str, FrameworkTraits] = {}
    for folder in (resources.files("receipts.ingest") / "tables", *map(resources.files, producers())):
        if (place := folder / _TRAITS).is_file():
            declared = tomllib.loads(place.read_text(encoding="utf-8"))
            for name, entry in declared.get("sources", {}).items():
                sources[name] = sources.get(name, {}) | entry
            frameworks |= {name: FrameworkTraits(**entry) for name, entry in declared.get("frameworks", {}).items()}
    return {name: SourceTraits(**entry) for name, entry in sources.items()}, frameworks


def source(name: str) -> SourceTraits:
    """The traits of a source."""
    return _traits()[0].get(name, SourceTraits())


def framework(name: str) -> FrameworkTraits:
    """The traits of a framework."""
    return _traits()[1].get(name, FrameworkTraits())


@cache
def table(framework: str) -> Mapping[str, Any]:
    """The file of one framework as it is written."""
    return MappingProxyType(tomllib.loads(_places()[framework].read_text(encoding="utf-8")))


def anchors(framework: str) -> tuple[bytes, ...]:
    """Words of which a line must have one for the framework's reader to see it."""
    return tuple(word.encode() for word in table(framework)["anchors"])


@cache
def tables() -> tuple[str, ...]:
    """The frameworks that have a table, by name."""
    return tuple(sorted(_places()))


@cache
def loops() -> tuple[str, ...]:
    """The tables that describe a whole record: those loops have no reader of their own."""
    return tuple(name for name in tables() if "record" in table(name))


@cache
def hosts() -> Mapping[str, str]:
    """The framework of each of those loops by the source of its readings, where the lines are one framework's."""
    records = {source_of(name): table(name)["record"] for name in loops()}
    return MappingProxyType(
        {source: record["framework"] for source, record in records.items() if "framework" in record}
    )


def source_of(name: str) -> str:
    """The source of readings by a table that describes a loop."""
    return name.replace("_", "-")


@cache
def line(framework: str) -> Mapping[str, Label]:
    """The labels of a framework's step lines, the preferred one of a field first."""
    return labels(table(framework).get("line", {}))


def labels(entries: Mapping[str, Any]) -> Mapping[str, Label]:
    """Labels as a table writes them: a field, or a field and a divisor."""
    return MappingProxyType(
        {label: Label(entry) if isinstance(entry, str) else Label(*entry) for label, entry in entries.items()}
    )
