"""The sentences of a page, from ``reports/words/NAME.toml``: a person edits them, code fills in the values.

``name = "text with {value}"``; ``{value:…}`` takes what Python's format takes, and in a cell one of `FORMS`.
``name.one`` and ``name.many`` are the two forms of a sentence with a count ``n``. TOML and not Jinja, which alone takes
as long to load as a command may.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from string import Formatter
from typing import Any, Final

from receipts.base.errors import ResourceError
from receipts.base.resources import folder
from receipts.publish.page import Cell, Code, Link, Mark, Part
from receipts.publish.text import CELL, change, number, percent, plain

FORMS: Final[dict[str, Callable[[Any], Part]]] = {
    "number": number,
    "change": change,
    "percent": percent,
    "code": lambda text: Code(plain(text)),
    "command": lambda text: Code(plain(text), command=True),
    "receipt": lambda ref: Link(plain(ref.name).strip() or ref.short, ref.anchor),
}


class Words:
    """The sentences of one file; those of the user's folders, of which the first counts most, replace those shipped."""

    def __init__(self, name: str, folders: tuple[Path, ...] = ()) -> None:
        self._name = name
        self._folders = folders

    def __repr__(self) -> str:
        return f"Words({self._name!r})"

    @cached_property
    def _texts(self) -> Mapping[str, tuple[Any, Path]]:
        """Every sentence with its file. Read when the first is asked for: a module may name its words as it loads."""
        texts: dict[str, tuple[Any, Path]] = {}
        shipped = folder("reports")
        for place in (shipped, *reversed(self._folders)):
            path = place / "words" / f"{self._name}.toml"
            if place is shipped or path.exists():
                texts |= {name: (sentence, path) for name, sentence in _read(path).items()}
        return texts

    def __call__(self, name: str, /, **values: Any) -> str:
        """A sentence with its values. Raises ResourceError if the file has no such sentence, or it asks for another."""
        try:
            return self._sentence(name, values).format_map(values)
        except (KeyError, ValueError, IndexError, AttributeError, TypeError) as error:
            raise self._fault(name, values, error) from error

    def cell(self, name: str, /, **values: Any) -> Cell:
        """The same as parts of a page: a link, a mark or a cell keeps its form, and all other values are text."""
        try:
            return tuple(_parts(self._sentence(name, values), values))
        except (KeyError, ValueError, IndexError, AttributeError, TypeError) as error:
            raise self._fault(name, values, error) from error

    def link(self, name: str, anchor: str, **values: Any) -> Link:
        """A sentence that leads to an anchor."""
        return Link(self(name, **values), anchor)

    def _sentence(self, name: str, values: Mapping[str, Any]) -> str:
        sentence, _ = self._texts[name]
        return str(sentence["one" if values["n"] == 1 else "many"] if isinstance(sentence, dict) else sentence)

    def _fault(self, name: str, values: Mapping[str, Any], error: Exception) -> ResourceError:
        known = ", ".join(sorted(values)) or "none"
        place = self._texts[name][1] if name in self._texts else f"reports/words/{self._name}.toml"
        return ResourceError(
            f"{place}: sentence {name!r}: {type(error).__name__}: {error}; values that it may use: {known}"
        )

    def named(self, table: str) -> Mapping[str, str]:
        """The words of a table: what each of its keys is called."""
        names: Mapping[str, str] = self._texts[table][0]
        return names


def _read(place: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(place.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ResourceError(f"{place}: {error}; correct the file") from error


def _parts(sentence: str, values: Mapping[str, Any]) -> Iterator[Part]:
    for literal, field, form, _ in Formatter().parse(sentence):
        if literal:
            yield literal
        if field is not None:
            value, _ = Formatter().get_field(field, (), values)
            if isinstance(value, tuple):
                yield from value
            elif isinstance(value, Link | Code | Mark):
                yield value
            else:
                yield FORMS[form](value) if form in FORMS else plain(format(value, form or ""), CELL)


@cache
def words(name: str, folders: tuple[Path, ...] = ()) -> Words:
    """The sentences of a file, read once."""
    return Words(name, folders)
