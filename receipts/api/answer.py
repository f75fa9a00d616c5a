"""An answer: the command's JSON, the page that a report shows, and a table for pandas.

Columns of a table are text, integers, numbers, truth values or times, and each may lack a value. A list is an answer
too: stored receipts, neighbors, hops of a bridge, the frontier, claims.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from receipts.base.environment import extra
from receipts.publish.json_text import json_text

if TYPE_CHECKING:
    import pandas as pd

    from receipts.api.receipt import Receipt
    from receipts.api.store import Store
    from receipts.metrics import Launch
    from receipts.publish.page import Page
    from receipts.store import Entry


class Answer:
    """What a question was answered with."""

    def __repr__(self) -> str:
        from receipts.publish.page import text

        return f"<{type(self).__name__} {text(self.page().headline) or self.page().title}>"

    @property
    def exit_code(self) -> int:
        """The code that the command ends with: 0 yes, 1 no, 3 undecided."""
        return 0

    def to_dict(self) -> Any:
        """The answer as data, in JSON's types."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The text that the command prints with ``--json``, without the last line's end."""
        return json_text(self.to_dict())

    def page(self) -> Page:
        """The answer as a page, which a terminal, a report and a notebook show."""
        raise NotImplementedError

    def frame(self) -> pd.DataFrame:
        """The answer as a table with typed columns."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """What a notebook shows: the page inside a cell, with its own style."""
        from receipts.publish.html import html

        return html(self.page())


STEPS: Final[dict[str, Any]] = {
    "receipt": "string",
    "label": "string",
    "step": "Int64",
    "seconds": "Float64",
    "steady": "boolean",
}
_DTYPES: Final = (
    ({bool}, "boolean"),
    ({int}, "Int64"),
    ({int, float}, "Float64"),
    ({datetime}, "datetime64[us, UTC]"),
)


def frame_of_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """A table of rows: ``string``, ``Int64``, ``Float64``, ``boolean`` or ``datetime64[us, UTC]`` columns.

    Lists and maps are JSON texts. ``columns`` come first, whether or not a row has them.
    """
    pandas = extra("pandas", "data", "a table")
    names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    frame: pd.DataFrame = pandas.DataFrame({name: _column([row.get(name) for row in rows]) for name in names})
    return frame


def _column(values: list[Any]) -> Any:
    stated = [value for value in values if value is not None]
    kinds = {type(value) for value in stated}
    dtype: Any = next((dtype for known, dtype in _DTYPES if kinds and kinds <= known), "string")
    if dtype == "string":
        values = [value if value is None or isinstance(value, str) else _json(value) for value in values]
    elif dtype == "Int64" and any(abs(value) >= 2**63 for value in stated):
        dtype = "Float64"
    return extra("pandas", "data").array(values, dtype=dtype)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def frame_of_steps(launches: Iterable[Launch]) -> pd.DataFrame:
    """A row for each step, in order: receipt, label, step (from 0), seconds, and whether it is in the steady segment.

    A launch whose steps are not kept has no rows.
    """
    pandas = extra("pandas", "data", "a table")
    columns: dict[str, list[Any]] = {name: [] for name in STEPS}
    for launch in launches:
        segment, count = launch.segment, len(launch.durations)
        steady = set(segment.of(range(count))) if segment is not None and segment.status == "steady" else ()
        columns["receipt"] += [launch.parsed.id] * count
        columns["label"] += [launch.parsed.name] * count
        columns["step"] += range(count)
        columns["seconds"] += launch.durations
        columns["steady"] += [step in steady for step in range(count)]
    frame: pd.DataFrame = pandas.DataFrame(
        {name: pandas.array(values, dtype=STEPS[name]) for name, values in columns.items()}
    )
    return frame


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

        return frame_of_rows(self.rows, self.columns)


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
        from receipts.store import Entry

        columns = [name for name in Entry._fields if name not in INTERNAL]
        rows = [
            {**{name: getattr(item, name) for name in columns}, **self.store.launch(item.id).settings.effective}
            for item in self.entries
        ]
        return frame_of_rows(rows, columns)

    def steps(self) -> pd.DataFrame:
        """A row for each step of each receipt: receipt, label, step (from 0), seconds, steady."""

        return frame_of_steps(self.store.launch(item.id) for item in self.entries)
