"""A page from a template of ``reports/``: Jinja fills in the values, and the first signs of a line say what it is.

======================================  ===========================================================
``= title``, ``! text``                 the title of the page, and the answer below it
``: name | text``, ``; name | text``    a fact below the title, and one in the foot
``+ value | label | state``             a badge
``# title #anchor``                     a section; ``##`` is one inside it
``# title #anchor / words``             the same, left out where it holds nothing; its parent names the words
``text``                                a sentence
``* topic``, ``* topic (at most 6)``    the topic of the points below
``- text``                              a point
``|= caption``, ``|# a | #b | c [GiB]`` a table: its caption, its columns as `receipts.publish.page.table_of` has them
``| cell | cell``                       a row
``|> text``                             a sentence below the table
``~ text``                              the section is folded: what a reader opens, with the counts that it names
``@ anchor``                            a section that is given
======================================  ===========================================================

A backslash at the end of a line joins the next one to it, and so does Jinja where a line ends with a tag; a blank line
ends both. What a value holds is never read as one of these signs, and
a link, a mark or code stays one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from receipts.base.environment import bundled_folder
from receipts.base.errors import ReceiptsError, ResourceError
from receipts.base.text import plain
from receipts.publish.page import Badge, Cell, Code, Figure, Link, Mark, Page, Part, Points, Section, Table, table_of
from receipts.publish.page import text as read
from receipts.publish.report.functions import FILTERS, FUNCTIONS
from receipts.publish.report.page import without, without_empty, without_repeated
from receipts.publish.text import CELL

if TYPE_CHECKING:
    from jinja2 import Environment

# Around a value within rendered text: signs that no value has, since what cannot be printed is escaped in it.
_OPEN, _BETWEEN, _CLOSE = "\U000f0000", "\U000f0001", "\U000f0002"
_VALUE: Final = re.compile(f"{_OPEN}(.)(.*?){_BETWEEN}(.*?){_CLOSE}", re.DOTALL)
_FIRST: Final = 0xE000  # the sign that stands for the first value of a line
_STAND_IN: Final = re.compile("([\ue000-\uf8ff])")
_HEADING: Final = re.compile(r"(#+) (.*) #(\S+?)(?: /(.*))?")
_TOPIC: Final = re.compile(r"(.*?)(?: \(at most (\d+)\))?")


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
        text = environment(tuple(folders)).get_template(name).render(**values)
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
    jinja.filters.update(FILTERS, joined=_joined)
    jinja.globals.update(FUNCTIONS)
    return jinja


def encoded(value: Any) -> Any:
    """A value as the text of a template holds it until it is read."""
    from markupsafe import Markup

    if hasattr(value, "__html__"):
        return value
    if isinstance(value, tuple):
        return Markup("").join(map(encoded, value))
    kind, text, more = "s", "" if value is None else value, ""
    if isinstance(value, Link):
        kind, text, more = "l", value.text, value.anchor
    elif isinstance(value, Code):
        kind, text, more = "c", value.text, "command" if value.command else ""
    elif isinstance(value, Mark):
        kind, text, more = "m", value.text, value.state
    return Markup(f"{_OPEN}{kind}{plain(text, CELL)}{_BETWEEN}{plain(more, CELL)}{_CLOSE}")


def _joined(items: Iterable[Any], between: str = ", ") -> Any:
    from markupsafe import Markup

    return Markup(between).join(map(encoded, items))


def _decoded(kind: str, text: str, more: str) -> Part:
    if kind == "s":
        return text
    if kind == "l":
        return Link(text, more)
    return Code(text, command=bool(more)) if kind == "c" else Mark(more, text)  # type: ignore[arg-type]  # as it was


@dataclass(slots=True)
class _Draft:
    """A section while its lines are read. ``empty`` says what there is none of, where it is then left out."""

    id: str
    title: str
    empty: str | None = None
    sentences: list[str] = field(default_factory=list)
    points: list[tuple[str, list[Cell], int | None]] = field(default_factory=list)
    tables: list[tuple[list[str], list[tuple[Cell, ...]], list[str]]] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    fold: str = ""


class _Reader:
    """Reads the lines that a template wrote."""

    def __init__(self, figures: Mapping[str, tuple[Figure, ...]], given: Mapping[str, Section]) -> None:
        self._figures = figures
        self._given = given
        self._open = [_Draft("", "")]
        self._facts: dict[str, list[tuple[str, Cell]]] = {":": [], ";": []}
        self._badges: list[Badge] = []
        self._headline: Cell = ()

    def page(self, text: str) -> Page:
        for line in _lines(text):
            self._line(*line)
        self._close(1)
        (root,) = self._open
        return Page(
            root.title,
            headline=self._headline,
            badges=tuple(self._badges),
            facts=tuple(self._facts[":"]),
            lead=tuple(root.sentences),
            sections=tuple(_naming(root.sections, root.missing)),
            foot=tuple(self._facts[";"]),
        )

    def _line(self, line: str, cell: Callable[[str], Cell]) -> None:
        here = self._open[-1]
        sign, _, rest = line.partition(" ")
        if heading := _HEADING.fullmatch(line):
            level, title, anchor, empty = heading.groups()
            self._close(len(level))
            words = None if empty is None else read(cell(empty.strip()))
            self._open.append(_Draft(read(cell(anchor)), read(cell(title)), words))
        elif sign == "!":
            self._headline = cell(rest)
        elif sign == "=":
            here.title = read(cell(rest))
        elif sign in self._facts:
            name, _, fact = rest.partition("|")
            self._facts[sign].append((read(cell(name)), cell(fact)))
        elif sign == "+":
            value, label, *state = (read(cell(part)) for part in rest.split("|"))
            self._badges.append(Badge(value, label, *state))  # type: ignore[arg-type]  # a template names states
        elif sign == "*":
            topic, most = _TOPIC.fullmatch(rest).groups()  # type: ignore[union-attr]  # which matches any text
            here.points.append((read(cell(topic)), [], int(most) if most else None))
        elif sign == "-":
            if not here.points:
                here.points.append(("", [], None))
            here.points[-1][1].append(cell(rest))
        elif sign == "~":
            here.fold = read(cell(rest))
        elif sign == "@":
            self._close(1)
            anchor = read(cell(rest))
            self._open[-1].sections += [self._given[anchor]] if anchor in self._given else []
        elif sign == "|=":
            here.tables.append(([read(cell(rest))], [], []))
        elif sign == "|#":
            here.tables[-1][0].append(read(cell(rest)))
        elif sign == "|>":
            here.tables[-1][2].extend(filter(None, [read(cell(rest))]))
        elif sign == "|":
            here.tables[-1][1].append(tuple(cell(part) for part in line.removeprefix("|").split("|")))
        else:
            here.sentences.append(read(cell(line)))

    def _close(self, level: int) -> None:
        """End the sections from a level on."""
        while len(self._open) > level:
            draft = self._open.pop()
            parent = self._open[-1]
            item = self._section(draft)
            holds = item.points or item.tables or item.figures or item.sections
            if draft.empty is None or holds:
                parent.sections.append(item)
            elif draft.empty:
                parent.missing.append(draft.empty)

    def _section(self, draft: _Draft) -> Section:
        tables: list[Table] = []
        points: list[tuple[str, tuple[Cell, ...]]] = [
            (topic, tuple(cells[:most])) for topic, cells, most in draft.points if cells
        ]
        for (caption, *header), rows, after in draft.tables:
            if rows:
                columns = len(" | ".join(header).split(" | "))
                wrong = next((cells for cells in rows if len(cells) != columns), None)
                if wrong is not None:
                    raise ValueError(f"table {caption!r}: a row of {len(wrong)} cells under {columns} columns: {wrong}")
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


def _naming(sections: Sequence[Section], missing: Sequence[str]) -> Sequence[Section]:
    """A page's sections, the first of which names those that hold nothing."""
    if not sections or not missing:
        return sections
    named: Points = (("none of", ((f"{', '.join(missing)}.",),)),)
    first, *others = sections
    return (replace(first, points=(*first.points, *named)), *others)


def _lines(text: str) -> Iterator[tuple[str, Callable[[str], Cell]]]:
    """Lines, joined where they go on, each with what makes cells of its text; a sign stands for every value."""
    whole = ""
    for line in (*text.splitlines(), ""):
        whole += line.rstrip()
        if line.rstrip().endswith("\\"):
            whole = whole[:-1]
            continue
        if not whole.strip():
            continue
        values = [_decoded(*match.groups()) for match in _VALUE.finditer(whole)]
        stand_ins = iter(range(_FIRST, _FIRST + len(values)))
        yield _VALUE.sub(lambda _: chr(next(stand_ins)), whole.strip()), _cells(values)  # noqa: B023 — used at once
        whole = ""


def _cells(values: Sequence[Part]) -> Callable[[str], Cell]:
    def cell(text: str) -> Cell:
        parts: list[Part] = []
        for piece in _STAND_IN.split(text.strip()):
            part = values[ord(piece) - _FIRST] if _STAND_IN.fullmatch(piece) else piece
            if isinstance(part, str) and parts and isinstance(parts[-1], str):
                parts[-1] += part
            elif part != "":
                parts.append(part)
        return tuple(parts)

    return cell
