"""A person's map of their own files: which field of a record is which figure of a step, and which leaf.

`docs/ingest-map.md` explains every key. A map is checked whole when it is read; every mistake is printed with its
line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from receipts.base.errors import InputError, Problem, near
from receipts.base.files import read_small
from receipts.base.units import BYTES, SCALES, SECONDS
from receipts.base.untrusted_text import LinearPattern, compile_linear, parse_toml
from receipts.ingest.evidence.steps import FIELDS
from receipts.ingest.leaves import fitting
from receipts.receipt.leaves import find_leaf, leaves

FORMS: Final[Mapping[str, str]] = {".json": "json", ".jsonl": "json-lines", ".ndjson": "json-lines", ".csv": "csv"}
# What a step may have beside the columns that every reader fills: its number, tokens, and totals since the start.
OWN: Final = ("step", "elapsed_seconds", "tokens", "tokens_total")
TIMES: Final = {"unix": 1.0, "unix_ms": 1e-3}
UNITS: Final[Mapping[str, float]] = {**SECONDS, **BYTES, **SCALES, "%": 0.01, "TFLOP/s": 1.0, **TIMES}
_KEYS: Final = frozenset({"name", "format", "records", "pattern", "delimiter", "steps", "leaves"})
_FIELD_KEYS: Final = frozenset({"from", "unit", "map", "value"})


@dataclass(frozen=True, slots=True)
class MappedField:
    """Where one figure or leaf is read: a field by its path, or one value for all. ``line`` is that of the map."""

    to: str
    source: str = ""
    unit: str = ""
    words: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class FileMap:
    """How the files of one name are read. ``records`` is the path of a JSON document's list of records."""

    name: str
    form: str
    records: str
    pattern: LinearPattern | None
    delimiter: str
    steps: tuple[MappedField, ...]
    leaves: tuple[MappedField, ...]
    line: int

    def matches(self, name: str) -> bool:
        """Whether it is for a file of that name, with or without its folders."""
        return fnmatchcase(name, self.name) or fnmatchcase(name.rpartition("/")[2], self.name)


@dataclass(frozen=True, slots=True)
class StepMap:
    """A whole map. ``constants`` are leaves that it states itself."""

    path: Path
    files: tuple[FileMap, ...]
    constants: tuple[MappedField, ...]

    def of(self, name: str) -> FileMap | None:
        """The first entry for a file, or None."""
        return next((item for item in self.files if item.matches(name)), None)


def read_map(path: Path) -> StepMap:
    """Read and check a map. Raises InputError with everything that is wrong, each with its line."""
    try:
        raw = read_small(path)
        table = parse_toml(raw)
    except OSError as error:
        raise InputError(str(path), [Problem("$", f"it cannot be read: {error.strerror}", "check the path")]) from None
    except ValueError as error:
        raise InputError(str(path), [Problem("$", str(error), "correct the file")]) from None
    reader = _MapReader(raw.decode())
    step_map = reader.whole(path, table)
    if reader.problems:
        raise InputError(str(path), reader.problems)
    return step_map


class _MapReader:
    """Turns tables into values and collects what is wrong with them."""

    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self._lines = text.splitlines()

    def whole(self, path: Path, table: Mapping[str, Any]) -> StepMap:
        self._known(table, frozenset({"files", "leaves"}), 1)
        files = table.get("files")
        if not isinstance(files, list) or not files or not all(isinstance(item, dict) for item in files):
            self._refuse(1, "it maps no file", "begin with [[files]] and the name of a file")
            files = []
        starts = [at for at, line in enumerate(self._lines, 1) if line.replace(" ", "").startswith("[[files]]")]
        entries = tuple(self._file(item, at) for item, at in zip(files, starts, strict=False))
        constants = self._fields(table.get("leaves", {}), 1, leaf=True)
        for item in constants:
            if item.source:
                self._refuse(item.line, f"{item.to}: it names a field and no file", 'write { value = … } or a "text"')
        return StepMap(path, entries, constants)

    def _file(self, table: Mapping[str, Any], start: int) -> FileMap:
        self._known(table, _KEYS, start)
        name = table.get("name")
        if not isinstance(name, str) or not name:
            self._refuse(start, "name is missing", 'name the files, such as name = "metrics*.jsonl"')
            name = ""
        form = str(table.get("format", FORMS.get(Path(name).suffix, "text")))
        if form not in {*FORMS.values(), "text"}:
            self._refuse(self._at("format", start), f"there is no format {form!r}", "json, json-lines, csv or text")
        pattern = self._pattern(table.get("pattern"), form, start)
        steps = self._fields(table.get("steps", {}), start, leaf=False)
        stated = self._fields(table.get("leaves", {}), start, leaf=True)
        if not steps and not stated:
            self._refuse(start, "it reads nothing", "add [files.steps] or [files.leaves]")
        if steps and not any(item.to == "step" for item in steps):
            self._refuse(self._at("steps]", start), "steps have no number", 'name its field: step = "iteration"')
        groups = pattern.groupindex if pattern is not None else None
        for item in (*steps, *stated):
            if groups is not None and item.source and item.source not in groups:
                do = f"write (?P<{item.source}>…) in the pattern"
                self._refuse(item.line, f"{item.to}: the pattern has no group {item.source!r}", do)
        if len(str(table.get("delimiter", ","))) != 1:
            self._refuse(self._at("delimiter", start), "a delimiter is one character", 'such as delimiter = ";"')
        texts = {key: str(table.get(key, default)) for key, default in (("records", ""), ("delimiter", ","))}
        return FileMap(name, form, texts["records"], pattern, texts["delimiter"], steps, stated, start)

    def _pattern(self, text: Any, form: str, start: int) -> LinearPattern | None:
        line = self._at("pattern", start)
        if (form == "text") != (text is not None):
            what = "a text needs a pattern" if text is None else f"a {form} file takes no pattern"
            self._refuse(line, what, "pattern = '''step (?P<step>\\d+) …'''" if text is None else "leave it out")
        if form != "text" or text is None:
            return None
        try:
            return compile_linear(str(text))
        except ValueError as error:
            self._refuse(line, f"the pattern does not compile: {error}", "correct it")
            return None

    def _fields(self, table: Any, start: int, *, leaf: bool) -> tuple[MappedField, ...]:
        if not isinstance(table, dict):
            self._refuse(start, "this is not a table", 'write to = "field" lines')
            return ()
        return tuple(self._field(to, entry, self._at(to, start), leaf=leaf) for to, entry in _flat(table, leaf=leaf))

    def _field(self, to: str, entry: Any, line: int, *, leaf: bool) -> MappedField:
        known = [item.path for item in leaves() if "[]" not in item.path] if leaf else [*OWN, *FIELDS]
        if (find_leaf(to) is None or "[]" in to) if leaf else to not in known:
            where = "leaf" if leaf else "figure of a step"
            do = "see: receipts axes" if leaf else f"known: {', '.join(known)}"
            self._refuse(line, f"there is no {where} {to}{near(to, known)}", do)
            return MappedField(to)
        words = entry if isinstance(entry, dict) else {"from": entry}
        self._known(words, _FIELD_KEYS, line, f"{to}.")
        if ("from" in words) == ("value" in words) or not isinstance(words.get("from", ""), str):
            self._refuse(line, f"{to} needs one of from and value", f'write {to} = "field"')
        unit = str(words.get("unit", ""))
        if unit and unit not in UNITS:
            self._refuse(line, f"{to}: there is no unit {unit!r}{near(unit, UNITS)}", f"known: {_some(UNITS)}")
        if not isinstance(words.get("map", {}), dict):
            self._refuse(line, f"{to}: map is not a table", 'write map = { yours = "the receipt\'s" }')
        value = words.get("value")
        if leaf and value is not None and fitting(to, value) is None:
            self._refuse(line, f"{to}: {value!r} does not fit it", "receipts axes says what does")
        return MappedField(to, str(words.get("from", "")), unit, words.get("map", {}), value, line)

    def _known(self, table: Mapping[str, Any], keys: frozenset[str], start: int, prefix: str = "") -> None:
        for key in sorted(set(table) - keys):
            what = f"there is no key {prefix}{key}{near(key, keys)}"
            self._refuse(self._at(key, start), what, f"known: {', '.join(sorted(keys))}")

    def _at(self, key: str, start: int) -> int:
        """The line of a key, from the line on which its table begins; that line itself where it is not seen."""
        wanted = re.compile(rf"""^\s*\[*[\w.\s"']*?["']?{re.escape(key)}["']?\s*(?:=|$)""")
        return next((at for at in range(start, len(self._lines) + 1) if wanted.match(self._lines[at - 1])), start)

    def _refuse(self, line: int, what: str, do: str) -> None:
        self.problems.append(Problem(f"line {line}", what, do))


def _flat(table: Mapping[str, Any], *, leaf: bool, prefix: str = "") -> list[tuple[str, Any]]:
    """Entries by their whole names: ``batch.global_batch = …`` is the same key with or without quotes."""
    entries: list[tuple[str, Any]] = []
    for key, entry in table.items():
        deeper = isinstance(entry, dict) and leaf and not (entry.keys() & _FIELD_KEYS)
        entries += _flat(entry, leaf=leaf, prefix=f"{prefix}{key}.") if deeper else [(f"{prefix}{key}", entry)]
    return entries


def _some(units: Mapping[str, float]) -> str:
    return ", ".join([*list(SECONDS)[-3:], "ms", "s", "GiB", "MB", "k", "M", "%", *TIMES])
