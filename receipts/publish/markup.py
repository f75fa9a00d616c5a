"""A page as HTML and as Markdown.

HTML is made by the templates of ``reports/parts/``: a document of its own, or a fragment of another one. All text of a
page is escaped, and nothing that is rendered asks for anything from elsewhere or runs a script.

Markdown is for chat, pull requests and files: no text of a receipt becomes markup; folds are ``<details>``. A document
has a title, headings, and links to its own anchors; what is pasted into a message has none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.base.environment import bundled_folder
from receipts.base.untrusted_text import plain
from receipts.publish.page import Cell, Code, Link, Mark, Page, Part, Section, Table
from receipts.publish.terminal import column_header
from receipts.publish.text import CELL, held
from receipts.publish.text import cell as escaped_cell

if TYPE_CHECKING:
    from jinja2 import Environment
    from jinja2.runtime import Context
    from markupsafe import Markup


Address = Callable[[str], str | None]
_LONG_WORD = re.compile(r"[^\s]{12,}")
_JOINT = re.compile(r"(?<=[^\W_][._/])(?=\w)|(?<=::)(?=\w)")
_SAFE = ("/", "?", "#", "https://", "http://")  # how an address begins that only leads somewhere


def html(page: Page, address: Address | None = None) -> str:
    """A page as a fragment: one element with its style, for a notebook or for a page of a server.

    A link leads to its anchor on the page; elsewhere to what ``address`` gives for the anchor, a path or an HTTP URL.
    Without one it is text.
    """
    return _rendered("fragment", page, address)


def document(page: Page, title: str = "", address: Address | None = None) -> str:
    """A page as a whole document, under ``title`` or its own."""
    return _rendered("page", replace(page, title=title or page.title), address)


def _rendered(part: str, page: Page, address: Address | None) -> str:
    known = set(anchors(page.sections))

    def lead(anchor: str) -> str | None:
        if anchor in known:
            return f"#{anchor}"
        elsewhere = address(anchor) if address is not None else None
        return elsewhere if elsewhere is not None and elsewhere.startswith(_SAFE) else None

    return environment().get_template(f"parts/{part}.html.j2").render(page=page, lead=lead)


def anchors(sections: Sequence[Section]) -> Iterator[str]:
    """Every anchor of some sections."""
    for section in sections:
        yield section.id
        yield from (item.id for item in section.figures)
        yield from (item.anchor for item in section.entries)
        yield from anchors(section.sections)


@cache
def environment(folders: tuple[Path, ...] = ()) -> Environment:
    """What renders templates of HTML: those of the user's folders first, then those that ship. Escapes everything."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
    from markupsafe import Markup

    jinja = Environment(
        loader=FileSystemLoader([*folders, bundled_folder("reports")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        optimized=False,  # a page is rendered once, and looking for constants costs more than they do
        finalize=printable,
    )
    jinja.filters.update(
        sign=lambda item: Mark(item.state).sign,
        # Facts in runs of those that have a name and those that have none.
        groupby_name=lambda rows: [(named, list(run)) for named, run in groupby(rows, key=lambda row: bool(row[0]))],
        plain=plain,
        # A figure is drawn here and escaped by what draws it, so that none of it is from outside.
        drawn=lambda item: None if (picture := item.draw(item.id)) is None else Markup(picture),
        broken=_broken,
        cell=pass_context(_cell),
    )
    return jinja


def printable(item: Any) -> Any:
    """What autoescape does not know: control characters and direction marks. Markup of our own stays."""
    return item if hasattr(item, "__html__") or not isinstance(item, str) else plain(item, CELL)


def _cell(context: Context, cell: Cell) -> Markup:
    """A cell: text, links, what is read sign by sign, statuses. Not a macro: a page may have a thousand."""
    from markupsafe import Markup, escape

    lead: Address | None = context.get("lead")  # a report has every anchor that it names
    shown = []
    for part in cell:
        if isinstance(part, str):
            shown.append(f"<bdi>{_broken(part)}</bdi>" if part else "")
        elif isinstance(part, Code):
            kind = ' class="command"' if part.command else ""
            shown.append(f"<code{kind}>{_broken(part.text, code=True)}</code>")
        elif isinstance(part, Mark):
            shown.append(f'<span class="mark {part.state}"><b>{part.sign}</b> <bdi>{_broken(part.text)}</bdi></span>')
        elif address := (f"#{part.anchor}" if lead is None else lead(part.anchor)):
            shown.append(f'<a href="{escape(plain(address, CELL))}">{escape(plain(part.text, CELL))}</a>')
        else:
            shown.append(f"<bdi>{_broken(part.text)}</bdi>")
    return Markup("".join(shown))


@lru_cache(maxsize=4096)  # the pages of a site name the same settings
def _broken(item: str, code: bool = False) -> Markup:
    """Text whose long words, such as a leaf's path, may go on in the next line after a dot or the like.

    A number stays with its unit, but in code, which is copied as it is.
    """
    from markupsafe import Markup, escape

    text = plain(item, CELL)  # which shows a NUL as words
    text = text if code else held(text)
    text = _LONG_WORD.sub(lambda word: _JOINT.sub("\0", word[0]), text)
    return Markup(str(escape(text)).replace("\0", "<wbr>"))


def markdown(page: Page, *, document: bool = False) -> str:
    """The whole page, self-contained."""
    lines: list[str] = []
    for line in _Markdown(document).page(page):
        if line or not lines or lines[-1]:  # no two blank ones in a row, and none at the end
            lines.append(line)
    return "\n".join(lines).rstrip("\n")


@dataclass(frozen=True, slots=True)
class _Markdown:
    document: bool

    def page(self, page: Page) -> Iterator[str]:
        if self.document:
            yield from (f"# {escaped_cell(page.title)}", "")
        if page.headline:
            yield from (f"**{self._cell(page.headline)}**", "")
        yield from (f"**{name}** {self._cell(cell)}  " if name else self._cell(cell) for name, cell in page.facts)
        yield ""
        yield " · ".join(f"**{escaped_cell(item.value)}** {escaped_cell(item.label)}" for item in page.badges)
        for sentence in page.lead:
            yield from (escaped_cell(sentence), "")
        for section in page.sections:
            yield from self._section(section, 2)
        for command, why in page.next:
            yield f"- {escaped_cell(why)}: `{command}`"
        yield ""
        for name, cell in page.foot:
            yield f"**{f'{name}: ' if name else ''}{self._cell(cell)}**{'  ' * self.document}"

    def _section(self, section: Section, level: int) -> Iterator[str]:
        title = escaped_cell(section.title)
        if self.document and title:
            yield from (f"{'#' * level} {title}", "")
        if section.fold:
            yield from (f"<details><summary>{escaped_cell(section.fold)}</summary>", "")
        if title and not self.document:
            yield from (f"{title}:" if section.fold else f"**{title}**", "")
        for sentence in section.sentences:
            yield from (escaped_cell(sentence), "")
        for name, cells in section.points:
            topic = f"**{escaped_cell(name)}**: " if name else ""
            yield from (f"- {topic}{self._cell(cell)}" for cell in cells)
        yield ""
        for table in section.tables:
            yield from self._table(table)
        for table in (item.table for item in section.figures if item.table is not None):
            yield from (
                f"<details><summary>{escaped_cell(table.caption)}</summary>",
                "",
                *self._table(table),
                "</details>",
            )
            yield ""
        for entry in section.entries:
            anchor = f'<a id="{entry.anchor}"></a>' if self.document else ""
            facts = "; ".join(f"{escaped_cell(name)} {self._cell(cell)}".strip() for name, cell in entry.facts)
            line = f" {self._cell(entry.line)}" if entry.line else ""
            yield f"- {anchor}**{self._cell(entry.title)}**{line}{f': {facts}' if facts else ''}"
        yield ""
        for inner in section.sections:
            yield from self._section(inner, level + 1)
        if section.fold:
            yield from ("</details>", "")

    def _table(self, table: Table) -> Iterator[str]:
        if not table.rows:
            yield from ((escaped_cell(table.empty), "") if table.empty else ())
            return
        yield f"| {' | '.join(escaped_cell(column_header(column)) for column in table.columns)} |"
        yield f"| {' | '.join('---:' if column.numeric else '---' for column in table.columns)} |"
        for row in table.rows:
            yield f"| {' | '.join(map(self._cell, row.cells))} |"
        yield ""
        for sentence in table.after:
            yield from (escaped_cell(sentence), "")

    def _cell(self, cell: Cell) -> str:
        return "".join(map(self._part, cell))

    def _part(self, part: Part) -> str:
        if isinstance(part, Code) and part.text.isprintable() and not {"`", "|"} & set(part.text):
            return f"`{part.text}`"
        if isinstance(part, Link) and self.document:
            return f"[{escaped_cell(part.text)}](#{part.anchor})"
        if isinstance(part, Mark) and self.document:
            return f"{part.sign} {escaped_cell(part.text)}".rstrip()
        return escaped_cell(part if isinstance(part, str) else part.text)
