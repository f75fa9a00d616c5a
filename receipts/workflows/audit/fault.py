"""What an audit finds wrong: where, what, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from receipts.store.inspection import Unreadable

RESTORE: Final = "restore a backup: receipts restore FILE"
SHOWN: Final = 5
Kind = Literal[
    "schema", "document", "column", "verdict", "reference", "tombstone", "seal", "gap", "index", "unreadable"
]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not as it was written: where, what was found, and what to do."""

    kind: Kind
    where: str
    found: str
    do: str


def unreadable(row: Unreadable) -> Fault:
    return Fault("unreadable", f"row {row.number} of {row.table}", row.why, RESTORE)
