"""What is known of the run: leaves, open maps, rows and notes, each with who stated it.

Every change is one event, a list that JSON can hold, which goes to the journal as it happens; the same events read
back from a journal make the same facts. Nothing here raises for its input: what is not valid becomes a note.
"""

from __future__ import annotations

from receipts.emit import secrets
from receipts.emit.contract import INPUT_MAPS, OPEN_MAPS, Contract, InvalidValue, contract, key, near, printable, scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypedDict

    class MemoryFields(TypedDict, total=False):
        """One chip's memory: which chip, or which device of this process, figures in bytes, and after which step."""

        chip: int | None
        device: int | None
        bytes_used: int | None
        bytes_limit: int | None
        peak_bytes: int | None
        peak_reserved_bytes: int | None
        step: int | None


CALLER = "caller"
RECORDER = "recorder"
MAX_NOTES = 50
MAX_ENTRIES = 2000
MAX_ROWS = 20_000
MAX_INPUTS = 4000
MAX_FILES = 64
_UNTOUCHED = ("code.commit", "code.imported_digest", "data.dataset_digest", "run.launch", "compile.program_digest")
_MEMORY = ("bytes_used", "bytes_limit", "peak_bytes", "peak_reserved_bytes", "step")


class StatedFacts:
    """Statements in the order in which they came. ``tell`` is called with each event, ``warn`` with each fault."""

    def __init__(self, tell: Callable[[list[Any]], None] | None = None) -> None:
        self.tell = tell
        self.warn: Callable[[str], None] | None = None
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.maps: dict[str, dict[str, Any]] = {}
        self.memory: dict[tuple[str, int, str], dict[str, Any]] = {}
        self.counters: dict[str, dict[str, Any]] = {}
        self.evidence: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        self.notes: dict[str, list[str]] = {}

    def __repr__(self) -> str:
        return (
            f"StatedFacts({len(self.values)} leaves, {len(self.memory)} memory rows, {len(self.evidence)} of evidence)"
        )

    def get(self, path: str) -> Any:
        """The value at a path, also of an entry of an open map; None where nothing is stated."""
        head, _, rest = path.partition(".")
        if head in OPEN_MAPS and rest:
            return self.maps.get(head, {}).get(rest)
        return self.values.get(path, self.maps.get(path))

    def states(self, path: str) -> bool:
        """Whether a leaf, or anything of a map or list of that name, is stated."""
        if path in self.values or self.maps.get(path) or self.get(path) is not None:
            return True
        rows = {
            "memory.chips": self.memory,
            "measurement.path_counters": self.counters,
            "evidence": self.evidence,
        }
        return bool(rows.get(path)) or any(stated.startswith(f"{path}.") for stated in self.values)

    def put(self, path: str, value: Any, source: str = CALLER) -> None:
        """State a leaf; None is skipped. A caller's value wins; of the others, the first."""
        if value is None:
            return
        head, _, rest = path.partition(".")
        if head in OPEN_MAPS and rest:
            self.put_entry(head, rest, value, source)
            return
        if head == "inputs" and (name := next((name for name in INPUT_MAPS if path.startswith(f"{name}.")), None)):
            self.put_inputs(name, {path[len(name) + 1 :]: value}, source)
            return
        try:
            # Before a long text is cut: the cut could fall into a secret, and hide its shape.
            whole = clean(value) if path not in _UNTOUCHED else value
            checked = contract().check(path, whole)
        except InvalidValue as error:
            self.fault(source, str(error))
            return
        if path not in _UNTOUCHED:
            checked = clean(checked)
        if source == CALLER and (remark := contract().misspelled(path, checked)):
            self.fault(source, remark)
        if self._stands(path, checked, source):
            self.values[path] = checked
            self.sources[path] = source
            self._event(["put", path, checked, source])

    def put_entry(self, name: str, entry: str, value: Any, source: str = CALLER) -> None:
        """State one entry of an open map: a scalar, for a flag also its value and time, for a wheel its version."""
        if value is None:
            return
        if name == "notes":
            self.add_note(entry, str(value))
            return
        try:
            if name not in OPEN_MAPS:
                raise InvalidValue(f"there is no open map {name}{near(name, OPEN_MAPS)}")
            checked_key = key(entry)
            checked = _entry(name, checked_key, value)
        except InvalidValue as error:
            self.fault(source, f"{name}.{entry}: {error}")
            return
        entries = self.maps.setdefault(name, {})
        if len(entries) >= MAX_ENTRIES and checked_key not in entries:
            return
        if self._stands(f"{name}.{checked_key}", checked, source, entries.get(checked_key)):
            entries[checked_key] = checked
            self.sources[f"{name}.{checked_key}"] = source
            self._event(["entry", name, checked_key, checked, source])

    def put_inputs(self, name: str, entries: Mapping[str, Any], source: str = CALLER) -> int:
        """State entries of a map of inputs; a caller's win, of the others the first. How many could not be kept.

        A map without any entry is stated too: nothing was given.
        """
        unstated = name not in self.maps
        known = self.maps.setdefault(name, {})
        taken: dict[str, Any] = {}
        lost = 0
        for entry, value in entries.items():
            try:
                checked, held = key(entry), scalar(value)
            except InvalidValue:
                lost += 1
                continue
            if source == CALLER or checked not in known:
                taken[checked] = held
        fitting = dict(list(taken.items())[: max(0, MAX_INPUTS - len(known))])
        if fitting or unstated:
            fitting = clean_map(fitting)
            known.update(fitting)
            self._by(name, source)
            self._event(["inputs", name, fitting, source])
        return lost + len(taken) - len(fitting)

    def add_file(self, row: Mapping[str, Any], source: str = CALLER) -> None:
        """State a file that an option names; the same one again takes the place of what was known of it."""
        entry = self._row("inputs.files[]", {name: row[name] for name in row if name != "flat"}, ("name",), source)
        if entry is None:
            return
        if (flat := row.get("flat")) is not None:  # empty, where a file holds comments alone
            entry["flat"] = clean_map({key(name): scalar(value) for name, value in flat.items()})
        if entry not in self.files:
            self._event(["file", entry, source])
            self._keep_file(entry, source)

    def _keep_file(self, entry: dict[str, Any], source: str) -> None:
        same = (at for at, row in enumerate(self.files) if all(row.get(x) == entry.get(x) for x in ("option", "name")))
        if (at := next(same, None)) is not None:
            self.files[at] = entry
        elif len(self.files) < MAX_FILES:
            self.files.append(entry)
        self._by("inputs.files", source)

    def _stands(self, path: str, value: Any, source: str, before: Any = None) -> bool:
        """Whether to write a new value: not over another source's; a disagreement is noted."""
        before = self.values.get(path, before)
        if before is None or before == value:
            return before is None
        owner = self.sources.get(path, "")
        if source in (owner, CALLER):
            if owner != source:
                self.add_note(CALLER, f"{path}: {owner} saw {before!r:.120}, and the caller states {value!r:.120}")
            return True
        self.add_note(source, f"{path}: it saw {value!r:.120}, and {owner} states {before!r:.120}")
        return False

    def add_memory(self, row: Mapping[str, Any], source: str = CALLER) -> None:
        """State one chip's memory in one phase; ``chip`` over all hosts, or ``device`` as this process sees it."""
        try:
            if strange := [name for name in row if name not in (*_MEMORY, "phase", "chip", "device")]:
                raise InvalidValue(f"a row of memory has no {strange[0]}{near(strange[0], _MEMORY)}")
            measured = {
                name: contract().check(f"memory.chips[].{name}", row[name]) for name in _MEMORY if _has(row, name)
            }
            phase = contract().check("memory.chips[].phase", row.get("phase"))
            whole = _has(row, "chip")
            ordinal = contract().check("memory.chips[].chip", row["chip"] if whole else row.get("device"))
        except InvalidValue as error:
            self.fault(source, str(error))
            return
        if len(self.memory) < MAX_ROWS:
            self.memory["chip" if whole else "device", ordinal, phase] = measured
            self._by("memory.chips", source)
            self._event(["memory", "chip" if whole else "device", ordinal, phase, measured, source])

    def add_counter(self, row: Mapping[str, Any], source: str = CALLER) -> None:
        """State a path counter; for one name the latest is kept."""
        counter = self._row("measurement.path_counters[]", row, ("name", "count"), source)
        if counter is not None and len(self.counters) < MAX_ENTRIES:
            self.counters[counter["name"]] = counter
            self._by("measurement.path_counters", source)
            self._event(["counter", counter, source])

    def _by(self, place: str, source: str = CALLER) -> None:
        """Who states the rows of a list: the one who states all of them, else the job."""
        self.sources[place] = source if self.sources.get(place, source) == source else CALLER

    def add_evidence(self, row: Mapping[str, Any], source: str = CALLER) -> None:
        """State what was read and where; the same row is kept once."""
        plain = {name: value for name, value in row.items() if name != "observed"}
        entry = self._row("evidence[]", plain, ("kind",), source)
        if entry is None:
            return
        observed: dict[str, Any] = {}
        for name, value in (row.get("observed") or {}).items():
            try:
                observed[key(name)] = _scalar_of(str(name), value)
            except InvalidValue as error:
                self.fault(source, f"evidence: {name}: {error}")
        if observed:
            entry["observed"] = observed
        if entry not in self.evidence and len(self.evidence) < MAX_ENTRIES:
            self.evidence.append(entry)
            self._event(["evidence", entry])

    def _row(self, place: str, row: Mapping[str, Any], needed: tuple[str, ...], source: str) -> dict[str, Any] | None:
        try:
            missing = [name for name in needed if not _has(row, name)]
            if missing:
                raise InvalidValue(f"{place}: it says no {missing[0]}")
            return {
                name: clean(contract().check(f"{place}.{name}", value))
                for name, value in row.items()
                if _has(row, name)
            }
        except InvalidValue as error:
            self.fault(source, str(error))
            return None

    def add_note(self, topic: str, text: str) -> None:
        """Say something for people, under a topic; a flood is cut."""
        try:
            line = clean(printable(str(text)))[:10_000]
            name = key(topic)
        except InvalidValue:
            return
        lines = self.notes.setdefault(name, [])
        if line and line not in lines and len(lines) < MAX_NOTES and len(self.notes) < 150:
            lines.append(line)
            self._event(["note", name, line])

    def fault(self, source: str, text: str) -> None:
        """A fault of the recorder, of a probe, or of what it was told: a note, and a word to the one who watches."""
        line = text if source in (CALLER, RECORDER) else f"{source}: {text}"
        known = self.notes.get(RECORDER, ())
        if line not in known:
            self.add_note(RECORDER, line)
            if self.warn is not None and len(known) < MAX_NOTES:
                self.warn(line)

    def _event(self, event: list[Any]) -> None:
        if self.tell is not None:
            self.tell(event)

    def apply(self, event: list[Any]) -> bool:
        """Take an event that a journal kept. Whether it was one of these."""
        name, *rest = event
        if name == "put":
            path, value, source = rest
            self.values[path], self.sources[path] = value, source
        elif name == "entry":
            place, entry, value, source = rest
            self.maps.setdefault(place, {})[entry] = value
            self.sources[f"{place}.{entry}"] = source
        elif name == "memory":
            scope, ordinal, phase, row, *by = rest
            self.memory[scope, ordinal, phase] = row
            self._by("memory.chips", *by)
        elif name == "counter":
            self.counters[rest[0]["name"]] = rest[0]
            self._by("measurement.path_counters", *rest[1:])
        elif name == "evidence":
            self.evidence.append(rest[0])
        elif name == "inputs":
            self.maps.setdefault(rest[0], {}).update(rest[1])
            self._by(rest[0], rest[2])
        elif name == "file":
            self._keep_file(*rest)
        elif name == "note":
            self.notes.setdefault(rest[0], []).append(rest[1])
        else:
            return False
        return True


def flattened(tree: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested maps by their paths; an entry of an open map stays whole."""
    for name, value in tree.items():
        path = f"{before}{name}"
        inside = path.partition(".")[0] in OPEN_MAPS and "." in path
        if hasattr(value, "items") and not inside and path != "path.witnessed.fallbacks":
            yield from flattened(value, f"{path}.")
        else:
            yield path, value


def clean(value: Any) -> Any:
    """A value without secrets in its texts; what is neither text nor a list of texts is given back."""
    if isinstance(value, str):
        return secrets.redact(value)
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def clean_map(entries: dict[str, Any]) -> dict[str, Any]:
    """A map without secrets, in texts or under names that say so. Mostly there is none, and one look finds that."""
    texts = "\n".join(value for value in entries.values() if isinstance(value, str))
    if secrets.redact(texts) == texts and all(secrets.hidden(*item) == item[1] for item in entries.items()):
        return entries
    return {name: secrets.hidden(name, clean(value)) for name, value in entries.items()}


def _has(row: Mapping[str, Any], name: str) -> bool:
    return row.get(name) is not None


def _scalar_of(name: str, value: Any) -> Any:
    """An open map's value; under a name that says that it is a secret, no text at all."""
    plain = clean(scalar(clean(value)))
    return secrets.blanked(name, plain) if isinstance(plain, str) and secrets.secret_name(name) else plain


def _entry(name: str, entry: str, value: Any) -> Any:
    if entry == "complete":
        if not isinstance(value, bool):
            raise InvalidValue("it must be True or False")
        return value
    if name == "wheels":
        if isinstance(value, dict):
            if value.get("version") is None:
                raise InvalidValue("it says no version")
            shape = {"version": ["text", 500], "digest": ["text", 500], "editable": ["boolean"]}
            wheel = Contract(leaves=shape, names={})
            return {name: wheel.check(name, item) for name, item in value.items() if item is not None}
        if not isinstance(value, str) or not value:
            raise InvalidValue("it must be a version")
        return value[:500]
    if name == "flags" and isinstance(value, dict):
        flag = {"value": _scalar_of(entry, value.get("value"))}
        if value.get("before_runtime") is not None:
            flag["before_runtime"] = bool(value["before_runtime"])
        return flag
    return _scalar_of(entry, value)
