"""From a record to the receipt's tree, or to one rank's part of it, and from a tree to bytes.

The same record gives the same bytes. A part is what a rank would have put into a receipt, with its place among the
ranks.
"""

from __future__ import annotations

import json
import math

from receipts.emit import clock, journal, secrets
from receipts.emit.contract import INPUT_MAPS, OPEN_MAPS, contract
from receipts.emit.facts import CALLER, RECORDER

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from receipts.emit.losses import ScalarSeries
    from receipts.emit.run_record import RunRecord


MAX_STEPS = 100_000
SECTIONS = (
    *("schema_version", "run", "code", "inputs", "hardware", "platform", "wheels", "flags", "patches", "features"),
    *("model", "parallelism", "batch", "numerics", "compile", "data", "path", "measurement", "memory", "failure"),
    *("evidence", "notes"),
)
MAX_SOURCES = 1000
# The recorder writes them down, but the job names them.
_ARGUMENTS = frozenset(
    f"run.{name}"
    for name in ("lane", "kind", "label", "context", "tags", "site", "witness_for", "resumed_from", "start_step")
)
MIN_SECONDS_OF_TICKS = 20.0  # seconds: a tick is a hundredth of one, at both ends
UNWRITTEN = "0" * 64  # where the digest of a document will be
_WIDE = 100
_CHUNK = 512


class Seconds:
    """Durations of steps as they stand in the journal, given as seconds; a list that is never held whole."""

    def __init__(self, record: RunRecord, stop: int = MAX_STEPS) -> None:
        self._record = record
        self._stop = stop

    def __len__(self) -> int:
        return min(self._record.steps, self._stop)

    def __iter__(self) -> Iterator[float]:
        for number, duration in enumerate(self._record.durations()):
            if number >= self._stop:
                return
            yield duration / 1e9

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} steps)"


class WallSeconds(Seconds):
    """Wall time of steps, to a tenth of a microsecond: what is added up needs no more, and digits cost."""

    def __iter__(self) -> Iterator[float]:
        for number, wall in enumerate(self._record.walls()):
            if number >= self._stop:
                return
            yield (wall + 50) // 100 / 1e7


def receipt_tree(record: RunRecord) -> dict[str, Any]:
    """The receipt of a record as nested objects, in the order of the schema. What nobody stated is absent."""
    head, facts = record.head, record.facts
    for name in ("launch", "lane", "kind", "started", "label", "session", "context", "site", "command", "tags"):
        facts.put(f"run.{name}", head.get(name) or None, RECORDER)
    for name in ("witness_for", "resumed_from", "start_step"):
        facts.put(f"run.{name}", head.get(name), RECORDER)
    facts.put("run.outcome", record.outcome or "crash", RECORDER)
    facts.put("run.provenance", "measured", RECORDER)
    facts.put("run.finished", record.finished or None, RECORDER)
    facts.put("run.host", record.place.host or None, RECORDER)
    facts.put("run.processes", [head["process"]], RECORDER)
    facts.put("run.exit_code", record.exit_code, RECORDER)
    _state_measurement(record)
    failure = {name: value for name, value in record.failure.items() if name != "device"}
    if failure and record.failure.get("device") is not None and record.place.world == 1:
        failure.setdefault("chip", record.failure["device"])
    for name, value in failure.items():
        facts.put(f"failure.{name}", secrets.redact(value) if isinstance(value, str) else value, RECORDER)
    receipt: dict[str, Any] = {"schema_version": contract().schema_version}
    for path in contract().leaves:
        if path in facts.values:
            put_leaf(receipt, path.split("."), facts.values[path])
    for name, entries in facts.maps.items():
        if entries or name in INPUT_MAPS:
            ordered = {key: entries[key] for key in sorted(entries, key=lambda key: (key != "complete", key))}
            put_leaf(receipt, name.split("."), ordered)
    if facts.files:
        receipt.setdefault("inputs", {})["files"] = facts.files
    measured = receipt.setdefault("measurement", {})
    if record.steps or record.outcome == "ok":
        measured["step_flags"] = {
            name: [step for step in steps if step < MAX_STEPS] for name, steps in record.flagged().items()
        }
    if facts.counters:
        measured["path_counters"] = [facts.counters[name] for name in sorted(facts.counters)]
    if record.steps:
        measured["step_durations_seconds"] = Seconds(record)
        measured["step_wall_seconds"] = WallSeconds(record)
    rows = chips(record)
    if rows:
        receipt.setdefault("memory", {})["chips"] = rows
    if facts.evidence:
        receipt["evidence"] = facts.evidence
    if facts.notes:
        receipt["notes"] = {name: facts.notes[name] for name in sorted(facts.notes)}
    return {name: receipt[name] for name in SECTIONS if receipt.get(name) not in (None, {}, [])}


def sources(record: RunRecord) -> dict[str, str]:
    """What the job did not state itself, with the probe that did; call it after `tree`.

    For an open map ``flags.*`` means the entries that are not named.
    """
    stated = {path: CALLER if path in _ARGUMENTS else source for path, source in record.facts.sources.items()}
    if record.steps:
        for name in ("step_durations_seconds", "step_wall_seconds", "step_flags"):
            stated[f"measurement.{name}"] = RECORDER
    usual: dict[str, str] = {}
    for name in OPEN_MAPS:
        inside = [source for path, source in stated.items() if path.startswith(f"{name}.")]
        if inside:
            usual[f"{name}.*"] = max(sorted(set(inside)), key=inside.count)
    named = {
        path: source for path, source in stated.items() if source != usual.get(f"{path.partition('.')[0]}.*", CALLER)
    }
    both = {path: source for path, source in (usual | named).items() if source != CALLER or path not in usual}
    return dict(sorted(both.items())[:MAX_SOURCES])


def counted(receipt: dict[str, Any], by: str, journals: list[str], stated: dict[str, str]) -> dict[str, Any]:
    """The receipt with the program that writes it, its journals and sources, and with `run.entries`.

    These are how many entries what is read whole has, so that one taken out is missed.
    """
    counts: dict[str, int] = {}
    for path in contract().collections:
        node: Any = receipt
        for part in path.split("."):
            node = node.get(part, {})
        if node:
            counts[path] = len(node)
    recorded: dict[str, Any] = {"by": by, "digest": UNWRITTEN}
    recorded |= {name: value for name, value in (("journals", journals), ("sources", stated)) if value}
    return receipt | {"run": receipt["run"] | {"recorded": recorded, "entries": counts}}


def sealed(receipt: dict[str, Any]) -> Iterator[str]:
    """The document in pieces, with its digest in `run.recorded`, so that an edit shows.

    The digest is that of the text with zeros in its place, which takes a first pass; the text is never held whole.
    """
    import hashlib

    whole = hashlib.sha256()
    for piece in tree_text(receipt):
        whole.update(piece.encode())
    receipt["run"]["recorded"]["digest"] = whole.hexdigest()
    yield from tree_text(receipt)


def chips(record: RunRecord) -> list[dict[str, Any]]:
    """Rows of memory by chip and phase. Where this process is the whole launch, its devices are the chips."""
    order = ("post_init", "post_compile", "post_step0", "steady")
    rows = [
        {"chip" if scope == "chip" or record.place.world == 1 else "device": ordinal, "phase": phase, **row}
        for (scope, ordinal, phase), row in record.facts.memory.items()
    ]
    return sorted(rows, key=lambda row: (row.get("chip", row.get("device", 0)), order.index(row["phase"])))


def put_leaf(node: dict[str, Any], keys: list[str], value: Any) -> None:
    """Set a value below nested objects, which are made where they are not."""
    for key in keys[:-1]:
        node = node.setdefault(key, {})
    node[keys[-1]] = value


def _state_measurement(record: RunRecord) -> None:
    facts, place, steps = record.facts, "measurement", record.steps
    if steps:
        facts.put(f"{place}.timer", "replaced" if clock.refused else "perf_counter", RECORDER)
        facts.put(f"{place}.region", "step", RECORDER)
    start, stop = record.window
    if record.warmup is not None:
        facts.put(f"{place}.window.warmup_steps", record.warmup, RECORDER)
        start = record.warmup if start is None else start
    facts.put(f"{place}.window.start", start, RECORDER)
    facts.put(f"{place}.window.stop", stop, RECORDER)
    if (tokens := record.tokens_per_step(start or 0, stop)) is not None:
        facts.put(f"{place}.tokens_per_step", tokens, RECORDER)
    if len({tokens for _, tokens in record.tokens}) > 1:
        changes = ", ".join(f"{tokens} from step {step}" for step, tokens in record.tokens[:5])
        facts.add_note(RECORDER, f"tokens a step changed, and {tokens} is stated: {changes}")
    if steps > MAX_STEPS:
        facts.put(f"{place}.steps", steps, RECORDER)
        facts.add_note(RECORDER, f"{steps} steps ran; the first {MAX_STEPS} are listed, the journal keeps them all")
    _state_series(record, record.losses, f"{place}.loss")
    _state_series(record, record.norms, f"{place}.gradient_norm")
    begun = record.head.get("begun_elapsed", 0.0)
    ticks = record.last_elapsed - begun
    if begun and record.last_elapsed and ticks >= MIN_SECONDS_OF_TICKS:
        seconds = (record.last_ns - record.head["begun_ns"]) / 1e9
        facts.put(f"{place}.kernel_clock_ratio", round(seconds / ticks, 6), RECORDER)
    gauges = record.gauges
    if gauges is not None and steps:
        # Wall time by category, each second once: what a span took inside a step is not the step's.
        whole = max(0, record.last_ns - record.head.get("begun_ns", record.last_ns))
        spent = {name: gauges[journal.SPAN_TIME + at] for at, name in enumerate(journal.SPANS) if name != "profile"}
        inside = max(0, sum(record.durations()) - gauges[journal.SPANS_IN_STEPS])
        spent |= {"step": inside, "idle": max(0, whole - inside - sum(spent.values()))}
        for name, nanoseconds in spent.items():
            facts.put(f"{place}.goodput.{name}_seconds", nanoseconds / 1e9, RECORDER)


def _state_series(record: RunRecord, series: ScalarSeries, place: str) -> None:
    facts, kept = record.facts, sorted(series.kept)
    if series.unread:
        kept_back = f"{series.unread} of {series.given} values of {series.name} were not read"
        facts.add_note(RECORDER, f"{kept_back}, so as not to wait for a device")
    if not kept and series.finite:
        return
    finite_last = series.last if series.last is not None and series.last - series.last == 0.0 else None
    for name, value in (("first", series.first), ("last", finite_last), ("finite", series.finite)):
        facts.put(f"{place}.{name}", value, RECORDER)
    if series.name == "gradient_norm":
        facts.put(f"{place}.largest", series.largest if math.isfinite(series.largest) else None, RECORDER)
    elif kept:
        facts.put(f"{place}.steps", [step for step, _ in kept], RECORDER)
        facts.put(f"{place}.values", [value for _, value in kept], RECORDER)


def tree_text(node: dict[str, Any]) -> Iterator[str]:
    """The document in pieces, indented, with lists of plain values on one line, and a line end."""
    yield from _pieces(node, "")
    yield "\n"


def _pieces(value: Any, indent: str) -> Iterator[str]:
    inner = indent + "  "
    if isinstance(value, dict) and value:
        sign = "{\n"
        for key, item in value.items():
            yield f"{sign}{inner}{_plain(key)}: "
            yield from _pieces(item, inner)
            sign = ",\n"
        yield f"\n{indent}}}"
    elif isinstance(value, Seconds):
        chunk: list[str] = []
        sign = "["
        for number in value:
            chunk.append(repr(number))
            if len(chunk) == _CHUNK:
                yield sign + ", ".join(chunk)
                sign = ", "
                chunk.clear()
        yield (sign if chunk or sign == "[" else "") + ", ".join(chunk) + "]"
    elif (
        isinstance(value, list)
        and value
        and (isinstance(value[0], dict) or (isinstance(value[0], str) and len(_plain(value)) > _WIDE))
    ):
        sign = "[\n"
        for item in value:
            parts = list(item.values()) if isinstance(item, dict) else []
            nested = len(parts) > 8 or any(isinstance(part, dict | list) for part in parts)
            yield sign + inner
            yield from _pieces(item, inner) if nested else (_plain(item),)
            sign = ",\n"
        yield f"\n{indent}]"
    else:
        yield _plain(value)


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


PART_VERSION = 1


def rank_part(record: RunRecord) -> dict[str, Any]:
    """The part of a record: not a receipt, so that no rank's numbers can be taken for the launch's."""
    tree = receipt_tree(record)
    return {
        "receipts_part": PART_VERSION,
        "launch": record.head["launch"],
        "rank": record.place.rank,
        "world": record.place.world,
        "local_rank": record.place.local_rank,
        "host": record.place.host,
        "device": record.failure.get("device"),
        "journal": record.journal,
        "sources": sources(record),
        "receipt": tree,
    }


def file_text(record: RunRecord) -> Iterator[str]:
    """What a finished record is written as: the receipt of a lone process, the part of one rank of many."""
    if record.place.world > 1:
        return tree_text(rank_part(record))
    tree = receipt_tree(record)
    journals = [record.journal] if record.journal else []
    return sealed(counted(tree, RECORDER, journals, sources(record)))
