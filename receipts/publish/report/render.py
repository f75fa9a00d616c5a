"""Files of a report, from its values by templates: ``report.md``, ``index.html`` and ``report.json``.

Templates are looked for in the user's folders first (``reports`` in ``receipts.toml``), then among those that ship. A
template gets ``page`` (the report in words) and ``data`` (its values). In HTML everything is escaped; in Markdown
everything that an expression prints goes through `cell`, unless a filter made Markdown of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.base.errors import ReceiptsError, ResourceError
from receipts.base.resources import folder
from receipts.judging.rulebook import RuleSet
from receipts.publish.page import Cell, Code, Link, Mark, Page, Part
from receipts.publish.render.html import environment, printable
from receipts.publish.report.claim import ClaimData
from receipts.publish.report.claim import page as claim_page
from receipts.publish.report.data import WeekData
from receipts.publish.report.pair_data import PairData
from receipts.publish.report.pair_page import page as pair_page
from receipts.publish.report.weekly import first_screen, page
from receipts.publish.report.words import Words, as_text
from receipts.publish.text import Marked, cell, plain

if TYPE_CHECKING:
    from jinja2 import Environment

FORMS: Mapping[str, str] = {"report.md": "md.j2", "index.html": "html.j2"}
_LITERAL = re.compile(r"[\w.\-/:+\[\] ]+")


def render(data: WeekData, rules: RuleSet, folders: Sequence[Path] = ()) -> dict[str, bytes]:
    """The files of a weekly report that was judged by some rules, as `files` gives them."""
    return files(page(data, rules, Words("weekly", folders)), data, "weekly", folders)


def render_first(data: WeekData, form: str, folders: Sequence[Path] = ()) -> str:
    """The first screen of a weekly report as ``markdown`` or ``text``, to be pasted into a message: it has no links."""
    shown = first_screen(data, Words("weekly", folders))
    return _rendered(f"first.{'md' if form == 'markdown' else 'txt'}.j2", shown, data, folders)


def render_lane(data: WeekData, name: str, rules: RuleSet, folders: Sequence[Path] = ()) -> dict[str, bytes]:
    """The files of one lane's page: a report of that lane alone."""
    shown = page(data, rules, Words("weekly", folders))
    return files(replace(shown, title=f"Lane {plain(name)}, {data.week}"), data, "lane", folders)


def render_pair(data: PairData, rules: RuleSet, folders: Sequence[Path] = ()) -> dict[str, bytes]:
    """The files of the page of one comparison."""
    return files(pair_page(data, rules), data, "compare", folders)


def render_claim(data: ClaimData, rules: RuleSet, folders: Sequence[Path] = ()) -> dict[str, bytes]:
    """The files of the page of one claim."""
    return files(claim_page(data, rules), data, "claim", folders)


def files(shown: Page, data: object, kind: str, folders: Sequence[Path] = ()) -> dict[str, bytes]:
    """The files of a page by name, by the templates of a kind. The same data and templates give the same bytes.

    Raises ResourceError where a template is wrong.
    """
    made = {"report.json": as_json(data)}
    for name, ending in FORMS.items():
        text = _rendered(f"{kind}.{ending}", shown, data, folders)
        made[name] = text.encode("utf-8", "backslashreplace")
    return made


def _rendered(template: str, shown: Page, data: object, folders: Sequence[Path]) -> str:
    try:
        return (
            _environment(tuple(folders), template.split(".")[-2]).get_template(template).render(page=shown, data=data)
        )
    except ReceiptsError:
        raise
    except Exception as error:  # a template is somebody's file: whatever it raises is that file's fault, and said so
        raise ResourceError(f"template {template}: {_fault(error)}; mend the template") from error


def _fault(error: Exception) -> str:
    """What a template raised, and where Jinja says that it was."""
    place = getattr(error, "filename", None) or getattr(error, "name", None)
    line = getattr(error, "lineno", None)
    at = f" ({place}, line {line})" if place and line else f" ({place})" if place else ""
    return f"{type(error).__name__}: {error}{at}"


def as_json(data: object) -> bytes:
    """The values as JSON, in the order in which they are declared."""
    import orjson

    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z
    try:
        return orjson.dumps(data, option=option, default=_jsonable)
    except TypeError:
        # A feature may be an integer of more than 64 bits, which orjson refuses.
        import json

        tree = asdict(data)  # type: ignore[call-overload]  # the values of a page are dataclasses
        return f"{json.dumps(tree, default=str, ensure_ascii=False, indent=2)}\n".encode("utf-8", "backslashreplace")


def _jsonable(item: Any) -> Any:
    """What orjson does not know: named tuples as objects, other tuples and sets as lists."""
    if hasattr(item, "_asdict"):
        return item._asdict()
    if isinstance(item, tuple | frozenset | set):
        return sorted(item) if isinstance(item, frozenset | set) else list(item)
    raise TypeError(f"no JSON of {type(item).__name__}")


@cache
def _environment(folders: tuple[Path, ...], form: str) -> Environment:
    if form == "html":
        return environment(folders)
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader([*folders, folder("reports")]),
        autoescape=False,  # in Markdown `cell` escapes what is printed
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=cell if form == "md" else printable,
    )
    made.filters.update(
        unlinked=_unlinked if form == "md" else as_text, plain=plain, cell=cell, md=Marked, parts=_parts
    )
    return made


def _parts(item: Cell) -> Marked:
    """The parts of a cell as Markdown."""
    return Marked("".join(_part(part) for part in item))


def _unlinked(item: Cell) -> Marked:
    """The same where its links would lead nowhere."""
    return Marked("".join(cell(part.text) if isinstance(part, Link) else _part(part) for part in item))


def _part(part: Part) -> Marked:
    if isinstance(part, Link):
        return Marked(f"[{cell(part.text)}](#{part.anchor})")
    if isinstance(part, Code):
        return Marked(f"`{part.text}`" if _LITERAL.fullmatch(part.text) else cell(part.text))
    if isinstance(part, Mark):
        return Marked(f"{part.sign} {cell(part.text)}".rstrip())
    return Marked(cell(part))
