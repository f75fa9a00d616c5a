"""A rank's part of a launch: what it would have put into a receipt, with its place among the ranks."""

from __future__ import annotations

from receipts.emit import document
from receipts.emit.facts import RECORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from receipts.emit.record import RunRecord

PART_VERSION = 1


def part(record: RunRecord) -> dict[str, Any]:
    """The part of a record: not a receipt, so that no rank's numbers can be taken for the launch's."""
    tree = document.tree(record)
    return {
        "receipts_part": PART_VERSION,
        "launch": record.head["launch"],
        "rank": record.place.rank,
        "world": record.place.world,
        "local_rank": record.place.local_rank,
        "host": record.place.host,
        "device": record.failure.get("device"),
        "journal": record.journal,
        "sources": document.sources(record),
        "receipt": tree,
    }


def pieces(record: RunRecord) -> Iterator[str]:
    """What a finished record is written as: the receipt of a lone process, the part of one rank of many."""
    if record.place.world > 1:
        return document.text(part(record))
    tree = document.tree(record)
    journals = [record.journal] if record.journal else []
    return document.sealed(document.counted(tree, RECORDER, journals, document.sources(record)))
