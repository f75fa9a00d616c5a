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

# Rows that an index is counted up to, and that are read and sorted at once: 20 ms. What has more is common.
COUNTED: Final = 20_000
# Receipts that an index is asked for at once, and that nobody waits for: 10 ms.
FEW: Final = 2000
# To look at a receipt in order is as dear as to read so many out of an index.
DEARER: Final = 4


class Lead(NamedTuple):
    """What an index can be asked first: a kind of index, and which of that kind (a column, or an axis)."""

    kind: Kind
    name: str


class ListPlan(NamedTuple):
    """How a list is read. `most` bounds the receipts that are looked at; `walk` says that the newest come before.

    ``lead`` is None in a scan alone. `documents` are the conditions, as typed, that only documents answer.
    """

    way: Way
    lead: Lead | None
    most: int
    walk: bool = False
    documents: tuple[str, ...] = ()

    @property
    def most_walked(self) -> int:
        """Receipts that are looked at in order before the lead is asked: as many as cost what it would."""
        return min(self.most, COUNTED) // DEARER if self.walk else 0

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

    The rarest lead is asked. Where even that one has many, what comes first may meet a limit.
    """
    lead, count = min(counts.items(), key=lambda item: item[1], default=(None, COUNTED))
    if lead is None or (lead.kind in ("name", "figure") and count >= COUNTED):
        return ListPlan("scan", None, total, documents=documents)
    walk = count > FEW and limit is not None and order != "stored"
    most = min(count, total) if count < COUNTED else total
    return ListPlan("key" if lead.kind == "name" else "index", lead, most, walk, documents)
