"""The sentences of a page, from ``reports/words/NAME.toml``: a person edits them, code fills in the values.

``name = "text with {value}"``; ``{value:…}`` takes what Python's format takes.
``name.one`` and ``name.many`` are the two forms of a sentence with a count ``n``. TOML and not Jinja, which alone takes
as long to load as a command may.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from receipts.base.environment import bundled_folder
from receipts.base.errors import ResourceError


class Words:
    """The sentences of one file."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"Words({self._name!r})"

    @cached_property
    def _place(self) -> Path:
        return bundled_folder("reports") / "words" / f"{self._name}.toml"

    @cached_property
    def _texts(self) -> Mapping[str, Any]:
        """Every sentence. Read when the first is asked for: a module may name its words as it loads."""
        try:
            return tomllib.loads(self._place.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ResourceError(f"{self._place}: {error}; correct the file") from error

    def __call__(self, name: str, /, **values: Any) -> str:
        """A sentence with its values. Raises ResourceError if the file has no such sentence, or it asks for another."""
        try:
            sentence = self._texts[name]
            if isinstance(sentence, dict):
                sentence = sentence["one" if values["n"] == 1 else "many"]
            return str(sentence).format_map(values)
        except (KeyError, ValueError, IndexError, AttributeError, TypeError) as error:
            known = ", ".join(sorted(values)) or "none"
            fault = f"{type(error).__name__}: {error}; values that it may use: {known}"
            raise ResourceError(f"{self._place}: sentence {name!r}: {fault}") from error

    def named(self, table: str) -> Mapping[str, str]:
        """The words of a table: what each of its keys is called."""
        names: Mapping[str, str] = self._texts[table]
        return names


@cache
def words(name: str) -> Words:
    """The sentences of a file, read once."""
    return Words(name)
