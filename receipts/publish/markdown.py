"""A page as Markdown, for chat, pull requests and files: no text of a receipt becomes markup; folds are ``<details>``.

A document has a title, headings, and links to its own anchors; what is pasted into a message has none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from receipts.publish.page import Cell, Code, Link, Mark, Page, Part, Section, Table
from receipts.publish.terminal import column_header
from receipts.publish.text import cell as escaped


def markdown(page: Page, *, document: bool = False) -> str:
    """The whole page, self-contained."""
    return "\n".join(_blank_lines(_Markdown(document).page(page)))


@dataclass(frozen=True, slots=True)
class _Markdown:
    document: bool

    def page(self, page: Page) -> Iterator[str]:
        if self.document:
            yield from (f"# {escaped(page.title)}", "")
        if page.headline:
            yield from (f"**{self._cell(page.headline)}**", "")
        yield from (f"**{name}** {self._cell(cell)}  " if name else self._cell(cell) for name, cell in page.facts)
        yield ""
        yield " · ".join(f"**{escaped(item.value)}** {escaped(item.label)}" for item in page.badges)
        for sentence in page.lead:
            yield from (escaped(sentence), "")
        for section in page.sections:
            yield from self._section(section, 2)
        for command, why in page.next:
            yield f"- {escaped(why)}: `{command}`"
        yield ""
        for name, cell in page.foot:
            yield f"**{f'{name}: ' if name else ''}{self._cell(cell)}**{'  ' * self.document}"

    def _section(self, section: Section, level: int) -> Iterator[str]:
        title = escaped(section.title)
        if self.document and title:
            yield from (f"{'#' * level} {title}", "")
        if section.fold:
            yield from (f"<details><summary>{escaped(section.fold)}</summary>", "")
        if title and not self.document:
            yield from (f"{title}:" if section.fold else f"**{title}**", "")
        for sentence in section.sentences:
            yield from (escaped(sentence), "")
        for name, cells in section.points:
            topic = f"**{escaped(name)}**: " if name else ""
            yield from (f"- {topic}{self._cell(cell)}" for cell in cells)
        yield ""
        for table in section.tables:
            yield from self._table(table)
        for table in (item.table for item in section.figures if item.table is not None):
            yield from (f"<details><summary>{escaped(table.caption)}</summary>", "", *self._table(table), "</details>")
            yield ""
        for entry in section.entries:
            anchor = f'<a id="{entry.anchor}"></a>' if self.document else ""
            facts = "; ".join(f"{escaped(name)} {self._cell(cell)}".strip() for name, cell in entry.facts)
            line = f" {self._cell(entry.line)}" if entry.line else ""
            yield f"- {anchor}**{self._cell(entry.title)}**{line}{f': {facts}' if facts else ''}"
        yield ""
        for inner in section.sections:
            yield from self._section(inner, level + 1)
        if section.fold:
            yield from ("</details>", "")

    def _table(self, table: Table) -> Iterator[str]:
        if not table.rows:
            yield from ((escaped(table.empty), "") if table.empty else ())
            return
        yield f"| {' | '.join(escaped(column_header(column)) for column in table.columns)} |"
        yield f"| {' | '.join('---:' if column.numeric else '---' for column in table.columns)} |"
        for row in table.rows:
            yield f"| {' | '.join(map(self._cell, row.cells))} |"
        yield ""
        for sentence in table.after:
            yield from (escaped(sentence), "")

    def _cell(self, cell: Cell) -> str:
        return "".join(map(self._part, cell))

    def _part(self, part: Part) -> str:
        if isinstance(part, Code) and part.text.isprintable() and not {"`", "|"} & set(part.text):
            return f"`{part.text}`"
        if isinstance(part, Link) and self.document:
            return f"[{escaped(part.text)}](#{part.anchor})"
        if isinstance(part, Mark) and self.document:
            return f"{part.sign} {escaped(part.text)}".rstrip()
        return escaped(part if isinstance(part, str) else part.text)


def _blank_lines(lines: Iterator[str]) -> Iterator[str]:
    """Lines with no two blank ones in a row, and none at the end."""
    blank = False
    for line in lines:
        if line:
            yield from ("", line) if blank else (line,)
        blank = not line
