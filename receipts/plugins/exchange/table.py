"""Tables as people keep them: a JSON list, JSON lines, CSV, or the tables of a Markdown note.

Numbers keep the text that they were printed with, because its last digit is their tolerance.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from receipts.base.errors import InputError, Problem

MAX_BYTES = 16 * 1024 * 1024
MAX_CELLS = 1_000_000  # a cell of one character costs a hundred bytes of memory
MARKDOWN = (".md", ".markdown")
_DIVIDER = re.compile(r"^\s*\|?\s*:?-{1,}:?\s*(\|\s*:?-{1,}:?\s*)*\|?\s*$")
_CELL = re.compile(r"(?<!\\)\|")
# A raised number behind a 10 is its exponent.
_FOOTNOTE = re.compile(
    r"\[\^[^\]\s]{1,60}\]|(?<!\b10)<sup>[^<]{0,60}</sup>|(?<=[\d%])(?:\s?[*†‡§]+|(?<!\b10)[¹²³⁴-⁹]+)$"
)
_REFERENCE = re.compile(r"(?<=[\d%])\s?\\?\[\d{1,2}\\?\](?=\s*$)")
# Layout in cells and headers; what is raised or lowered is part of its number.
_TAG = re.compile(r"</?(?!su[bp]\b)[a-zA-Z][^<>]{0,200}>")
_EMPHASIS = re.compile(r"(\*\*|__|`)([^*_`]+)\1")
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
# How people leave a cell blank.
_BLANK = frozenset({"", "-", "--", "\N{EN DASH}", "\N{EM DASH}", "\N{MINUS SIGN}", "n/a", "n.a.", "na", "tbd", "?"})
PLACE = ("section", "sections", "caption", "lead", "text")  # cells that tell where a table of a page is


class PrintedCell(float):
    """A number with the text that it was printed with."""

    text: str

    def __new__(cls, text: str) -> PrintedCell:
        printed = super().__new__(cls, text)
        printed.text = text
        return printed


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row. ``where`` is its place, for messages: `row 12` of a list, `line 12` of a file.

    ``problem`` is why its cells cannot be told apart; such a row is refused. ``table`` is the line of its header in a
    file of several tables.
    """

    where: str
    cells: dict[str, Any]
    problem: Problem | None = None
    table: int = 0

    def at(self, path: str) -> Any:
        """The value at a column's name or a dotted path; None if it is absent, null, or an empty text."""
        if path in self.cells:
            return _stated(self.cells[path])
        node: Any = self.cells
        for part in path.split("."):
            if not isinstance(node, dict):
                return None
            node = node.get(part)
        return _stated(node)


def _stated(value: Any) -> Any:
    if isinstance(value, str):
        value = value.strip()
        return None if value.lower() in _BLANK else value
    return None if value in ([], {}) else value


def read_table(path: Path, *, rows: str = "") -> list[TableRow]:
    """Every row of a file, by its suffix: .json, .jsonl (.ndjson), .csv (.tsv), .md (.markdown).

    ``rows`` is the dotted path to the list inside a JSON document; empty if the document is the list. Raises
    InputError with the place of what cannot be read.
    """
    text = read_text(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        return _json_list(text, str(path), rows)
    if suffix in (".jsonl", ".ndjson"):
        return list(_json_lines(text, str(path)))
    if suffix in (".csv", ".tsv"):
        return list(_delimited(text, str(path), "\t" if suffix == ".tsv" else ","))
    if suffix in MARKDOWN:
        return list(_markdown(text))
    do = "name a .json, .jsonl, .csv, .tsv or .md file"
    raise InputError(str(path), [Problem("$", f"{suffix or 'no suffix'} is not a known kind of table", do)])


def read_text(path: Path) -> str:
    """A file as text. Raises InputError if it is too large or not UTF-8."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(str(path), [Problem("$", f"it cannot be read: {error.strerror}", "check the path")]) from None
    if len(raw) > MAX_BYTES:
        raise InputError(str(path), [Problem("$", "it is larger than 16 MiB", "import it in parts")])
    if sum(map(raw.count, (b",", b"|", b"\t", b"[", b"{", b"\n"))) > MAX_CELLS:
        raise InputError(str(path), [Problem("$", f"it has more than {MAX_CELLS:,} cells", "import it in parts")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(str(path), [Problem("$", f"byte {error.start} is not UTF-8", "save it as UTF-8")]) from None


def _load(text: str) -> Any:
    def constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON; leave the value out")

    return json.loads(text, parse_float=PrintedCell, parse_constant=constant)


def _json_list(text: str, source: str, rows: str) -> list[TableRow]:
    try:
        node = _load(text)
    except (ValueError, RecursionError) as error:
        raise InputError(source, [Problem("$", f"this is not JSON: {error}", "mend the file")]) from None
    for part in rows.split(".") if rows else ():
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, list):
        do = 'say where the list is: rows = "path.to.list" under [notebook] of the mapping'
        raise InputError(source, [Problem(rows or "$", "there must be a list here", do)])
    return [_row(item, f"row {number}", source) for number, item in enumerate(node, 1)]


def _row(item: Any, where: str, source: str) -> TableRow:
    if not isinstance(item, dict):
        raise InputError(source, [Problem(where, "this is not an object", "give every row its columns' names")])
    return TableRow(where, item)


def _json_lines(text: str, source: str) -> Iterator[TableRow]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                item = _load(line)
            except (ValueError, RecursionError) as error:
                problem = Problem(f"line {number}", f"this is not JSON: {error}", "mend the line")
                raise InputError(source, [problem]) from None
            yield _row(item, f"line {number}", source)


def _delimited(text: str, source: str, delimiter: str) -> Iterator[TableRow]:
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        names = [name.strip() for name in reader.fieldnames or ()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(source, [Problem("line 1", f"column {twice[0]!r} occurs twice", "rename one of them")])
        for cells in reader:
            where = f"line {reader.line_num}"
            if not any(isinstance(value, str) and value.strip() for value in cells.values()):
                continue
            if None in cells:
                problem = Problem(where, "it has more cells than the header", "quote the cell that holds the delimiter")
                raise InputError(source, [problem])
            yield TableRow(where, {name.strip(): value for name, value in cells.items()})
    except csv.Error as error:
        problem = Problem(
            f"line {reader.line_num + 1}", f"this is not CSV: {error}", "shorten the cell, or end its quotes"
        )
        raise InputError(source, [problem]) from None


def _markdown(text: str) -> Iterator[TableRow]:
    """Rows of every table: with the heading above it as `section`, all of them as `sections`, its caption.

    `lead` is the whole block of text whose last line is the caption, and `text` all that stands below the heading.
    """
    lines = text.splitlines()
    headings: list[tuple[int, str]] = []
    lead: list[str] = []
    below: list[str] = []
    header, start, fenced, blank = None, 0, False, True
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or "|" not in line:
            header = None
            if not fenced and line.startswith("#"):
                level = len(line) - len(line.lstrip("#"))
                headings = [
                    *(item for item in headings if item[0] < level),
                    (level, _FOOTNOTE.sub("", line.lstrip("#")).strip()),
                ]
                lead, below = [], []
            elif not fenced and line.strip():
                lead = [*([] if blank else lead), _plain(line)]
                below.append(lead[-1])
            blank = not line.strip()
            continue
        following = lines[number] if number < len(lines) else ""
        if header is None:
            header, start = (_cells(line), number) if _DIVIDER.match(following) else (None, 0)
        elif not _DIVIDER.match(line):
            row = _cells(line)
            above = [heading for _, heading in headings]
            texts = (above[-1] if above else "", " / ".join(above), lead[-1] if lead else "")
            blocks = (_LINK.sub(r"\1", " ".join(block)) for block in (lead, below))
            place = dict(zip(PLACE, (*texts, *blocks), strict=True))
            cells: dict[str, Any] = {**place, **dict(zip(header, row, strict=False))}
            yield TableRow(f"line {number}", cells, _misplaced(header, row), start)


def _plain(text: str) -> str:
    """A cell or a caption without marks of emphasis and of footnotes; a footnote is not a digit of its number."""
    text = _FOOTNOTE.sub("", _EMPHASIS.sub(r"\2", _TAG.sub(" ", text).strip()))
    return _REFERENCE.sub("", text).strip()


def _misplaced(header: list[str], cells: list[str]) -> Problem | None:
    """Why nobody can say which cell is in which column, where nobody can."""
    twice = next((name for name in header if name and header.count(name) > 1), None)
    if twice is not None:
        return Problem("$", f"column {twice!r} occurs twice", "rename one of them")
    if any(cells[len(header) :]):
        return Problem("$", "it has more cells than the header", "write a bar inside a cell as \\|")
    if len(cells) < len(header):
        return Problem("$", "it has fewer cells than the header", "leave a cell blank where nothing was measured")
    return None


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [_plain(_LINK.sub(r"\1", cell.replace("\\|", "|"))).strip("*`").strip() for cell in _CELL.split(inner)]
