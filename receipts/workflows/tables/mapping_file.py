"""Reads a mapping file and checks it whole: every target is a leaf of the receipt, every pattern compiles, and every
key is known.
"""

from __future__ import annotations

from collections.abc import Mapping as Table
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any, get_args

from receipts.base.errors import InputError, Problem
from receipts.base.files import read_small
from receipts.base.linear_patterns import LinearPattern, compile_linear
from receipts.base.toml import parse_toml
from receipts.receipt.catalogue import find
from receipts.workflows.tables.mapping import (
    Form,
    MappedField,
    Mapping,
    MemoryColumns,
    Otherwise,
    Pattern,
    Rest,
    Spread,
)
from receipts.workflows.tables.prepare import Melt
from receipts.workflows.tables.quantity import UNITS, Several
from receipts.workflows.tables.recomputed import RowCheck, problem_of


def read_mapping(path: Path) -> Mapping:
    """Read and check a mapping. Raises InputError with everything that is wrong, each with its place."""
    try:
        table = parse_toml(read_small(path))
    except OSError as error:
        raise InputError(str(path), [Problem("$", f"it cannot be read: {error.strerror}", "check the path")]) from None
    except ValueError as error:
        raise InputError(str(path), [Problem("$", str(error), "mend the file")]) from None
    reader = _MappingReader(str(path))
    mapping = reader.mapping(table)
    if reader.problems or mapping is None:
        raise InputError(str(path), reader.problems)
    return mapping


_SECTIONS = frozenset({"notebook", "field", "spread", "memory", "notes", "rest", "aliases", "columns", "check", "melt"})
_NOTEBOOK = frozenset({"name", "rows", "launch", "context", "dated", "undated", "requires"})
_RENAMED = {"from": "from_", "as": "form", "else": "otherwise"}
_SPELLED = {new: old for old, new in _RENAMED.items()}


class _MappingReader:
    """Turns tables into values and collects what is wrong with them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def refuse(self, at: str, what: str, do: str) -> None:
        self.problems.append(Problem(at, what, do))

    def known(self, at: str, table: Table[str, Any], keys: frozenset[str]) -> None:
        for key in sorted(set(table) - keys):
            self.refuse(f"{at}.{key}" if at else key, "there is no such key", f"known: {', '.join(sorted(keys))}")

    def mapping(self, table: Table[str, Any]) -> Mapping | None:
        self.known("", table, _SECTIONS)
        notebook = table.get("notebook")
        if not isinstance(notebook, dict):
            self.refuse("notebook", "it is missing", "state name, launch and undated under [notebook]")
            return None
        self.known("notebook", notebook, _NOTEBOOK)
        for key in ("name", "launch"):
            if not isinstance(notebook.get(key), str):
                self.refuse(f"notebook.{key}", "it is no text", f"state {key}")
        undated = notebook.get("undated")
        if not isinstance(undated, date):
            do = "state the day on which the notebook was read, such as undated = 2026-05-20"
            self.refuse("notebook.undated", "it is no date", do)
            undated = date.min
        listed = [self._field(f"field[{number}]", item) for number, item in enumerate(table.get("field", ()))]
        spreads = [self._spread(f"spread[{number}]", item) for number, item in enumerate(table.get("spread", ()))]
        memory = self._memory(table["memory"]) if "memory" in table else None
        rest = self._rest(table["rest"]) if "rest" in table else None
        notes = table.get("notes", {})
        columns = self._columns(table.get("columns", {}))
        checks = tuple(self._check(f"check[{number}]", item) for number, item in enumerate(table.get("check", ())))
        if self.problems:
            return None
        return Mapping(
            source=self.source,
            name=notebook["name"],
            rows=notebook.get("rows", ""),
            launch=notebook["launch"],
            context=notebook.get("context", ""),
            dated=_texts(notebook.get("dated", ())),
            undated=undated,
            fields=tuple(item for item in listed if item is not None),
            spreads=tuple(item for item in spreads if item is not None),
            memory=memory,
            notes=notes,
            rest=rest,
            requires=_texts(notebook.get("requires", ())),
            aliases={str(name): _texts(names) for name, names in table.get("aliases", {}).items()},
            columns=columns,
            checks=checks,
            melt=self._melt(table["melt"]) if "melt" in table else None,
        )

    def _field(self, at: str, table: Table[str, Any]) -> MappedField | None:
        names = {_SPELLED.get(item.name, item.name) for item in fields(MappedField)}
        self.known(at, table, frozenset(names))
        to = table.get("to")
        if not isinstance(to, str) or find(to) is None:
            self.refuse(f"{at}.to", f"{to!r} is no leaf of the receipt", "see: receipts axes")
            return None
        at = f"{at} ({to})"
        if sum(key in table for key in ("from", "template", "value")) != 1:
            self.refuse(at, "it has not exactly one of from, template, value", "say where the value comes from")
        for key, allowed in (("as", Form), ("else", Otherwise), ("several", Several)):
            if key in table and table[key] not in get_args(allowed):
                self.refuse(f"{at}.{key}", f"{table[key]!r} is not one of {', '.join(get_args(allowed))}", "")
        if table.get("unit", "") not in UNITS:
            self.refuse(f"{at}.unit", f"{table['unit']!r} is no unit", f"known: {', '.join(filter(None, UNITS))}")
        translated = "map" in table or "patterns" in table
        return MappedField(
            to=to,
            from_=_texts(table.get("from", ())),
            template=table.get("template", ""),
            value=table.get("value"),
            map={str(key).lower(): value for key, value in table.get("map", {}).items()},
            patterns=self._patterns(f"{at}.patterns", table.get("patterns", ())),
            otherwise=table.get("else", "note" if translated else "keep"),
            form=table.get("as", "text"),
            unit=table.get("unit", ""),
            several=table.get("several", "no"),
            rounded=bool(table.get("rounded", False)),
            take=table.get("take", "all"),
            split=table.get("split", ""),
            join=table.get("join", ""),
            when=_choices(table.get("when", {})),
            unless=_choices(table.get("unless", {})),
        )

    def _spread(self, at: str, table: Table[str, Any]) -> Spread | None:
        self.known(at, table, frozenset({"from", "to", "skip", "rename"}))
        to = table.get("to")
        if to not in ("flags", "features", "patches", "wheels"):
            self.refuse(f"{at}.to", f"{to!r} is no open map", "spread to flags, features, patches or wheels")
            return None
        return Spread(str(table.get("from", "")), to, _texts(table.get("skip", ())), dict(table.get("rename", {})))

    def _rest(self, table: Table[str, Any]) -> Rest | None:
        self.known("rest", table, frozenset({"from", "to"}))
        if not table.get("from"):
            self.refuse("rest.from", "it is missing", "name the columns that hold settings")
        to = table.get("to")
        if to not in ("flags", "features"):
            self.refuse("rest.to", f"{to!r} is neither flags nor features", 'write to = "features"')
            return None
        return Rest(_texts(table.get("from", ())), to)

    def _columns(self, table: Table[str, Any]) -> dict[str, LinearPattern]:
        columns: dict[str, LinearPattern] = {}
        for name, pattern in table.items():
            try:
                columns[str(name)] = compile_linear(str(pattern))
            except ValueError as error:
                self.refuse(f"columns.{name}", f"{pattern!r} is no pattern: {error}", "mend it")
        return columns

    def _melt(self, table: Table[str, Any]) -> Melt | None:
        self.known("melt", table, frozenset({"pattern", "name", "value"}))
        columns = self._columns({"pattern": table.get("pattern", "")})
        if not columns or "(" not in str(table.get("pattern")):
            self.refuse("melt.pattern", "it has no group", "write a pattern of columns whose group is the variant")
            return None
        return Melt(columns["pattern"], str(table.get("name", "Variant")), str(table.get("value", "value")))

    def _check(self, at: str, table: Table[str, Any]) -> RowCheck:
        self.known(at, table, frozenset(item.name for item in fields(RowCheck)))
        names = {str(name): _texts(columns) for name, columns in table.get("names", {}).items()}
        formulas = {key: str(table[key]) for key in ("left", "right", "constant") if key in table}
        if set(formulas) not in ({"left", "right"}, {"constant"}):
            self.refuse(at, "it has neither left and right, nor a constant", "state one of them")
        for key, formula in formulas.items():
            if problem := problem_of(formula, names):
                self.refuse(f"{at}.{key}", problem, "write arithmetic on the names")
        return RowCheck(
            says=str(table.get("says", at)),
            names=names,
            within=_texts(table.get("within", ())),
            exact=frozenset(_texts(table.get("exact", ()))),
            truncated=frozenset(_texts(table.get("truncated", ()))),
            slack=float(table.get("slack", 0.0)),
            **formulas,
        )

    def _memory(self, table: Table[str, Any]) -> MemoryColumns | None:
        names = frozenset(_SPELLED.get(item.name, item.name) for item in fields(MemoryColumns))
        self.known("memory", table, names)
        if not isinstance(table.get("from"), str) or not isinstance(table.get("chips"), str):
            self.refuse("memory", "it lacks from or chips", "state the list's path and the path of the chips' count")
            return None
        texts = {key: str(table[key]) for key in ("chips", "value", "unit", "where", "kind") if key in table}
        patterns = {key: self._patterns(f"memory.{key}", table.get(key, ())) for key in ("kinds", "phases", "over")}
        return MemoryColumns(from_=table["from"], **texts, **patterns)  # type: ignore[arg-type]

    def _patterns(self, at: str, entries: Any) -> tuple[Pattern, ...]:
        patterns: list[Pattern] = []
        for number, entry in enumerate(entries):
            if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str):
                self.refuse(f"{at}[{number}]", "it is no pair", 'write ["pattern", value]')
                continue
            try:
                patterns.append((compile_linear(entry[0], ignore_case=True), entry[1]))
            except ValueError as error:
                self.refuse(f"{at}[{number}]", f"{entry[0]!r} is no pattern: {error}", "mend it")
        return tuple(patterns)


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(str(item) for item in value)


def _choices(table: Table[str, Any]) -> dict[str, tuple[str, ...]]:
    return {path: tuple(text.lower() for text in _texts(value)) for path, value in table.items()}
