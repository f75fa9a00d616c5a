"""Files of a person's own, read by their map into steps and leaves. What the map does not name is counted and named."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any, Final

from receipts.base.units import read_printed
from receipts.ingest.evidence.json_bounds import json_document
from receipts.ingest.evidence.read import FileEvidence
from receipts.ingest.evidence.reading import Place, Reading
from receipts.ingest.evidence.steps import FIELDS
from receipts.ingest.evidence.stream import Source
from receipts.ingest.step_map import TIMES, UNITS, FileMap, MappedField, StepMap

SOURCE: Final = "map"
MAP_FILE: Final = "step-map"
ISO: Final = "%Y-%m-%dT%H:%M:%SZ"
_NAMED: Final = 8
_PEAK: Final = "memory.aggregate.bytes"  # of a peak that each record prints, the highest counts
_MOST_NAMES: Final = 1000  # a hostile file may have a name of its own in every record
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
    reading = Reading(SOURCE)
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
        yield from _objects(lines, reading)


def _objects(lines: Iterable[tuple[int, str]], reading: Reading) -> Iterator[Record]:
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
            if name not in self._named and (name in self._unnamed or len(self._unnamed) < _MOST_NAMES):
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
