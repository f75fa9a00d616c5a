"""The sentences of a page, from ``reports/words/NAME.toml``: a person edits them, code fills in the values.

``name = "text with {value}"``; ``{value:…}`` takes what Python's format takes. ``name.one`` and ``name.many`` are
the two forms of a sentence with a count ``n``. TOML and not Jinja, which alone takes as long to load as a command may.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any

from receipts.base.errors import ResourceError
from receipts.base.resources import folder


class Words:
    """The sentences of one file."""

    def __init__(self, name: str) -> None:
        self._place = folder("reports") / "words" / f"{name}.toml"
        try:
            self._texts: dict[str, Any] = tomllib.loads(self._place.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ResourceError(f"{self._place}: {error}; correct the file") from error

    def __repr__(self) -> str:
        return f"Words({str(self._place)!r})"

    def __call__(self, name: str, /, **values: Any) -> str:
        """A sentence with its values. Raises ResourceError if the file has no such sentence, or it asks for another."""
        try:
            sentence = self._texts[name]
            if isinstance(sentence, dict):
                sentence = sentence["one" if values["n"] == 1 else "many"]
            return str(sentence).format_map(values)
        except (KeyError, ValueError, IndexError, AttributeError) as error:
            known = ", ".join(sorted(values)) or "none"
            raise ResourceError(
                f"{self._place}: sentence {name!r}: {type(error).__name__}: {error}; values that it may use: {known}"
            ) from error

    def named(self, table: str) -> Mapping[str, str]:
        """The words of a table: what each of its keys is called."""
        names: Mapping[str, str] = self._texts.get(table, {})
        return names


@cache
def words(name: str) -> Words:
    """The sentences of a file, read once."""
    return Words(name)
