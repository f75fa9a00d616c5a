"""A page as Markdown for chat and pull requests: no text of a receipt becomes markup; folds are ``<details>``."""

from __future__ import annotations

from collections.abc import Iterator

from receipts.publish.page import Cell, Code, Entry, Mark, Page, Section, Table
from receipts.publish.page import text as read
from receipts.publish.render.layout import header
from receipts.publish.text import cell as escaped


def markdown(page: Page) -> str:
    """The whole page, self-contained."""
    return "\n".join(_blank_lines(_page(page)))


def _page(page: Page) -> Iterator[str]:
    if page.headline:
        yield f"**{_cell(page.headline)}**"
        yield ""
    for name, cell in page.facts:
        yield f"**{name}** {_cell(cell)}  " if name else _cell(cell)
    yield ""
    for sentence in page.lead:
        yield from (escaped(sentence), "")
    for section in page.sections:
        yield from _section(section)
    for command, why in page.next:
        yield f"- {escaped(why)}: `{command}`"
    yield ""
    for name, cell in page.foot:
        yield f"**{f'{name}: ' if name else ''}{_cell(cell)}**"


def _section(section: Section) -> Iterator[str]:
    if section.fold:
        yield from (f"<details><summary>{escaped(section.fold)}</summary>", "", f"{escaped(section.title)}:", "")
    elif section.title:
        yield from (f"**{escaped(section.title)}**", "")
    for sentence in section.sentences:
        yield from (escaped(sentence), "")
    for name, cells in section.points:
        yield from (f"- {f'{escaped(name)}: ' if name else ''}{_cell(cell)}" for cell in cells)
    for table in section.tables:
        yield from _table(table)
    for entry in section.entries:
        yield _entry(entry)
    yield ""
    for inner in section.sections:
        yield from _section(inner)
    if section.fold:
        yield from ("</details>", "")


def _table(table: Table) -> Iterator[str]:
    if not table.rows:
        yield from ((escaped(table.empty), "") if table.empty else ())
        return
    yield f"| {' | '.join(escaped(header(column)) for column in table.columns)} |"
    yield f"| {' | '.join('---:' if column.numeric else '---' for column in table.columns)} |"
    for row in table.rows:
        yield f"| {' | '.join(_cell(cell) for cell in row.cells)} |"
    yield ""
    for sentence in table.after:
        yield from (escaped(sentence), "")


def _entry(entry: Entry) -> str:
    facts = "; ".join(f"{escaped(name)} {_cell(cell)}".strip() for name, cell in entry.facts)
    line = f" {_cell(entry.line)}" if entry.line else ""
    return f"- **{_cell(entry.title)}**{line}{f': {facts}' if facts else ''}"


def _cell(cell: Cell) -> str:
    parts = []
    for part in cell:
        if isinstance(part, Code) and part.text.isprintable() and "`" not in part.text:
            parts.append(f"`{part.text}`")
        elif isinstance(part, Mark):
            parts.append(escaped(part.text))
        else:
            parts.append(escaped(read((part,))))
    return "".join(parts)


def _blank_lines(lines: Iterator[str]) -> Iterator[str]:
    """Lines with no two blank ones in a row, and none at the end."""
    blank = False
    for line in lines:
        if line:
            yield from ("", line) if blank else (line,)
        blank = not line
