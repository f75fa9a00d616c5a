"""Evidence made by hand: files with readings, as readers would give them, for tests of putting them together."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reading import Reading, Remark
from receipts.receipt import Document, parse


def reading(source: str = "megatron", **stated: Any) -> Reading:
    """A reading that states leaves; ``__`` stands for a dot."""
    made = Reading(source, records=1)
    for line, (leaf, value) in enumerate(stated.items(), start=1):
        made.state(leaf.replace("__", "."), value, line=line)
    return made


def stepping(
    seconds: Iterable[float | None], source: str = "megatron", first: int = 1, every: int = 1, **columns: Any
) -> Reading:
    """A reading of steps with these times; other columns are one value, or one a step."""
    made = Reading(source, records=1)
    for index, value in enumerate(seconds):
        values = {name: item[index] if isinstance(item, list) else item for name, item in columns.items()}
        made.steps.put(first + every * index, {"step_seconds": value, **values})
    return made


def file(
    folder: Path,
    *readings: Reading,
    name: str = "run.log",
    text: str = "2026-03-02 09:00:00 begin\n",
    remarks: tuple[Remark, ...] = (),
) -> FileEvidence:
    """A file on the disk whose readings are these."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    digest = sha256(path.read_bytes() + name.encode()).hexdigest()
    return FileEvidence(path, name, digest, path.stat().st_size, readings, remarks)


def ingested(*files: FileEvidence, **settings: Any) -> Ingested:
    """The files put together; the result is a receipt, which is asked for here."""
    options = Options(settings={name.replace("__", "."): value for name, value in settings.items()})
    found = assemble(files, options)
    if not found.problems:
        parse(Document(found.raw, "test"))
    return found


def at(found: Ingested, path: str) -> Any:
    """What the tree holds at a path."""
    node: Any = found.tree
    for key in path.split("."):
        node = node.get(key) if isinstance(node, dict) else None
    return node


def told(found: Ingested) -> str:
    """All remarks as one text."""
    return "\n".join(item.text for item in found.messages)
