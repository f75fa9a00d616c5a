"""Text for people: of receipts and numbers, of the sentences of pages, and JSON.

Whatever a label holds, it stays one harmless piece of text. The sentences of a page stand in
``reports/words/NAME.toml``, where a person edits them, and code fills in the values: ``name = "text with {value}"``;
``{value:…}`` takes what Python's format takes. ``name.one`` and ``name.many`` are the two forms of a sentence with a
count ``n``. TOML and not Jinja, which alone takes as long to load as a command may.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from receipts.base import units
from receipts.base.environment import bundled_folder
from receipts.base.errors import ResourceError
from receipts.base.untrusted_text import UNKNOWN, plain

NOTE = 240  # of a message or a note, where the receipt holds the whole
CELL = 1200
_MARKUP = "\\`*[]<>#|$"
_EDGE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|~(?=~|\S)")  # what Markdown reads as a mark of its own
_HELD = re.compile(r"\d \+ \d+(?: launches)?|\d %|\d × \w")  # what no line is broken within
_MEANS_MORE = re.compile(r"[\\`*\[\]<>#|$_~&@]|://|www\.")  # all that `cell` changes


def held(text: str) -> str:
    """Text whose numbers stay with their sign and unit: no-break spaces, which `plain` never leaves in a text."""
    return _HELD.sub(lambda match: match[0].replace(" ", "\u00a0"), text)


def cell(text: object) -> str:
    """Text that cannot break a Markdown table, or smuggle markup into a page that renders it."""
    shown = plain(text, CELL)
    if _MEANS_MORE.search(shown) is None:
        return shown
    for char in _MARKUP:
        shown = shown.replace(char, f"\\{char}")
    shown = _EDGE.sub(r"\\\g<0>", shown)
    # `&lt;` would come out as markup's own sign, and `http://…` or `@name` as a link.
    shown = shown.replace("&", "&amp;").replace("://", ":&#47;/").replace("@", "&#64;")
    return shown.replace("www.", "www&#46;")


def value(item: Any) -> str:
    """An axis value for people."""
    from receipts.axes.effective import stated_words  # a command's help is printed without pydantic

    return plain(stated_words(item))


def number(item: float | None) -> str:
    """A whole number in groups of three, a small one to four digits; `~` where there is none."""
    if item is None:
        return UNKNOWN
    return f"{item:,.0f}" if abs(item) >= 1000 or float(item).is_integer() else f"{item:.4g}"


def gib(item: float | None) -> str:
    """Bytes as GiB, to a hundredth."""
    return UNKNOWN if item is None else f"{item / 2**30:,.2f}"


def amount(item: float | None, like: float | None = None) -> str:
    """Bytes with the unit of their size, or of that of ``like``: what a kernel asks for is lost in GiB."""
    return UNKNOWN if item is None else units.amount(item, like)


def percent(item: float | None, digits: int = 1) -> str:
    """A fraction in percent."""
    return UNKNOWN if item is None else f"{item * 100:.{digits}f}"


def change(ratio: float | None) -> str:
    """B over A as a signed change in percent, where the column names the unit."""
    return UNKNOWN if ratio is None else units.signed((ratio - 1) * 100, "+.2f")


def span(low: float | None, high: float | None) -> str:
    """An interval of B over A as changes in percent."""
    return UNKNOWN if low is None or high is None else f"{change(low)} to {change(high)}"


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


def json_text(document: Any) -> str:
    """A document as JSON, indented, keys in their order, signs that a terminal obeys escaped; without a line's end."""
    text = json.dumps(document, default=_plain_value, ensure_ascii=False, indent=2)
    # Inside a string every sign may be written escaped.
    signs = {sign for sign in set(text) if not sign.isprintable() and sign != "\n"}
    if signs:
        escaped = {sign: json.dumps(sign)[1:-1] for sign in signs}
        text = text.translate(
            {ord(sign): spelled if spelled != sign else f"\\u{ord(sign):04x}" for sign, spelled in escaped.items()}
        )
    return text


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)
