"""How a list is read: a value that a pure function makes of counts, so that it can be tested without a database.

A list has three ways. By key: the receipts of a name. By index: the receipts whose configurations have the requested
axis values. By scan: every receipt, in the order of the list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Final, Literal, NamedTuple

Order = Literal["newest", "oldest", "stored"]
Way = Literal["key", "index", "scan"]

AXES: Final = "axes"  # the lead that is all conditions on axes together; any other is the name of a column
# Receipts of a lead that are counted, at 1 µs each. A lead with more is common: the newest receipts are likely to have
# enough of it for one screen.
COUNTED: Final = 5000
# Of a lead on axes beside conditions on columns: with more than so large a share of all receipts, one index over both
# the order and the columns is read, which is quicker than the rows of every receipt of the lead.
SHARE: Final = 0.1
SCANNED: Final = 100_000  # receipts that a scan passes in 40 ms, or in half a second where it tests a pattern
FIRST: Final = 500  # receipts of the first page: a common condition is met by so many of the newest, in 2 ms
PAGE: Final = 20_000  # receipts of a later page: 20 ms


class ListPlan(NamedTuple):
    """How a list is read: at most `most` receipts, those of ``lead``, which is None in a scan.

    The receipts of a ``common`` lead are first looked for among the first receipts of all. `documents` are the
    conditions, as typed, that only documents answer.
    """

    way: Way
    lead: str | None
    most: int
    common: bool = False
    documents: tuple[str, ...] = ()

    @property
    def slow(self) -> bool:
        """Whether to warn whoever waits for it: a scan of very many receipts, or many documents."""
        return self.most > (COUNTED if self.documents else SCANNED) and (self.way == "scan" or bool(self.documents))

    def pages(self) -> Iterator[tuple[bool, int]]:
        """The pages to read: whether each is of the lead's receipts or of all, and how many receipts it has.

        The first receipts of a common lead have a page of their own: to find them costs a third of sorting them all.
        """
        if self.common:
            yield from ((False, FIRST), (False, 4 * FIRST), (True, FIRST))
        size = FIRST
        while self.lead is None:
            yield False, size
            size = min(4 * size, PAGE)
        yield True, self.most


def counted(total: int, *, beside_columns: bool) -> int:
    """How many receipts of a lead are counted."""
    return max(COUNTED, int(SHARE * total)) if beside_columns else COUNTED


def plan_list(
    counts: Mapping[str, int], total: int, documents: tuple[str, ...] = (), *, beside_columns: bool = False
) -> ListPlan:
    """The plan of a list. ``counts`` are receipts by lead, as far as `counted`; ``total`` is all receipts.

    ``beside_columns`` says that conditions on columns are tested, too.
    """
    lead, count = min(counts.items(), key=itemgetter(1), default=(None, 0))
    if lead is None or (lead == AXES and beside_columns and count >= counted(total, beside_columns=True)):
        return ListPlan("scan", None, total, documents=documents)
    common = count >= COUNTED
    return ListPlan("index" if lead == AXES else "key", lead, total if common else count, common, documents)
