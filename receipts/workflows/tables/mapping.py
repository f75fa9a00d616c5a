"""Mappings: which column or JSON path of a table is which field of a receipt.

``docs/import-notebook.md`` explains every key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Table
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from receipts.base.linear_patterns import LinearPattern
from receipts.workflows.tables.prepare import Melt
from receipts.workflows.tables.quantity import Several
from receipts.workflows.tables.recomputed import RowCheck

Form = Literal["text", "number", "integer", "list", "date"]
Otherwise = Literal["keep", "note", "refuse", "nothing"]
Pattern = tuple[LinearPattern, Any]
PLACE = re.compile(r"\{([^{}]+)\}")  # of a template


@dataclass(frozen=True, slots=True)
class MappedField:
    """How one leaf is read. Several fields may have one target: the first that finds something states it."""

    to: str
    from_: tuple[str, ...] = ()
    template: str = ""
    value: Any = None
    map: Table[str, Any] = field(default_factory=dict)
    patterns: tuple[Pattern, ...] = ()
    otherwise: Otherwise = "keep"
    form: Form = "text"
    unit: str = ""
    several: Several = "no"
    rounded: bool = False
    take: Literal["all", "first", "last"] = "all"
    split: str = ""
    join: str = ""
    when: Table[str, tuple[str, ...]] = field(default_factory=dict)
    unless: Table[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spread:
    """An object or list of the table whose entries become keys of an open map."""

    from_: str
    to: Literal["flags", "features", "patches", "wheels"]
    skip: tuple[str, ...] = ()
    rename: Table[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rest:
    """What becomes of columns that no entry names: each is a key of an open map. Those at and below ``from_``."""

    from_: tuple[str, ...]
    to: Literal["flags", "features"]


@dataclass(frozen=True, slots=True)
class MemoryColumns:
    """A list of memory figures. ``kinds`` name the leaf that a kind of figure is; ``phases`` the phase of a place."""

    from_: str
    chips: str
    value: str = "value"
    unit: str = "unit"
    where: str = "where"
    kind: str = "kind"
    kinds: tuple[Pattern, ...] = ()
    phases: tuple[Pattern, ...] = ()
    over: tuple[Pattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping file. ``undated`` is the date of rows that have none: when the notebook was read."""

    source: str
    name: str
    launch: str
    context: str
    dated: tuple[str, ...]
    undated: date
    rows: str = ""
    fields: tuple[MappedField, ...] = ()
    spreads: tuple[Spread, ...] = ()
    memory: MemoryColumns | None = None
    notes: Table[str, str] = field(default_factory=dict)
    rest: Rest | None = None
    requires: tuple[str, ...] = ()
    aliases: Table[str, tuple[str, ...]] = field(default_factory=dict)
    columns: Table[str, LinearPattern] = field(default_factory=dict)
    checks: tuple[RowCheck, ...] = ()
    melt: Melt | None = None

    @property
    def named(self) -> frozenset[str]:
        """Every path that an entry names."""
        templates = (self.launch, self.context, *(item.template for item in self.fields))
        places = {place.removesuffix("?") for text in templates for place in PLACE.findall(text)}
        read = {path for item in self.fields for path in (*item.from_, *item.when, *item.unless)}
        read |= {item.from_ for item in self.spreads} | {*self.dated, *self.notes.values()}
        if self.memory is not None:
            read |= {self.memory.from_, self.memory.chips}
        read |= {name for names in self.aliases.values() for name in names} | self.aliases.keys()
        read |= {name for check in self.checks for names in check.names.values() for name in names}
        return frozenset(
            places
            | read
            | set(self.columns)
            | {"page", "path", "sections", "caption", *(["section"] if self.requires else ())}
        )
