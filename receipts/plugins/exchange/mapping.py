"""Mappings: which column or JSON path of a table is which field of a receipt.

What a mapping file may say is what these models hold; ``docs/import-notebook.md`` explains every key.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, model_validator
from pydantic_core import PydanticCustomError

from receipts.base.untrusted_text import LinearPattern, compile_linear
from receipts.ingest.leaves import kind
from receipts.plugins.exchange.quantity import UNITS, Several, problem_of
from receipts.receipt.leaves import find_leaf
from receipts.receipt.problems import read_toml

Form = Literal["text", "number", "integer", "switch", "list", "date"]
Otherwise = Literal["keep", "note", "refuse", "nothing"]
PLACE = re.compile(r"\{([^{}]+)\}")  # of a template


def _refused(what: str) -> PydanticCustomError:
    return PydanticCustomError("mapping", "{what}", {"what": what})


def _texts(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple(map(str, value)) if isinstance(value, list) else value


def _lower(value: Any) -> Any:
    value = _texts(value)
    return tuple(text.lower() for text in value) if isinstance(value, tuple) else value


def _lower_keys(value: Any) -> Any:
    return {str(key).lower(): item for key, item in value.items()} if isinstance(value, dict) else value


def _leaf(path: str) -> str:
    if find_leaf(path) is None:
        raise _refused(f"{path!r} is not a leaf of the receipt; see: receipts axes")
    return path


def _unit(unit: str) -> str:
    if unit not in UNITS:
        raise _refused(f"{unit!r} is not a unit; known: {', '.join(filter(None, UNITS))}")
    return unit


def _pattern(text: Any, *, ignore_case: bool = False) -> LinearPattern:
    try:
        return compile_linear(str(text), ignore_case=ignore_case)
    except ValueError as error:
        raise _refused(f"{text!r} is not a pattern: {error}") from None


Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Choices = dict[str, Annotated[tuple[str, ...], BeforeValidator(_lower)]]
Column = Annotated[LinearPattern, PlainValidator(_pattern)]
Pattern = tuple[Annotated[LinearPattern, PlainValidator(lambda text: _pattern(text, ignore_case=True))], Any]


class MappingTable(BaseModel):
    """A table of a mapping file: other keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Notebook(MappingTable):
    """The source. ``undated`` is the date of rows that have none: when the notebook was read."""

    name: str
    launch: str
    undated: Annotated[date, Field(strict=True)]
    rows: str = ""
    context: str = ""
    dated: Texts = ()
    requires: Texts = ()


class MappedField(MappingTable):
    """How one leaf is read. Several fields may have one target: the first that finds something states it."""

    to: Annotated[str, BeforeValidator(_leaf)]
    from_: Texts = Field(default=(), alias="from")
    template: str = ""
    value: Any = None
    map: Annotated[dict[str, Any], BeforeValidator(_lower_keys)] = {}
    patterns: tuple[Pattern, ...] = ()
    otherwise: Otherwise = Field(default="keep", alias="else")
    form: Form = Field(default="text", alias="as")
    unit: Annotated[str, BeforeValidator(_unit)] = ""
    several: Several = "no"
    rounded: bool = False
    binary: bool = False
    take: Literal["all", "first", "last"] = "all"
    split: str = ""
    join: str = ""
    when: Choices = {}
    unless: Choices = {}

    @model_validator(mode="before")
    @classmethod
    def _one_source(cls, table: Any) -> Any:
        if isinstance(table, dict) and sum(key in table for key in ("from", "template", "value")) != 1:
            raise _refused("it has not exactly one of from, template, value; say where the value comes from")
        if not isinstance(table, dict):
            return table
        # A value that a map does not know is not one of the field; without a map the leaf holds the value itself.
        words = {"else": "note"} if {"map", "patterns"} & table.keys() else {}
        held = {} if "map" in table or find_leaf(str(table.get("to"))) is None else {"as": kind(str(table["to"]))}
        return {**words, **held, **table}


class Spread(MappingTable):
    """An object or list of the table whose entries become keys of an open map."""

    from_: str = Field(default="", alias="from")
    to: Literal["flags", "features", "patches", "wheels"]
    skip: Texts = ()
    rename: dict[str, str] = {}


class Rest(MappingTable):
    """What becomes of columns that no entry names: each is a key of an open map. Those at and below ``from_``."""

    from_: Annotated[Texts, Field(min_length=1)] = Field(alias="from")
    to: Literal["flags", "features"]


class MemoryColumns(MappingTable):
    """A list of memory figures. ``kinds`` name the leaf that a kind of figure is; ``phases`` the phase of a place."""

    from_: str = Field(alias="from")
    chips: str
    value: str = "value"
    unit: str = "unit"
    where: str = "where"
    kind: str = "kind"
    kinds: tuple[Pattern, ...] = ()
    phases: tuple[Pattern, ...] = ()
    over: tuple[Pattern, ...] = ()


class Melt(MappingTable):
    """Columns that hold one figure of several variants: each becomes a row, with the variant under ``name``.

    ``beside`` names further figures of a variant, each by its column, in which ``{}`` represents the variant.
    """

    pattern: Column
    name: str = "Variant"
    value: str = "value"
    beside: dict[str, str] = {}

    @model_validator(mode="after")
    def _has_group(self) -> Melt:
        if "(" not in self.pattern.pattern:
            raise _refused("its pattern has no group; write a pattern of columns whose group is the variant")
        return self


class Transposed(MappingTable):
    """Tables whose columns are the runs: the named groups of the pattern of a column are cells of its row.

    The first cell of each row is the name of a cell, and the name of the first column is a cell too: ``corner``.
    """

    pattern: Column
    corner: str = "corner"


class RowCheck(MappingTable):
    """``left`` equals ``right``, or ``constant`` has one value where the columns ``within`` are equal.

    ``names`` are columns by the name that the formulas use. Those in ``exact`` are counts, without rounding; those
    ``truncated`` are cut after their last digit, and not rounded. ``slack`` is a share by which both may differ.
    """

    says: str = "the check"
    names: dict[str, Texts] = {}
    left: str = ""
    right: str = ""
    constant: str = ""
    within: Texts = ()
    exact: Texts = ()
    truncated: Texts = ()
    slack: float = 0.0

    @model_validator(mode="after")
    def _arithmetic(self) -> RowCheck:
        stated = {key: formula for key in ("left", "right", "constant") if (formula := getattr(self, key))}
        if set(stated) not in ({"left", "right"}, {"constant"}):
            raise _refused("it has neither left and right, nor a constant; state one of them")
        for key, formula in stated.items():
            if problem := problem_of(formula, self.names):
                raise _refused(f"{key}: {problem}; write arithmetic on the names")
        return self


class Mapping(MappingTable):
    """A mapping file."""

    notebook: Notebook
    fields: tuple[MappedField, ...] = Field(default=(), alias="field")
    spreads: tuple[Spread, ...] = Field(default=(), alias="spread")
    memory: MemoryColumns | None = None
    notes: dict[str, str] = {}
    rest: Rest | None = None
    aliases: dict[str, Texts] = {}
    columns: dict[str, Column] = {}
    checks: tuple[RowCheck, ...] = Field(default=(), alias="check")
    melt: Melt | None = None
    transposed: Transposed | None = None

    @property
    def named(self) -> frozenset[str]:
        """Every path that an entry names."""
        templates = (self.notebook.launch, self.notebook.context, *(item.template for item in self.fields))
        places = {place.removesuffix("?") for text in templates for place in PLACE.findall(text)}
        read = {path for item in self.fields for path in (*item.from_, *item.when, *item.unless)}
        read |= {item.from_ for item in self.spreads} | {*self.notebook.dated, *self.notes.values()}
        if self.memory is not None:
            read |= {self.memory.from_, self.memory.chips}
        read |= {name for names in self.aliases.values() for name in names} | self.aliases.keys()
        read |= {name for check in self.checks for names in check.names.values() for name in names}
        of_page = {"page", "path", "sections", "caption", "lead", *(["section"] if self.notebook.requires else ())}
        return frozenset(places | read | set(self.columns) | of_page)


def read_mapping(path: Path) -> Mapping:
    """Read and check a mapping. Raises InputError with everything that is wrong, each with its place."""
    return read_toml(path, Mapping, "docs/import-notebook.md")
