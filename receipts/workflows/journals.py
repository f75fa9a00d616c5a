"""A receipt against the journals of its recorder: replayed, they say what the receipt stated when it was written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from receipts.base.errors import InputError
from receipts.emit import document, journal
from receipts.emit.merge import UnmergeableParts, load_part, merge
from receipts.ingest.leaves import parts as keys
from receipts.receipt import Document, parse

if TYPE_CHECKING:
    from receipts.emit.merge import RankPart
    from receipts.receipt import Parsed

# What is written about the document itself, and lists to which readers add.
_ABOUT: Final = ("schema_version", "run.recorded.", "run.entries.", "run.supersedes.", "notes.", "evidence[")
# Read again from the last words of a run that failed, or from what others say of it.
_ENDING: Final = ("run.outcome", "run.exit_code", "run.finished", "failure.")


def is_journal(path: Path) -> bool:
    """Whether a file is a journal of the recorder."""
    with path.open("rb") as stream:
        return stream.read(len(journal.MARK)) == journal.MARK


def part_of(path: Path, launch: str) -> RankPart | None:
    """What a journal holds; None if it is of another launch, or cannot be replayed."""
    try:
        part = load_part(str(path))
    except UnmergeableParts:
        return None
    return part if part.launch == launch else None


def differences(parsed: Parsed, ranks: Sequence[RankPart]) -> Iterator[tuple[str, str]]:
    """Each leaf that the journals of all ranks contradict, with the reason; nothing where a rank's is not there.

    What a reader read from a file, or a person stated to ``ingest`` later, is in no journal.
    """
    if {part.rank for part in ranks} != set(range(ranks[0].world)):
        return
    try:
        tree = merge(ranks).tree if len(ranks) > 1 else ranks[0].receipt
        stated = parse(Document("".join(document.tree_text(tree)).encode(), ranks[0].source)).stated
    except (UnmergeableParts, InputError) as error:
        yield "journal", f"it cannot be replayed: {str(error).splitlines()[0]}"
        return
    later = _added_later(parsed)
    failed = stated["run.outcome"] != "ok"
    for path in sorted({*parsed.stated, *stated}):
        if path.startswith(_ABOUT) or (failed and path.startswith(_ENDING)):
            continue
        mine, theirs = parsed.stated.get(path), stated.get(path)
        if mine == theirs or not later.isdisjoint((path, path.partition("[")[0], f"{keys(path)[0]}.*")):
            continue
        yield path, f"{short(mine)} is stated, and its journal says {short(theirs)}"


def _added_later(parsed: Parsed) -> set[str]:
    held = (parsed.receipt.notes or {}).get("ingest.stated_by_user")
    return {path for entry in parsed.receipt.evidence or () for path in entry.read or ()} | {
        *(held if isinstance(held, tuple) else ())
    }


def short(value: Any) -> str:
    """A value in few words; of a long list how many it has."""
    if value is None:
        return "nothing"
    return f"{len(value)} values" if isinstance(value, list | tuple | dict) and len(value) > 3 else str(value)[:60]
