"""Answers that are lists: stored receipts, neighbors, hops of a bridge, the frontier, claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from receipts.api.answer import Answer

if TYPE_CHECKING:
    import pandas as pd

    from receipts.api.receipt import Receipt
    from receipts.api.store import Store
    from receipts.publish.page import Page
    from receipts.store import Entry

# Of the row of a receipt; what a store numbers for itself is left out.
INTERNAL = frozenset({"seq", "generation", "geometry", "layout"})


@dataclass(frozen=True, eq=False, repr=False)
class Listed(Answer):
    """A list: the command's JSON, the rows of its table, its page, and the code that the command ends with."""

    document: Any
    rows: Sequence[Mapping[str, Any]]
    shown: Callable[[], Page]
    exit_code: int = 0
    columns: Sequence[str] = ()  # that the table has without any row, too

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def to_dict(self) -> Any:
        """What the command prints with ``--json``."""
        return self.document

    def page(self) -> Page:
        """The list as a page."""
        return self.shown()

    def frame(self) -> pd.DataFrame:
        """A row for each item; maps and lists inside one are JSON texts."""
        from receipts.api.frames import of_rows

        return of_rows(self.rows, self.columns)


@dataclass(frozen=True, eq=False, repr=False)
class Receipts(Answer):
    """Stored receipts that meet some conditions, in their order; iterating reads each as a `Receipt`."""

    store: Store
    entries: Sequence[Entry]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Receipt]:
        return (self.store.get(item.id) for item in self.entries)

    def __getitem__(self, index: int) -> Receipt:
        return self.store.get(self.entries[index].id)

    def to_dict(self) -> list[dict[str, Any]]:
        """What ``receipts list --json`` prints: the columns of each row."""
        return [item._asdict() for item in self.entries]

    def page(self) -> Page:
        """The table that ``receipts list`` prints."""
        from receipts.publish.page import Page, Section
        from receipts.publish.tables import stored

        count = len(self.entries)
        headline = (f"{count:,} receipt{'' if count == 1 else 's'}",)
        return Page("Receipts", headline, sections=(Section("receipts", "", tables=(stored(self.entries),)),))

    def frame(self) -> pd.DataFrame:
        """A row for each receipt: the columns of a list, then the effective value of every axis, by its path.

        ``tokens_per_second`` is in tokens a second, times in seconds, memory in bytes, ``mfu`` a fraction. ``status``
        and ``path_answer`` are those of the verdict that the receipt was stored with. Reads every document.
        """
        from receipts.api.frames import of_rows
        from receipts.store import Entry

        columns = [name for name in Entry._fields if name not in INTERNAL]
        rows = [
            {**{name: getattr(item, name) for name in columns}, **self.store.launch(item.id).settings.effective}
            for item in self.entries
        ]
        return of_rows(rows, columns)

    def steps(self) -> pd.DataFrame:
        """A row for each step of each receipt: receipt, label, step (from 0), seconds, steady."""
        from receipts.api.frames import of_steps

        return of_steps(self.store.launch(item.id) for item in self.entries)
