"""The pages of ingest, merge and recover: the receipt that was written of files or of what a run left behind.

An ingest shows what each file is, what was read where, what was not, and what does not agree; merge and recover show
what is wrong with the receipt. A leaf by itself has a page too: what it means and what it takes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from shlex import quote
from typing import TYPE_CHECKING, Any

from receipts.base.units import counted
from receipts.base.untrusted_text import short
from receipts.publish.page import Cell, Entry, Page, Section, Table, lines_of, sections_of, table_of
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.emit.merge import Merged
    from receipts.ingest.assembly import Ingested
    from receipts.ingest.draft import Message, SourcedLeaf
    from receipts.ingest.evidence import FileEvidence
    from receipts.ingest.leaves import LeafType
    from receipts.ingest.reading import Reading
    from receipts.receipt.leaves import Leaf

SHOWN = 12
FILES_SHOWN = 40
LACKS_SHOWN = 8
VALUE = 44
# Parts of other leaves, or the same in every receipt; `--json` has them.
_PASSED = ("run.provenance", "measurement.loss.steps", "measurement.loss.values", "measurement.stated.statistic")
_MAPS = ("wheels", "flags", "features", "patches", "notes")
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def page(files: Sequence[FileEvidence], ingested: Ingested, passed_by: Sequence[str]) -> Page:
    """The whole page; of files that no reader knows no more than that, what is broken, and lines like steps."""
    folders = {os.path.dirname(file.name) for file in files}
    # The folder that all files lie in is printed once; absolute and relative ones have none in common.
    within = folders and "" not in folders and len({os.path.isabs(item) for item in folders}) == 1
    folder = os.path.join(os.path.commonpath(folders), "") if within else ""
    known = Section("files", "Files", tables=(_files(files, folder),))
    answer = (f"{counted(len(files), 'file')}{f' of {folder}' if folder else ''}",)
    if not any(file.readings for file in files):
        remarks = [
            item for item in ingested.messages if item.kind == "broken" or (item.where and item.where.place.line)
        ]
        return Page("Ingest", answer, sections=sections_of(known, _remarks(remarks, passed_by, 0)))
    of_one = files[0].name if len(files) == 1 else folder
    leaves = table_of("", "leaf | value… | from", _rows(ingested.leaves, of_one))
    shown = sorted(ingested.missing, key=lambda item: not item.path.startswith("measurement."))[:LACKS_SHOWN]
    more = tuple(_more(len(ingested.missing) - len(shown)))
    ways = [item.get.replace(item.path, "") for item in shown]
    lacking_rows = (
        (item.path, "likewise" if at and way == ways[at - 1] else item.get)
        for at, (item, way) in enumerate(zip(shown, ways, strict=True))
    )
    lacks = table_of("", "leaf | what would give it", lacking_rows, more)
    apart = []
    for other in ingested.contradictions[:SHOWN]:
        stands = f"{other.stands} stands" if other.stands else "left unstated; --set states it" if other.path else ""
        title: Cell = (f"{other.path}: {other.what}".removeprefix(": "),)
        apart.append(Entry("", title, (("→", (stands,)),) if stands else ()))
    apart += [Entry("", (text,)) for text in _more(len(ingested.contradictions) - SHOWN)]
    sections = sections_of(
        known,
        Section("found", "Found", tables=(leaves,)),
        Section("contradictions", "Does not agree", entries=tuple(apart)),
        # What decides stands before what merely lacks.
        _remarks(ingested.messages, passed_by, ingested.omitted),
        Section("missing", "Not found", tables=(lacks,)),
    )
    counts = (
        (len(ingested.leaves), "read"),
        (len(ingested.contradictions), "do not agree"),
        (len(ingested.missing), "not found"),
    )
    answer = (f"{answer[0]}; leaves: {', '.join(f'{count} {word}' for count, word in counts if count)}",)
    return Page("Ingest", answer, sections=sections)


def _files(files: Sequence[FileEvidence], folder: str) -> Table:
    known = [file for file in files if file.readings]
    unknown = len(files) - len(known)
    shown = (known if len(files) > SHOWN else list(files))[:FILES_SHOWN]
    after = [*_more(len(known) - FILES_SHOWN)]
    if unknown and len(files) > SHOWN:
        after.append(f"and {unknown} in which nothing is known to any reader")
    rows = (
        (
            file.name.removeprefix(folder),
            next((f"{file.size / scale:.3g} {unit}" for unit, scale in _SIZES if file.size >= scale), f"{file.size} B"),
            ", ".join(map(_reading, file.readings)) or "nothing known to any reader",
        )
        for file in shown
    )
    return table_of("", "file | #size | what it is", rows, tuple(after), empty="nothing")


def _reading(reading: Reading) -> str:
    steps = len(reading.steps)
    parts = []
    if steps:
        parts.append(counted(steps, "step"))
    if count := sum(item.is_oom is not False or item.fatal for item in reading.failures):
        parts.append(counted(count, "failure"))
    elif reading.failures:
        parts.append("words like a failure's, and none")
    if reading.seen:
        parts.append(", ".join(dict.fromkeys(f"{seen.leaf} {seen.value}" for seen in reading.seen[:3])))
    return f"{reading.source} ({'; '.join(parts)})" if parts else reading.source


def _rows(values: Iterable[SourcedLeaf], folder: str) -> Iterable[tuple[str, str, str]]:
    """One row a leaf, in the order of the document; large open maps in one."""
    kept = [item for item in values if item.path not in _PASSED and item.path != "evidence"]
    sizes = Counter(item.path.partition(".")[0] for item in kept)
    printed: set[str] = set()
    for item in kept:
        section = item.path.partition(".")[0]
        if section in _MAPS and sizes[section] > SHOWN // 2:
            if section not in printed:
                printed.add(section)
                yield f"{section}.*", f"{sizes[section]} entries", _place(str(item.where), folder)
            continue
        where = "proposed" if item.path == "run.lane" else ""
        where = where if item.where.file == "ingest" else str(item.where)
        yield item.path, _value(item), _place(where, folder)


def _place(where: str, known: str) -> str:
    """A place without the folder, or the only file, which is above the table."""
    rest = where.removeprefix(known)
    return f"line {rest[1:]}" if rest.startswith(":") else rest


def _value(item: SourcedLeaf) -> str:
    """The value, a long list by what is said of it, bytes as people read them."""
    value = item.value
    if item.path == "run.launch" and item.text:
        return f"{value[:12]}… ({item.text})"
    if isinstance(value, list | tuple | dict):
        words = (
            list(map(str, value[:6]))
            if not isinstance(value, dict)
            else [f"{key}: {len(inner) if isinstance(inner, list) else inner}" for key, inner in value.items()]
        )
        return item.text or short(", ".join(words), VALUE) or "none"
    if item.path.endswith("bytes") and isinstance(value, int) and value >= 1 << 20:
        return f"{value / (1 << 30):.4g} GiB" if value >= 1 << 30 else f"{value / (1 << 20):.4g} MiB"
    if item.path.startswith("measurement.stated.") and item.text and isinstance(value, float):
        return f"{value:g} ({item.text})"[:VALUE]
    text = str(value).lower() if isinstance(value, bool) else f"{value:,}" if isinstance(value, int) else str(value)
    return short(text, VALUE)


def _remarks(remarks: Sequence[Message], passed_by: Sequence[str], omitted: int) -> Section:
    weight = ("broken", "missing", "note").index
    # Broken input, what is missing, what was read in a file, and what concerns none or says nothing.
    ordered = sorted(remarks, key=lambda item: (weight(item.kind), item.where is None or not item.where.place.line))
    words = [f"{item.where}: {item.text}" if item.where else item.text for item in ordered]
    words += passed_by
    more = _more(len(words) + omitted - SHOWN) if words else ()
    return Section("remarks", "Remarks", points=lines_of((*words[:SHOWN], *more)))


def _more(count: int) -> tuple[str, ...]:
    return (f"and {count:,} more; see them all with --json",) if count > 0 else ()


def as_data(files: Sequence[FileEvidence], ingested: Ingested, passed_by: Sequence[str]) -> dict[str, Any]:
    """Everything as data."""
    import hashlib

    return {
        "receipt": ingested.tree,
        "id": hashlib.sha256(ingested.raw).hexdigest() if not ingested.problems else None,
        "problems": [problem._asdict() for problem in ingested.problems],
        "files": [
            {
                "name": file.name,
                "bytes": file.size,
                "sha256": file.sha256,
                "readings": [
                    {"source": item.source, "version": item.version, "records": item.records, "steps": len(item.steps)}
                    for item in file.readings
                ],
            }
            for file in files
        ],
        "found": [
            {"path": item.path, "from": str(item.where), "source": item.source, "text": item.text}
            for item in ingested.leaves
        ],
        "missing": [asdict(item) for item in ingested.missing],
        "contradictions": [asdict(item) for item in ingested.contradictions],
        "remarks": [
            {"kind": item.kind, "text": item.text, "from": str(item.where) if item.where else ""}
            for item in ingested.messages
        ]
        + [{"kind": "note", "text": text, "from": ""} for text in passed_by],
        "untold": ingested.omitted,
    }


def merged(item: Merged, written: str | None) -> Page:
    """The receipt of many ranks, where they disagree, and which are missing; nothing is ``written`` without them."""
    from receipts.emit.rank_join import ranks

    steps = len(item.tree.get("measurement", {}).get("step_durations_seconds", ()))
    lead = item.disagreements
    if item.missing:
        lead = (*lead, f"parts of {ranks(item.missing)} are missing; name them, or their journals")
    if written is None:
        return Page("Merge", ("nothing was written; --partial writes what there is",), lead=lead)
    answer = f"wrote {written}: {counted(steps, 'step')}, {item.tree['run']['outcome']}"
    return Page("Merge", (answer,), lead=lead, next=((f"receipts check {written}", "next"),))


def recovered(data: Mapping[str, Any]) -> Page:
    """The receipt of a journal, and how its run ended."""
    follow = (f"receipts check {data['written']}", "next")
    if data["world"] > 1:
        why = f"this is rank {data['rank']} of {data['world']}; next, merge every part"
        follow = ("receipts merge PART… -o run.json", why)
    answer = f"wrote {data['written']}: {data['steps']} steps, {data['outcome']}"
    lead: list[str] = []
    if failure := data["failure"]:
        kind = f"{failure['class']}, " if "class" in failure else ""
        lead.append(f"{kind}phase {failure.get('phase', 'unknown')}, after step {failure.get('step', 0)}")
        lead += str(failure.get("message", "")).splitlines()[:1]
    return Page("Recover", (answer,), lead=tuple(lead), next=(follow,))


say = words("leaf")


def of_leaf(leaf: Leaf, takes: LeafType | None) -> Page:
    """The whole of_leaf; ``takes`` is None for a leaf that cannot be stated on its own."""
    path = leaf.path.replace("*", "NAME")
    facts: list[tuple[str, str]] = [("type", takes.type if takes else say("not_stated_alone"))]
    if takes and takes.allowed:
        facts.append(("allowed", ", ".join(takes.allowed)))
    if takes:
        facts.append(("example", say("set", setting=quote(f"{path}={takes.example}"))))
    if leaf.unit:
        facts.append(("unit", leaf.unit))
    facts.append(("role", leaf.role.value))
    if leaf.axis:
        facts.append(("axis", say("itself") if leaf.axis == leaf.path else leaf.axis))
    facts.append(("since", leaf.since))
    headline: Cell = (say("headline", path=leaf.path, description=leaf.description),)
    return Page(leaf.path, headline, facts=tuple((say(name), (text,)) for name, text in facts))
