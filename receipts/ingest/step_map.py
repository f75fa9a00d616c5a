"""A person's map of their own files: which field of a record is which figure of a step, and which leaf.

`docs/ingest-map.md` explains every key. A map is checked whole when it is read; every mistake is printed with its line.
`mapped_file` reads a file by its map into steps and leaves; what the map does not name is counted and named.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, Final

from receipts.base.errors import InputError, Problem, near
from receipts.base.files import read_small
from receipts.base.units import BYTES, SCALES, SECONDS, read_printed
from receipts.base.untrusted_text import LinearPattern, compile_linear, parse_toml
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.leaves import fitting
from receipts.ingest.reader import json_document
from receipts.ingest.reading import Place, Reading
from receipts.ingest.source import Source
from receipts.ingest.steps import FIELDS
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
            shown = ", ".join([*list(SECONDS)[-3:], "ms", "s", "GiB", "MB", "k", "M", "%", *TIMES])
            self._refuse(line, f"{to}: there is no unit {unit!r}{near(unit, UNITS)}", f"known: {shown}")
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


MAPPED: Final = "map"
MAP_FILE: Final = "step-map"
ISO: Final = "%Y-%m-%dT%H:%M:%SZ"
_NAMED: Final = 8
_PEAK: Final = "memory.aggregate.bytes"  # of a peak that each record prints, the highest counts
_MAX_NAMES: Final = 1000  # a hostile file may have a name of its own in every record
Record = tuple[int, Mapping[str, Any]]


def map_file(step_map: StepMap) -> FileEvidence:
    """The map itself: it is evidence of how its files were read, and of the values that it states."""
    raw = step_map.path.read_bytes()
    reading = Reading(MAP_FILE, records=len(step_map.files))
    for item in step_map.constants:
        reading.state(item.to, item.value, line=item.line)
    return FileEvidence(step_map.path, step_map.path.name, sha256(raw).hexdigest(), len(raw), (reading,), ())


def mapped_file(path: Path, name: str, entry: FileMap) -> FileEvidence:
    """One file, as its entry of the map reads it. Broken records are counted and named, never guessed at."""
    source = Source(path, name)
    reading = Reading(MAPPED)
    reader = _RecordReader(entry, reading)
    for line, record in _records(source, entry, reading):
        reader.take(line, record)
    reader.finish()
    return FileEvidence(path, name, source.sha256, path.stat().st_size, (reading,), ())


def _records(source: Source, entry: FileMap, reading: Reading) -> Iterator[Record]:
    """Records with their lines; of a JSON document the whole, for leaves, and then each of its records."""
    if entry.form == "json":
        document = json_document(source, reading, "a document that is mapped")
        rows = _at(document, entry.records) if entry.records else document
        if entry.records and isinstance(document, dict):
            yield 0, document
        for row in rows if isinstance(rows, list) else [rows]:
            if isinstance(row, dict):
                yield 0, row
        return
    lines = source.lines()
    if entry.form == "csv":
        rows = csv.DictReader((text for _, text in lines), delimiter=entry.delimiter)
        try:
            yield from ((rows.line_num, {key: text for key, text in row.items() if key}) for row in rows)
        except csv.Error as error:
            reading.remark("broken", f"the table breaks off: {error}", rows.line_num)
    elif entry.form == "text" and entry.pattern is not None:
        for at, text in lines:
            if match := entry.pattern.search(text):
                yield at, match.groupdict()
    else:
        broken: list[int] = []
        for at, text in lines:
            try:
                record = json.loads(text) if text.strip() else {}
            except (ValueError, RecursionError):
                record = None
            if isinstance(record, dict):
                yield at, record
            else:
                broken.append(at)
        if broken:
            reading.remark("broken", f"{len(broken):,} lines are not JSON objects, the first is this one", broken[0])


def _at(node: Any, path: str) -> Any:
    """What is at a dotted path: a key that has the dots itself first, else step by step; lists by their index."""
    if isinstance(node, dict) and path in node:
        return node[path]
    head, dot, rest = path.partition(".")
    if isinstance(node, dict) and head in node:
        return _at(node[head], rest) if dot else node[head]
    if isinstance(node, list) and head.isdigit() and int(head) < len(node):
        return _at(node[int(head)], rest) if dot else node[int(head)]
    return None


class _RecordReader:
    """Takes records in their order and leaves steps, leaves and remarks in the reading."""

    def __init__(self, entry: FileMap, reading: Reading) -> None:
        self._entry = entry
        self._reading = reading
        self._seen: Counter[str] = Counter()
        self._named = {item.source.partition(".")[0] for item in (*entry.steps, *entry.leaves)} | {entry.records}
        self._named |= {item.source for item in (*entry.steps, *entry.leaves)}
        self._unnamed: Counter[str] = Counter()
        self._unread: dict[str, tuple[int, int, str]] = {}  # by figure: how many, the line and text of the first
        self._stepped = 0
        self._before: tuple[int, dict[str, float]] | None = None
        self._tokens: set[int] = set()

    def take(self, line: int, record: Mapping[str, Any]) -> None:
        """Read one record. One without a step's number is no step, and may still state leaves."""
        self._reading.records += 1
        for item in self._entry.leaves:
            raw = item.value if item.value is not None else _at(record, item.source)
            if raw is None:
                continue
            self._seen[item.source] += 1
            value, known = self._leaf(item, raw), self._reading.stated.get(item.to)
            if item.to == _PEAK and known and all(isinstance(size, int | float) for size in (value, known.value)):
                if value > known.value:
                    self._reading.stated[item.to] = replace(known, value=value, text=str(raw), place=Place(line))
            elif value is not None and (known is None or known.value != value):
                self._reading.state(item.to, value, str(raw), line)
        for name in record:
            if name not in self._named and (name in self._unnamed or len(self._unnamed) < _MAX_NAMES):
                self._unnamed[name] += 1
        figures = {item.to: self._figure(item, record, line) for item in self._entry.steps}
        step = figures.get("step")
        if step is not None and isfinite(step) and abs(step) < 2**53:
            self._step(int(step), {name: value for name, value in figures.items() if value is not None})

    def _step(self, step: int, figures: dict[str, float]) -> None:
        self._stepped += 1
        gap = step - self._before[0] if self._before is not None else 0
        earlier = self._before[1] if self._before is not None and gap > 0 else {}
        self._before = step, figures
        values = {name: value for name, value in figures.items() if name in FIELDS}
        for total, each in (("elapsed_seconds", "step_seconds"), ("tokens_total", "tokens")):
            if total in figures and total in earlier:
                figures[each] = (figures[total] - earlier[total]) / gap
        if "elapsed_seconds" in figures:
            if "step_seconds" in figures:
                values["step_seconds"] = figures["step_seconds"]
            if gap > 1:
                self._reading.steps.interval = max(self._reading.steps.interval or 1, gap)
        if (tokens := figures.get("tokens")) is not None and isfinite(tokens) and tokens > 0 and len(self._tokens) < 2:
            self._tokens.add(round(tokens))
        self._reading.steps.put(step, values)

    def _figure(self, item: MappedField, record: Mapping[str, Any], line: int) -> float | None:
        raw = item.value if item.value is not None else _at(record, item.source)
        if raw is None or raw == "":
            return None
        self._seen[item.source] += 1
        value = _number(raw, item.unit)
        if value is None:
            count, first, text = self._unread.get(item.to, (0, line, str(raw)[:40]))
            self._unread[item.to] = count + 1, first, text
        return value

    def _leaf(self, item: MappedField, raw: Any) -> Any:
        if item.words:
            return item.words.get(str(raw), raw)
        if item.unit in TIMES:
            seconds = _number(raw, "")
            try:
                return (
                    None if seconds is None else datetime.fromtimestamp(seconds * TIMES[item.unit], UTC).strftime(ISO)
                )
            except (OverflowError, OSError, ValueError):
                return None
        if item.unit or (isinstance(raw, str) and self._entry.form in ("csv", "text")):
            value = _number(raw, item.unit)
            return raw if value is None else int(value) if value.is_integer() else value
        return raw

    def finish(self) -> None:
        """State the tokens of a step, and say which fields were not there, not named, or not numbers."""
        if len(self._tokens) == 1:
            self._reading.state("measurement.tokens_per_step", self._tokens.pop(), "tokens of every step")
        elif self._tokens:
            self._reading.remark("note", "tokens differ from step to step: left out")
        for item in (*self._entry.steps, *self._entry.leaves):
            seen, of = self._seen[item.source], self._stepped if item in self._entry.steps else 1
            if item.source and seen < of:
                what = "in no record" if not seen else f"in {seen:,} of {of:,} steps"
                self._reading.remark("missing", f"{item.to}: the field {item.source} is {what} (map line {item.line})")
        for name, (count, line, text) in self._unread.items():
            self._reading.remark("note", f"{name}: {count:,} values are not numbers, the first is {text!r}", line)
        if self._unnamed:
            named = ", ".join(f"{name} ({count:,})" for name, count in self._unnamed.most_common(_NAMED))
            more = f" and {len(self._unnamed) - _NAMED:,} more" if len(self._unnamed) > _NAMED else ""
            self._reading.remark("note", f"fields that the map does not name: {named}{more}")


def _number(raw: Any, unit: str) -> float | None:
    """A number in base units: bare ones are in the map's unit, text may print its own."""
    scale = UNITS.get(unit, 1.0)
    if isinstance(raw, bool):
        return None
    if isinstance(raw, int | float):
        try:
            return float(raw) * scale
        except OverflowError:
            return None
    if not isinstance(raw, str):
        return None
    if raw.strip().lower().lstrip("+-") in ("nan", "inf", "infinity"):
        return float(raw)
    printed = read_printed(raw)
    if printed is None:
        return None
    return printed.value if printed.unit else printed.value * scale
