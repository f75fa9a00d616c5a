"""A page as HTML, by the templates of ``reports/parts/``: a document of its own, or a fragment of another one.

All text of a page is escaped. Nothing that is rendered asks for anything from elsewhere or runs a script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.base.environment import bundled_folder
from receipts.base.untrusted_text import plain
from receipts.publish.page import Cell, Code, Figure, Link, Mark, Page, Section
from receipts.publish.text import CELL, held

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
        groupby_name=_by_name,
        plain=plain,
        drawn=_drawn,
        broken=_broken,
        cell=pass_context(_cell),
    )
    return jinja


def _by_name(rows: Sequence[tuple[str, Any]]) -> list[tuple[bool, list[tuple[str, Any]]]]:
    """Facts in runs of those that have a name and those that have none."""
    return [(named, list(group)) for named, group in groupby(rows, key=lambda row: bool(row[0]))]


def printable(item: Any) -> Any:
    """What autoescape does not know: control characters and direction marks. Markup of our own stays."""
    return item if hasattr(item, "__html__") or not isinstance(item, str) else plain(item, CELL)


def _address(context: Context, link: Link) -> str | None:
    """Where a link leads; a report has every anchor that it names."""
    lead = context.get("lead")
    return f"#{link.anchor}" if lead is None else lead(link.anchor)


def _cell(context: Context, cell: Cell) -> Markup:
    """A cell: text, links, what is read sign by sign, statuses. Not a macro: a page may have a thousand."""
    from markupsafe import Markup, escape

    shown = []
    for part in cell:
        if isinstance(part, str):
            shown.append(f"<bdi>{_broken(part)}</bdi>" if part else "")
        elif isinstance(part, Code):
            kind = ' class="command"' if part.command else ""
            shown.append(f"<code{kind}>{_broken(part.text, code=True)}</code>")
        elif isinstance(part, Mark):
            shown.append(f'<span class="mark {part.state}"><b>{part.sign}</b> <bdi>{_broken(part.text)}</bdi></span>')
        elif address := _address(context, part):
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


def _drawn(figure: Figure) -> Markup | None:
    """A figure's picture as markup: drawn here and escaped by what draws it, so that none of it is from outside."""
    from markupsafe import Markup

    picture = figure.draw(figure.id)
    return None if picture is None else Markup(picture)
