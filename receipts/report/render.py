"""Files of a report, from its values by templates: ``report.md``, ``index.html`` and ``report.json``.

Templates are looked for in the user's folders first (``reports`` in ``receipts.toml``), then among those that ship. A
template gets ``page`` (the report in words) and ``data`` (its values). In HTML everything is escaped; in Markdown
everything that an expression prints goes through `cell`, unless a filter made Markdown of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.errors import ReceiptsError, ResourceError, UsageError
from receipts.report.data import WeekData
from receipts.report.page import Cell, Code, Figure, Link, Part
from receipts.report.text import CELL, Marked, cell, plain
from receipts.report.weekly import page
from receipts.resources import folder

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES: Mapping[str, str] = {"report.md": "weekly.md.j2", "index.html": "weekly.html.j2"}
_LITERAL = re.compile(r"[\w.\-/:+\[\] ]+")


def render(data: WeekData, folders: Sequence[Path] = ()) -> dict[str, bytes]:
    """The files of a report by name. The same data and templates give the same bytes. Raises ResourceError."""
    shown = page(data)
    files = {"report.json": as_json(data)}
    for name, template in TEMPLATES.items():
        environment = _environment(folders, markdown=name.endswith(".md"))
        try:
            text = environment.get_template(template).render(page=shown, data=data)
        except ReceiptsError:
            raise
        except (
            Exception
        ) as error:  # a template is somebody's file: whatever it raises is that file's fault, and said so
            raise ResourceError(f"template {template}: {_fault(error)}; mend the template") from error
        files[name] = text.encode("utf-8", "backslashreplace")
    return files


def _fault(error: Exception) -> str:
    """What a template raised, and where Jinja says that it was."""
    place = getattr(error, "filename", None) or getattr(error, "name", None)
    line = getattr(error, "lineno", None)
    at = f" ({place}, line {line})" if place and line else f" ({place})" if place else ""
    return f"{type(error).__name__}: {error}{at}"


def as_json(data: WeekData) -> bytes:
    """The values as JSON, in the order in which they are declared."""
    import orjson

    return orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z)


def _environment(folders: Sequence[Path], *, markdown: bool) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader([*folders, folder("reports")]),
        autoescape=not markdown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=cell if markdown else _printable,
    )
    made.filters.update(plain=plain, cell=cell, md=Marked, parts=_parts, drawn=_drawn)
    made.tests.update(link=lambda item: isinstance(item, Link), code=lambda item: isinstance(item, Code))
    return made


def _printable(item: Any) -> Any:
    """What autoescape does not know: control characters and direction marks. Markup of our own stays."""
    return item if hasattr(item, "__html__") or not isinstance(item, str) else plain(item, CELL)


def _drawn(figure: Figure) -> Markup | None:
    """A figure's picture as markup: drawn here and escaped by what draws it, so that none of it is from outside."""
    from markupsafe import Markup

    found = figure.draw(figure.id)
    return None if found is None else Markup(found)


def _parts(item: Cell) -> Marked:
    """The parts of a cell as Markdown."""
    return Marked("".join(_part(part) for part in item))


def _part(part: Part) -> Marked:
    if isinstance(part, Link):
        return Marked(f"[{cell(part.text)}](#{part.anchor})")
    if isinstance(part, Code):
        return Marked(f"`{part.text}`" if _LITERAL.fullmatch(part.text) else cell(part.text))
    return Marked(cell(part))


def write(files: Mapping[str, bytes], out: Path) -> None:
    """Put files into a folder, each whole or not at all; other files there are left alone. Raises UsageError.

    All are written beside their places first, so that a full disk changes nothing.
    """
    import os

    staged: list[tuple[Path, Path]] = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            place = out / f".{name}.{os.getpid()}.tmp"
            staged.append((place, out / name))
            with place.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        for place, final in staged:
            os.replace(place, final)
    except OSError as error:
        raise UsageError(f"--out {out}: {error.strerror}; name a folder that can be written") from None
    finally:
        for place, _ in staged:
            place.unlink(missing_ok=True)
