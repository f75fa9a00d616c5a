"""How a list is read: a value that a pure function makes of counts, so that it is tested without a database.

There are three ways. By key: all receipts of a name are read and sorted. By the axis index: receipts that have the
rarest of the values asked for. By scan: every receipt is looked at, in the order of the list. What most receipts have
is met by the newest few, so that a limited list of it looks at these before it asks an index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Order = Literal["newest", "oldest", "stored"]
Way = Literal["key", "index", "scan"]
Kind = Literal["name", "figure", "column", "axis"]

# Rows that an index is counted up to: 3 ms on SQLite, 6 ms on PostgreSQL. What has more is common.
COUNTED: Final = 50_000
# Receipts up to which all that a lead has are read and sorted, whatever else is asked of them: 10 ms.
FEW: Final = 2000
# Receipts that are looked at in order before an index is asked: 30 ms.
WALKED: Final = 5000
_DEARER: Final = 5  # to look at a receipt in order is as dear as to read so many out of an index


class Lead(NamedTuple):
    """What an index can be asked first: a kind of index, and which of that kind (a column, or an axis)."""

    kind: Kind
    name: str


class ListPlan(NamedTuple):
    """How a list is read. `most` bounds the receipts that are looked at, `walk` those that are in order before.

    ``lead`` is None in a scan alone. `documents` are the conditions, as typed, that only documents answer.
    """

    way: Way
    lead: Lead | None
    most: int
    walk: int = 0
    documents: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether no receipt can meet every condition."""
        return self.most == 0 and self.lead is not None

    @property
    def slow(self) -> bool:
        """Whether somebody who waits for it has to be told: a scan of many receipts, or many documents."""
        return self.most > FEW and (self.way == "scan" or bool(self.documents))


def plan_list(
    counts: Mapping[Lead, int], total: int, limit: int | None, order: Order = "newest", documents: tuple[str, ...] = ()
) -> ListPlan:
    """The plan of a list. ``counts`` are receipts of each lead, none counted beyond `COUNTED`; ``total`` all receipts.

    The rarest lead is asked. Where a limit may be met by what comes first, as many receipts are looked at before as
    cost what the index would.
    """
    if not counts:
        return ListPlan("scan", None, total, documents=documents)
    lead, count = min(counts.items(), key=lambda item: item[1])
    most = min(count, total) if count < COUNTED else total
    walk = min(WALKED, count // _DEARER) if limit is not None and order != "stored" and count > FEW else 0
    if lead.kind == "name" and count >= COUNTED:
        return ListPlan("scan", None, total, documents=documents)
    return ListPlan("key" if lead.kind == "name" else "index", lead, most, walk, documents)
