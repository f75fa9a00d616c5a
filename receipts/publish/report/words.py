"""Sentences of a page from a template that a person can edit, ``reports/words/*.j2``, as cells.

A sentence is a macro. In it, `named`, `rule`, `code`, `command`, `to` and `mark` put parts into the cell; all other
values are text, whatever they hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final

from receipts.base.errors import ReceiptsError, ResourceError
from receipts.base.resources import folder
from receipts.publish import text
from receipts.publish.page import Cell, Code, Link, Mark, Part
from receipts.publish.report.page import links, rule

if TYPE_CHECKING:
    from jinja2 import Environment

_FILTERS: Final[dict[str, Callable[..., str]]] = {
    "plain": text.plain,
    "number": text.number,
    "percent": text.percent,
    "change": text.change,
    "amount": text.amount,
    "sentence": lambda name: f"{str(name)[:1].upper()}{str(name)[1:]}",
    "words": lambda name: str(name).replace("_", " "),
}


# A slot of the text that a part fills: nobody who writes a label knows its name.
_BEGIN: Final = f"\0{token_hex(8)}-"
_SLOT: Final = re.compile(f"({_BEGIN}[0-9]+\0)")


class TemplateWords:
    """The sentences of one template. Raises ResourceError where it is wrong."""

    def __init__(self, name: str, folders: Sequence[Path] = ()) -> None:
        self._parts: list[Part] = []
        self._name = f"words/{name}.j2"
        try:
            self._macros = _environment(tuple(folders)).get_template(self._name).make_module(self._functions())
        except Exception as error:
            raise self._fault(error) from error

    def _functions(self) -> dict[str, Callable[..., str]]:
        return {
            "named": lambda ref: self._fill((Link(text.plain(ref.name).strip() or ref.short, ref.anchor),)),
            "links": lambda refs, most=3, more=0: self._fill(links(refs, most, more)),
            "rule": lambda code, name="": self._fill((rule(code, name),)),
            "code": lambda name: self._fill((Code(text.plain(name)),)),
            "command": lambda name: self._fill((Code(text.plain(name), command=True),)),
            "to": lambda name, anchor: self._fill((Link(text.plain(name), anchor),)),
            "mark": lambda state, fact="": self._fill((Mark(state, fact),)),
        }

    def __call__(self, sentence: str, **values: Any) -> Cell:
        """A sentence as the parts of a cell, its white space as one blank each."""
        try:
            sentence_text = str(getattr(self._macros, sentence)(**values))
        except ReceiptsError:
            raise
        except Exception as error:  # a template is somebody's file: whatever it raises is that file's fault
            raise self._fault(error) from error
        pieces = _SLOT.split(re.sub(r"[ \n]+", " ", sentence_text).strip())
        parts: list[Part] = []
        for at, piece in enumerate(pieces):
            if at % 2:
                parts.append(self._parts[int(piece.rpartition("-")[2][:-1])])
            elif piece:
                parts.append(piece)
        return tuple(parts)

    def text(self, sentence: str, **values: Any) -> str:
        """A sentence as it is read."""
        return as_text(self(sentence, **values))

    def _fault(self, error: Exception) -> ResourceError:
        line = getattr(error, "lineno", None)
        at = f", line {line}" if line else ""
        return ResourceError(f"template {self._name}: {type(error).__name__}: {error}{at}; mend the template")

    def _fill(self, cell: Cell) -> str:
        begin = len(self._parts)
        self._parts += cell
        return "".join(f"{_BEGIN}{number}\0" for number in range(begin, len(self._parts)))


@cache
def _environment(folders: tuple[Path, ...]) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    words = Environment(
        loader=FileSystemLoader([*folders, folder("reports")]),
        undefined=StrictUndefined,
        autoescape=False,  # what renders a cell escapes it
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    words.filters.update(_FILTERS)
    return words


def _printable(item: Any) -> Any:
    if not isinstance(item, str):
        return item
    pieces = _SLOT.split(item)
    return "".join(piece if at % 2 else text.plain(piece, text.CELL) for at, piece in enumerate(pieces))


def as_text(cell: Cell) -> str:
    """A cell as it is read."""
    return "".join(part if isinstance(part, str) else _read(part) for part in cell)


def _read(part: Part) -> str:
    if isinstance(part, Mark):
        return f"{part.sign} {part.text}".rstrip()
    return part if isinstance(part, str) else part.text
