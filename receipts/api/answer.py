"""An answer: the command's JSON, the page that a report shows, the files it can be written as, and its table.

One class for every question, on the command line, over HTTP, in Python and for an agent. Columns of a table for pandas
are text, integers, numbers, truth values or times, and each may lack a value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Union

from receipts.base.environment import extra
from receipts.base.plugins import services

if TYPE_CHECKING:
    import pandas as pd

    from receipts.metrics import Launch
    from receipts.publish.page import Page, Table
    from receipts.publish.terminal import Terminal


Shown = Union["Page", "Table", str, Sequence["Page"], None]


class Answer:
    """What a question was answered with.

    ``data`` is what JSON prints, and ``shown`` a page, a table, text or several pages; each may be a function, of which
    only the one that is printed is called. ``notes`` lead a person on. ``files`` are what it can be written as, by
    name: bytes, text, or the files of a folder; None where there is none. ``rows`` and ``columns`` are its table.
    """

    notes: Sequence[str] = ()
    following: str | None = None  # the cursor of the next page of a list
    always: Sequence[str] = ()  # notes that explain the exit code, printed beside JSON as well
    _data: Any = None
    _shown: Any = None
    _code: int | Callable[[], int] = 0
    _files: Mapping[str, Callable[[], bytes | str | Mapping[str, bytes | str] | None]] = MappingProxyType({})
    _rows: Sequence[Mapping[str, Any]] | Callable[[], Sequence[Mapping[str, Any]]] | None = None
    _columns: Sequence[str] = ()
    _placed: Callable[[str], Mapping[str, Any]] | None = None  # what JSON says of the files, by where they are written

    def __init__(
        self,
        data: Any = None,
        shown: Shown | Callable[..., Shown] = None,
        code: int | Callable[[], int] = 0,
        notes: Sequence[str] = (),
        *,
        rows: Sequence[Mapping[str, Any]] | Callable[[], Sequence[Mapping[str, Any]]] | None = None,
        columns: Sequence[str] = (),
        files: Mapping[str, Callable[[], bytes | str | Mapping[str, bytes | str] | None]] = MappingProxyType({}),
        placed: Callable[[str], Mapping[str, Any]] | None = None,
    ) -> None:
        self._data, self._shown, self._code, self._rows, self._columns = data, shown, code, rows, columns
        self.notes, self._files, self._placed = notes, files, placed

    def __repr__(self) -> str:
        from receipts.publish.page import text

        return f"<{type(self).__name__} {text(self.page().headline) or self.page().title}>"

    def __str__(self) -> str:
        """The page, as the command prints it where nothing bounds its width."""
        from receipts.publish.terminal import Terminal

        return self.text(Terminal()).rstrip("\n")

    def __len__(self) -> int:
        return len(self.rows or ())

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows or ())

    @property
    def exit_code(self) -> int:
        """The code that the command ends with: 0 yes, 1 no, 3 undecided."""
        return self._code() if callable(self._code) else self._code

    @property
    def rows(self) -> Sequence[Mapping[str, Any]] | None:
        """The rows of its table; None for an answer that is none."""
        return self._rows() if callable(self._rows) else self._rows

    def to_dict(self) -> Any:
        """The answer as data, in JSON's types."""
        if callable(self._data):
            self._data = self._data()
        return self._data

    def to_json(self) -> str:
        """The text that the command prints with ``--json``, without the last line's end."""
        from receipts.publish.text import json_text

        data = self.to_dict()
        return data if isinstance(data, str) else json_text(data)

    def shown(self, **views: Any) -> Shown:
        """What people read of it; ``views`` are those of the question, such as every stated leaf."""
        if self._shown is None:
            return self.page(**views) if type(self).page is not Answer.page else None
        shown: Shown = self._shown(**views) if callable(self._shown) else self._shown
        return shown

    def page(self, **views: Any) -> Page:
        """The answer as a page, which a terminal, a report and a notebook show."""
        from receipts.publish.page import Page, Section, Table

        shown = self.shown(**views)
        if isinstance(shown, Page):
            return shown
        if isinstance(shown, Table):
            return Page(shown.caption or "Answer", sections=(Section("table", "", tables=(shown,)),))
        if isinstance(shown, str):
            return Page("Answer", lead=tuple(part for part in shown.split("\n\n") if part.strip()))
        pages = tuple(shown or ())
        if len(pages) == 1:
            return pages[0]
        return Page("Answer", sections=tuple(section for page in pages for section in page.sections))

    def text(self, terminal: Terminal, *, opened: bool = False, **views: Any) -> str:
        """The text that the command prints on such a terminal."""
        return terminal.text(self.shown(**views), opened=opened)

    def markdown(self, **views: Any) -> str:
        """The answer as Markdown, for a message."""
        from receipts.publish.markup import markdown

        shown = self.shown(**views)
        return shown if isinstance(shown, str) else markdown(self.page(**views))

    def line(self) -> str:
        """The first line of the page, whole."""
        from receipts.publish.terminal import Terminal

        return Terminal(100_000, None, colored=False).text(self.shown()).partition("\n")[0]

    def form(self, name: str, views: Mapping[str, Any] = MappingProxyType({})) -> str:
        """The answer as *json*, *markdown*, *html*, *csv* or *line*, with the last line's end."""
        shown = {view: value for view, value in views.items() if view != "verbose"}
        if name == "json":
            place = views.get("written")
            if self._placed is None or place is None:
                return f"{self.to_json()}\n"
            from receipts.publish.text import json_text

            return f"{json_text({**self.to_dict(), **self._placed(place)})}\n"
        if name == "markdown":
            return f"{self.markdown(**shown)}\n"
        if name == "csv":
            return csv_text(self.rows or (), self._columns)
        if name == "line":
            return f"{self.line()}\n"
        from receipts.publish.markup import document

        return document(self.page(**shown))

    def file(self, name: str) -> bytes | str | Mapping[str, bytes | str] | None:
        """One of the files that it can be written as; None where there is nothing to write."""
        return self._files[name]() if name in self._files else None

    def frame(self) -> pd.DataFrame:
        """The answer as a table with typed columns; maps and lists inside a row are JSON texts."""
        return frame_of_rows(self.rows or (), self._columns)

    def _repr_html_(self) -> str:
        """What a notebook shows: the page inside a cell, with its own style."""
        from receipts.publish.markup import html

        return html(self.page())


def with_sections(page: Page, subject: str, store: Any, item: Any) -> Page:
    """The page with the sections of plugins: ``of_receipt(store, receipt)`` or ``of_comparison(store, comparison)``.

    ``store`` is None where none was asked. A plugin gives None where it has nothing to show.
    """
    added = (getattr(module, f"of_{subject}")(store, item) for module in services("sections"))
    sections = tuple(section for section in added if section is not None)
    return replace(page, sections=(*page.sections, *sections)) if sections else page


class Answers(Answer):
    """Several answers, each printed as soon as it is there; as data they are one list, and the worst code counts."""

    def __init__(
        self, items: Iterable[Answer], worst: Callable[[Sequence[Answer]], int], *, always: Sequence[str] = ()
    ) -> None:
        self._items = iter(items)
        self._known: list[Answer] = []
        self._worst = worst
        self.always = always

    def each(self) -> Iterator[Answer]:
        """Every answer, those that were given out before among them."""
        yield from self._known
        for item in self._items:
            self._known.append(item)
            yield item

    @property
    def exit_code(self) -> int:
        """The worst of all."""
        return self._worst(list(self.each()))

    def to_dict(self) -> Any:
        """A list of their data."""
        return [item.to_dict() for item in self.each()]

    def shown(self, **views: Any) -> Shown:
        """Their pages."""
        return [item.page(**views) for item in self.each()]

    def text(self, terminal: Terminal, *, opened: bool = False, **views: Any) -> str:
        """Their texts, one after another."""
        return "".join(item.text(terminal, opened=opened, **views) for item in self.each())

    def file(self, name: str) -> bytes | str | Mapping[str, bytes | str] | None:
        """Their files, one after another."""
        parts = [part for item in self.each() if isinstance(part := item.file(name), bytes | str)]
        return b"".join(part if isinstance(part, bytes) else part.encode() for part in parts) if parts else None

    @property
    def rows(self) -> Sequence[Mapping[str, Any]] | None:
        """A row for each."""
        return [row for item in self.each() for row in (item.rows or ())]


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Rows as CSV; lists and maps are JSON, what is not known is empty."""
    import csv
    import io

    from receipts.publish.terminal import clean

    names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(names)
    for row in rows:
        cells = (row.get(name) for name in names)
        lines.writerow(
            clean(cell)
            if isinstance(cell, str)
            else json.dumps(cell, ensure_ascii=False, default=str)
            if isinstance(cell, list | tuple | dict)
            else cell
            for cell in cells
        )
    return written.getvalue()


STEPS: Final[dict[str, Any]] = {
    "receipt": "string",
    "label": "string",
    "step": "Int64",
    "seconds": "Float64",
    "steady": "boolean",
}
_DTYPES: Final = (({bool}, "boolean"), ({int}, "Int64"), ({int, float}, "Float64"), ({datetime}, "datetime64[us, UTC]"))


def frame_of_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """A table of rows: ``string``, ``Int64``, ``Float64``, ``boolean`` or ``datetime64[us, UTC]`` columns.

    Lists and maps are JSON texts. ``columns`` come first, whether or not a row has them.
    """
    pandas = extra("pandas", "data", "a table")
    names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    by_name = {}
    for name in names:
        values = [row.get(name) for row in rows]
        stated = [value for value in values if value is not None]
        kinds = {type(value) for value in stated}
        dtype: Any = next((dtype for known, dtype in _DTYPES if kinds and kinds <= known), "string")
        if dtype == "string":
            plain = (str, type(None))
            values = [
                value if isinstance(value, plain) else json.dumps(value, ensure_ascii=False, default=str)
                for value in values
            ]
        elif dtype == "Int64" and any(abs(value) >= 2**63 for value in stated):
            dtype = "Float64"
        by_name[name] = pandas.array(values, dtype=dtype)
    frame: pd.DataFrame = pandas.DataFrame(by_name)
    return frame


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
