"""What producers call things: tables as data, one file a producer, checked by ``tables/schema.json`` in the tests.

``line`` maps the labels of a step line, ``tracker`` the names that a framework logs to TensorBoard and W&B,
``configuration`` and ``arguments`` the names of its settings, and ``statements`` the lines that state one fact.
``record`` describes a line that needs no reader of its own. A table is the only place for a name. It lies in the folder
of its producer below ``receipts/readers``, or, without a producer, in ``receipts/ingest/tables``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Label:
    """What the figure behind a label is: a field of a step or a reader's own name, and its divisor to SI units."""

    field: str
    divisor: float = 1.0


@cache
def table(framework: str) -> Mapping[str, Any]:
    """The file of one framework as it is written."""
    text = resources.files(__name__).joinpath(f"{framework}.toml").read_text(encoding="utf-8")
    return MappingProxyType(tomllib.loads(text))


def anchors(framework: str) -> tuple[bytes, ...]:
    """Words of which a line must have one for the framework's reader to see it."""
    return tuple(word.encode() for word in table(framework)["anchors"])


@cache
def tables() -> tuple[str, ...]:
    """The frameworks that have a table."""
    names = sorted(place.name for place in resources.files(__name__).iterdir() if place.name.endswith(".toml"))
    return tuple(item.removesuffix(".toml") for item in names)


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
