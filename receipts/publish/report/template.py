"""A page from a template of ``reports/``: Markdown, in which Jinja fills in the values; markdown-it-py reads it.

========================  ==============================================================================
``# title``, ``> text``   the title of the page, and below it the answer
``- **name**: text``      below the title a fact; below a rule (``---``) one in the foot
``1. **value** label``    a badge; ``[label](no:)`` has a state: *yes*, *no*, *open* or *shown*
``## title [](#anchor)``  a section, ``###`` one inside it. ``[](#anchor "words")``: left out where it holds
                          nothing; its parent names the words, none where they are ``-``
``> text``                below the title of a section: it is folded, and this names what a reader opens
text                      a sentence a line; below a table it belongs to that
``**topic** (at most 6)`` the topic of the points of the list below
``*caption*``             the caption of the table below, which ``{{ columns("a | #b | c [GiB]") }}`` heads as
                          `receipts.publish.page.table_of` has it; every row is a line
``![](anchor)``           a section that is given
========================  ==============================================================================

A backslash at the end of a line joins the next one to it, and so does Jinja where a line ends with a tag. What a value
holds is escaped, so that Markdown reads none of it; a link, a mark or code stays one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from receipts.base.environment import bundled_folder
from receipts.base.errors import ReceiptsError, ResourceError
from receipts.base.untrusted_text import plain
from receipts.publish.page import Badge, Cell, Code, Figure, Link, Mark, Page, Part, Points, Section, Table, table_of
from receipts.publish.page import text as read
from receipts.publish.report.functions import FILTERS, FUNCTIONS
from receipts.publish.report.page import without, without_empty, without_repeated
from receipts.publish.text import CELL

if TYPE_CHECKING:
    from jinja2 import Environment
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MEANS_MORE: Final = re.compile(r"[!-/:-@\[-`{-~]")  # whatever Markdown may read as a sign
_EDGE: Final = re.compile(r"^ +| +$")
_JOINED: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\[ \t]*\n")
_LAST_ROW: Final = re.compile(r"(?m)^(\|.*)\n(?!\|)")  # a table ends where no row follows
_BAR: Final = re.compile(r"(?<!\\)(?:\\\\)*\|")
_AT_MOST: Final = re.compile(r" ?\(at most (\d+)\)")


def page(
    name: str,
    values: Mapping[str, Any],
    folders: Sequence[Path] = (),
    *,
    figures: Mapping[str, tuple[Figure, ...]] | None = None,
    sections: Iterable[Section] = (),
) -> Page:
    """The page that a template writes of some values, with figures by their sections' anchors and with given sections.

    Raises ResourceError where the template is wrong.
    """
    try:
        text = _JOINED.sub(r"\1", environment(tuple(folders)).get_template(name).render(**values))
        text = _LAST_ROW.sub(r"\1\n\n", text)
        return _Reader(figures or {}, {item.id: item for item in sections}).page(text)
    except ReceiptsError:
        raise
    except Exception as error:  # a template is somebody's file: whatever it raises is that file's fault
        raise fault(name, error) from error


def fault(name: str, error: Exception) -> ResourceError:
    """What a template raised, and where Jinja says that it was."""
    place, line = getattr(error, "filename", None) or getattr(error, "name", None), getattr(error, "lineno", None)
    traceback = error.__traceback__
    while traceback is not None:  # the innermost line of a template, whichever file it is in
        if traceback.tb_frame.f_code.co_filename.endswith(".j2"):
            place, line = traceback.tb_frame.f_code.co_filename, traceback.tb_lineno
        traceback = traceback.tb_next
    at = f" ({place}, line {line})" if place and line else f" ({place})" if place else ""
    return ResourceError(f"template {name}: {type(error).__name__}: {error}{at}; correct the template")


@cache
def environment(folders: tuple[Path, ...] = ()) -> Environment:
    """What renders these templates: those of the user's folders first, then those that ship."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_eval_context
    from markupsafe import Markup

    jinja = Environment(
        loader=FileSystemLoader([*folders, bundled_folder("reports")]),
        autoescape=True,  # so that a macro gives markup, which is not a value
        undefined=StrictUndefined,
        lstrip_blocks=True,
        trim_blocks=True,
        keep_trailing_newline=True,
        optimized=False,  # a page is rendered once, and looking for constants costs more than they do
        finalize=pass_eval_context(lambda _, value: encoded(value)),  # so that no constant is escaped before
    )
    jinja.filters.update(FILTERS, joined=lambda items, between=", ": Markup(between).join(map(encoded, items)))
    jinja.globals.update(FUNCTIONS, columns=_columns)
    return jinja


@cache
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("table")


def encoded(value: Any) -> Any:
    """A value as Markdown that says it and no more."""
    from markupsafe import Markup

    if hasattr(value, "__html__"):
        return value
    if isinstance(value, tuple):
        return Markup("").join(map(encoded, value))
    if isinstance(value, Link):
        return Markup(f"[{_escaped(value.text)}](#{_escaped(value.anchor)})")
    if isinstance(value, Code):
        return Markup(f"[{_escaped(value.text)}]({'command' if value.command else 'code'}:)")
    if isinstance(value, Mark):
        return Markup(f"[{_escaped(value.text)}]({value.state}:)")
    return Markup(_escaped("" if value is None else value))


def _escaped(value: object) -> str:
    text = _MEANS_MORE.sub(r"\\\g<0>", plain(value, CELL))
    return _EDGE.sub(lambda match: "&#32;" * len(match[0]), text)


def _columns(header: str) -> Any:
    """The head of a table."""
    from markupsafe import Markup

    names = [_escaped(name) for name in header.split(" | ")]
    return Markup(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")


@dataclass(slots=True)
class _Draft:
    """A section while its blocks are read. ``empty`` says what there is none of, where it is then left out."""

    id: str
    title: str
    empty: str | None = None
    sentences: list[str] = field(default_factory=list)
    points: list[tuple[str, list[Cell], int | None]] = field(default_factory=list)
    tables: list[tuple[str, list[str], list[tuple[Cell, ...]], list[str]]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    fold: str = ""


class _Reader:
    """Reads the blocks of a document."""

    def __init__(self, figures: Mapping[str, tuple[Figure, ...]], given: Mapping[str, Section]) -> None:
        self._figures = figures
        self._given = given
        self._open = [_Draft("", "")]
        self._facts: list[list[tuple[str, Cell]]] = [[]]
        self._badges: list[Badge] = []
        self._headline: Cell = ()
        self._caption = ""

    def page(self, text: str) -> Page:
        lines = text.split("\n")
        for tokens in _blocks(_markdown().parse(text)):
            self._block(tokens, lines)
        self._close(1)
        (root,) = self._open
        if root.sections and root.missing:  # the first section names those that hold nothing
            none_of: Points = (("none of", ((f"{', '.join(root.missing)}.",),)),)
            root.sections[0] = replace(root.sections[0], points=(*root.sections[0].points, *none_of))
        return Page(
            root.title,
            headline=self._headline,
            badges=tuple(self._badges),
            facts=tuple(self._facts[0]),
            lead=tuple(root.sentences),
            sections=tuple(root.sections),
            foot=tuple(fact for facts in self._facts[1:] for fact in facts),
        )

    def _block(self, tokens: Sequence[Token], lines: Sequence[str]) -> None:
        first, inlines = tokens[0], [item for item in tokens if item.type == "inline"]
        if first.type == "heading_open":
            self._heading(int(first.tag[1:]), inlines[0].children or [])
        elif first.type == "hr":
            self._close(1)
            self._facts.append([])
        elif first.type == "blockquote_open":
            quoted = _cell(part for item in inlines for part in item.children or [])
            if len(self._open) == 1:
                self._headline = quoted
            else:
                self._open[-1].fold = read(quoted)
        elif first.type == "table_open":
            self._table(tokens, lines)
        elif first.type in ("bullet_list_open", "ordered_list_open"):
            for item in inlines:
                self._item(item.children or [], numbered=first.type == "ordered_list_open")
        else:
            for line in _lines(inlines[0].children or [] if inlines else []):
                self._line(line)

    def _heading(self, level: int, children: Sequence[Token]) -> None:
        if level == 1:
            self._open[0].title = read(_cell(children))
            return
        anchor = next((item for item in children if item.type == "link_open"), None)
        if anchor is None:
            raise ValueError(f"the section {read(_cell(children))!r} has no anchor: end its title with [](#anchor)")
        words = anchor.attrGet("title")
        self._close(level - 1)
        title = read(_cell(children[: children.index(anchor)])).strip()
        self._open.append(_Draft(str(anchor.attrGet("href"))[1:], title, None if words is None else str(words)))

    def _line(self, line: Sequence[Token]) -> None:
        """A line of a paragraph: a topic, a caption, a given section, or a sentence."""
        here, kind = self._open[-1], line[0].type
        text = _cell(line)
        if kind == "image":
            self._close(1)
            anchor = str(line[0].attrGet("src"))
            self._open[-1].sections += [self._given[anchor]] if anchor in self._given else []
        elif kind == "strong_open" and (most := _topic(line)) is not None:
            here.points.append((_named(line)[0], [], most or None))
        elif kind == "em_open" and line[-1].type == "em_close":
            self._caption = read(text)
        elif here.tables:
            here.tables[-1][3].append(read(text))
        else:
            here.sentences.append(read(text))

    def _item(self, children: Sequence[Token], *, numbered: bool) -> None:
        """An item of a list: a point of a section; a badge or a fact of the page."""
        here = self._open[-1]
        if len(self._open) > 1:
            if not here.points:
                here.points.append(("", [], None))
            here.points[-1][1].append(_cell(children))
            return
        name, rest = _named(children)
        if not numbered:
            first, *others = rest or ("",)
            bare = first.removeprefix(":").lstrip() if isinstance(first, str) else first
            self._facts[-1].append((name, tuple(part for part in (bare, *others) if part != "")))
            return
        state = next((part.state for part in rest if isinstance(part, Mark)), None)
        self._badges.append(Badge(name, read(rest).strip(), state))

    def _table(self, tokens: Sequence[Token], lines: Sequence[str]) -> None:
        header: list[str] = []
        rows: list[tuple[Cell, ...]] = []
        body = False
        for at, item in enumerate(tokens):
            body = body or item.type == "tbody_open"
            if body and item.type == "tr_open" and item.map is not None:
                written = len(_BAR.findall(lines[item.map[0]]))
                if written != len(header):
                    wrong = f"a row of {written} cells under {len(header)} columns: {lines[item.map[0]]}"
                    raise ValueError(f"table {self._caption!r}: {wrong}")
                rows.append(())
            elif item.type == "th_open":
                header.append(read(_cell(tokens[at + 1].children or [])))
            elif item.type == "td_open":
                rows[-1] = (*rows[-1], _cell(tokens[at + 1].children or []))
        self._open[-1].tables.append((self._caption, header, rows, []))
        self._caption = ""

    def _close(self, level: int) -> None:
        """End the sections from a level on."""
        while len(self._open) > level:
            draft = self._open.pop()
            parent = self._open[-1]
            item = self._section(draft)
            holds = item.points or item.tables or item.figures or item.sections
            if draft.empty is None or holds:
                parent.sections.append(item)
            elif draft.empty != "-":
                parent.missing.append(draft.empty)

    def _section(self, draft: _Draft) -> Section:
        tables: list[Table] = []
        points: list[tuple[str, tuple[Cell, ...]]] = [
            (topic, tuple(cells[:most])) for topic, cells, most in draft.points if cells
        ]
        for caption, header, rows, after in draft.tables:
            if rows:
                whole = table_of(caption, " | ".join(header), rows, tuple(after))
                table, repeated = without_repeated(without_empty(whole))
                tables.append(table)
                points += repeated
        return Section(
            draft.id,
            draft.title,
            sentences=(*draft.sentences, *without(draft.missing)),
            points=tuple(points),
            tables=tuple(tables),
            figures=self._figures.get(draft.id, ()),
            sections=tuple(draft.sections),
            fold=draft.fold,
        )


def _blocks(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The outermost blocks of a document, each with all that is in it."""
    begin = depth = 0
    for at, item in enumerate(tokens):
        depth += item.nesting
        if depth == 0:
            yield tokens[begin : at + 1]
            begin = at + 1


def _lines(children: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The lines of a paragraph."""
    line: list[Token] = []
    for item in children:
        if item.type != "softbreak":
            line += [item] if item.type != "text" or item.content else []
        elif line:
            yield line
            line = []
    if line:
        yield line


def _cell(children: Iterable[Token]) -> Cell:
    """What stands within a line."""
    parts: list[Part] = []
    target: str | None = None
    for item in children:
        part: Part = item.content
        if item.type == "link_open":
            target, inside = str(item.attrGet("href")), ""
        elif item.type == "link_close" and target is not None:
            parts.append(_linked(target, inside))
            target = None
        elif target is not None:
            inside += item.content
        elif item.type == "code_inline":
            parts.append(Code(item.content))
        elif item.type in ("text", "softbreak"):
            part = item.content if item.type == "text" else " "
            if parts and isinstance(parts[-1], str):
                parts[-1] += part
            elif part:
                parts.append(part)
    return tuple(parts)


def _linked(target: str, text: str) -> Part:
    scheme, _, anchor = target.partition("#")
    if scheme in ("code:", "command:"):
        return Code(text, command=scheme == "command:")
    return Link(text, anchor) if not scheme else Mark(scheme.removesuffix(":"), text)  # type: ignore[arg-type]  # a state


def _named(children: Sequence[Token]) -> tuple[str, Cell]:
    """What is bold at the beginning of a line, and the rest of the line."""
    end = next((at for at, item in enumerate(children) if item.type == "strong_close"), -1)
    return read(_cell(children[: end + 1])), _cell(children[end + 1 :])


def _topic(line: Sequence[Token]) -> int | None:
    """How many points a topic has at most, 0 for any number; None for a line that is none."""
    rest = read(_named(line)[1])
    match = _AT_MOST.fullmatch(rest)
    return int(match[1]) if match else None if rest else 0
