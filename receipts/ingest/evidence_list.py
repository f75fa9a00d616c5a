"""The list ``evidence``: one entry for every file and source, with its digest and what was read from it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from receipts.ingest import vocabulary
from receipts.ingest.draft import RECEIPT, ReceiptDraft, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.leaves import OPEN, fitting, parts, place
from receipts.ingest.path import LEVELS
from receipts.ingest.reading import LINE, Reading, alike
from receipts.ingest.resolve import readings
from receipts.ingest.warmup import AFTER, DEFAULT, WINDOW
from receipts.receipt.names import CAUSE

SOURCE: Final = "evidence"
MAX_OBSERVED: Final = 200
MAX_ENTRIES: Final = 10_000
MAX_CAUSES: Final = 3
MAX_READ: Final = 300
MAX_NAME: Final = 200


def state_evidence(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """List the files that something was read from."""
    # By file and reader: the leaves that it read, each with its place; of a map one entry is enough to say so.
    records: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for path, item in sorted(draft.shown.items(), key=lambda shown: place(shown[0])):
        if item.source == RECEIPT:
            continue  # that the receipt states it is no reading of it
        record = records[item.where.file, item.source]
        section = parts(path)[0]
        name = f"{section}.*" if section in OPEN else path
        if len(record) < MAX_READ and len(name) <= MAX_NAME:
            record.setdefault(name, str(item.where.place.record or item.where.place.line or "whole file")[:MAX_NAME])
    causes = _causes(draft, files)
    entries = []
    for file, reading in readings(files):
        entry = _entry(file, reading, causes[id(reading)])
        if fitting("evidence", [entry]) is None:
            # A name in what was counted is no text that a receipt can hold.
            entry = {key: value for key, value in entry.items() if key in ("kind", "producer", "sha256", "level")}
        if record := records[file.name, reading.source]:
            entry["read"] = record
        entries.append(entry)
    if draft.base is not None:
        # A file that was listed before is listed once, with every leaf; one that the job only attached, as its reader
        # lists it.
        read, entries = entries, [dict(entry) for entry in draft.base.tree.get("evidence", [])]
        for entry in read:
            # As a job lists a file that it leaves to readers, by whatever name.
            bare = {"kind": entry["kind"], "sha256": entry["sha256"]}
            forms = ((item, (_bare(entry), bare | {"uri": item.get("uri")})) for item in entries)
            same = next((item for item, wanted in forms if _bare(item) in wanted), None)
            if same is None:
                entries.append(entry)
            elif _bare(same) != _bare(entry):
                same.clear()
                same.update(entry)
            elif more := {**same.get("read", {}), **entry.get("read", {})}:
                same["read"] = {path: more[path] for path in sorted(more, key=place)}
    if not entries:
        return
    if len(entries) > MAX_ENTRIES:
        draft.tell("note", f"of {len(entries):,} pieces of evidence the first {MAX_ENTRIES:,} are listed")
    draft.put("evidence", entries[:MAX_ENTRIES], Where("ingest"), SOURCE, beside_own=True)


def _bare(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "read"}


def _entry(file: FileEvidence, reading: Reading, causes: Mapping[str, str]) -> dict[str, Any]:
    # The most that the file proves of the path; that a framework's loop wrote it proves no kernel.
    levels = [seen.level for seen in reading.seen if seen.leaf not in ("framework", "frameworks")]
    values: dict[str, bool | int | float | str] = {"records": _count(reading.records)}
    values |= causes
    if numbers := reading.steps.numbers():
        values["steps"] = _count(len(reading.steps))
        values |= {"first_step": _count(numbers[0]), "last_step": _count(numbers[-1])}
    counts: Counter[str] = Counter()
    for seen in reading.seen:
        counts[f"{seen.leaf}.{seen.value}"[:200]] += seen.count
    values |= {name: _count(count) for name, count in counts.items()}
    if reading.steps_covered is not None:
        values["steps_covered"] = _count(reading.steps_covered)
    for name, count in islice(reading.counters.items(), MAX_OBSERVED):
        values.setdefault(name[:200] or "unnamed", _count(count))
    entry = {
        "kind": reading.source,
        "producer": vocabulary.source(reading.source).producer,
        "version": str(reading.version or "")[:500],
        "uri": file.name,
        "sha256": file.sha256,
        "level": max(levels, key=LEVELS.index, default=None),
        "observed": dict(islice(values.items(), MAX_OBSERVED)),
    }
    return {name: value for name, value in entry.items() if value}


def _causes(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> defaultdict[int, dict[str, str]]:
    """By reading: the causes of its leaves. Of reports that count on, and of ranks, the one that counts most has it."""
    start, steps, after = (draft.get(path) for path in (f"{WINDOW}.start", f"{WINDOW}.warmup_steps", AFTER))
    warm = DEFAULT if start is None and steps is None else start or steps or 0
    best: dict[tuple[str, str], tuple[tuple[bool, int], int, dict[str, int]]] = {}
    for _, reading in readings(files):
        late = {AFTER: _late(reading, warm, after)} if after else {}
        for leaf, causes in (reading.causes | late).items():
            worth = any(map(LINE.search, causes)), sum(causes.values())
            if worth > best.get((reading.source, leaf), ((False, 0),))[0]:
                best[reading.source, leaf] = worth, id(reading), causes
    by_reading: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for (_, leaf), (_, name, causes) in best.items():
        # The causes of one leaf, those with a line of the program and then the most frequent first.
        groups: dict[str, list[Any]] = {}
        for cause, count in causes.items():
            groups.setdefault(alike(cause), [cause, 0])[1] += count
        ordered = sorted(
            groups.values(), key=lambda item: (not LINE.search(item[0]), "changed from" not in item[0], -item[1])
        )
        words = [f"{cause[:400]}, {count} times" if count > 1 else cause[:400] for cause, count in ordered[:MAX_CAUSES]]
        words += [f"and {len(ordered) - MAX_CAUSES} other causes"] * (len(ordered) > MAX_CAUSES)
        by_reading[name][f"{CAUSE}{leaf}"[:200]] = "; ".join(words)
    return by_reading


def _late(reading: Reading, warm: int, after: int) -> dict[str, int]:
    """Causes of the compiles after the warm-up, with how many each of them made."""
    counts, reasons = reading.compile, Counter[str]()
    for span in counts.spans or ():
        reasons[span.why] += span.count * bool(span.why and span.after >= warm)
    if counts.spans is None:
        reasons.update(event.why for event in counts.unplaced if event.why)
    if counts.spans is None or reasons.total() > after:
        # Which of them came late is not shown: each cause once, and only those that name their line if some do.
        once = {alike(why): why for why, count in reasons.items() if count}.values()
        reasons = Counter([why for why in once if LINE.search(why)] or once)
    return {why: count for why, count in reasons.items() if count}


def _count(count: int) -> int:
    return max(-(2**62), min(count, 2**62))
