"""Numbers and dictionaries as programs print them: JSON, Python's repr, and what lies between. Never evaluated.

Numbers come with separators, letters, units and quotes; sizes in bytes go by the unit that is there. Logs hold
``{'loss': nan}``, ``{"bucket": 5.000000e+08,}``, ``dtype=torch.bfloat16`` and objects such as
``<Config object at 0x7f…>``. A word that is not a literal is kept as text; a document that is cut off gives what came
before the cut.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import repeat
from math import isfinite
from typing import Any, Final, TypeGuard

from receipts.base.units import BINARY, LETTERS

_PRINTED_NUMBER = re.compile(
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)",
    re.IGNORECASE,
)
# A figure in the pattern of a line; what `number` reads, without blanks and quotes.
FIGURE: Final = r"[-+]?(?:\d{1,24}(?:,\d{3}){0,8}(?:\.\d{0,24})?(?:[eE][-+]?\d{1,4})?|\.\d{1,24}|nan|inf)"
_SIZE = re.compile(
    r"(?P<number>[-+]?\d[\d,]*(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*(?P<letter>[kKMGTP]?)(?P<i>i?)(?P<b>[bB]?)(?:ytes)?"
)

# Sizes as allocators print them, all of base 1024. A number without its unit is a message that was cut; `\b` keeps
# "25.3 G" of "25.3 GiB" from being a size.
SIZE: Final = r"(\d{1,20}(?:\.\d{1,9})?\s?(?:[KMGT]iB|[KMGT]B?|B|bytes))\b(?![.,]?\d)"
# NVML says "not available" with 2**64-1, and fractions that were never set are 2**64: no memory is that large.
UNSET: Final = 1 << 60


def number(value: Any) -> float | None:
    """The number that a text or a value is, or None: ``1,234.5``, ``"0.25"`` in quotes, ``1e-3``; no letter."""
    if isinstance(value, str):
        word = value.strip().strip("'\"").strip()
        return float(word.replace(",", "")) if _PRINTED_NUMBER.fullmatch(word) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1 << 1023 or isinstance(value, float) else None


def scaled(text: str) -> float | None:
    """A number with a letter of base 1000: ``4.14M`` is 4,140,000, ``520`` is 520; None where it is neither."""
    word = text.strip().strip("'\"").strip()
    if word and word[-1] in LETTERS:
        value = number(word[:-1])
        return None if value is None else value * LETTERS[word[-1]]
    return number(word)


def size(text: str, *, decimal: bool = False) -> int | None:
    """A size in bytes: ``26.25G``, ``8.00 MiB``, ``640 bytes``, ``512``. None where the text is no size, or endless.

    ``KiB`` is 1024. What ``K`` and ``KB`` are is the source's: 1024 (allocators, XLA), or 1000 where ``decimal``.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    letter = match["letter"].upper()
    factor = LETTERS[letter] if decimal and not match["i"] else BINARY[letter]
    value = float(match["number"].replace(",", "")) * factor
    return round(value) if isfinite(value) else None


def binary_size(text: str | None) -> int | None:
    """Bytes of a matched `SIZE` or of a plain count; None where nothing was matched, or where it is a sentinel."""
    value = size(text) if text else None
    return None if value is None or value >= UNSET else value


def judged(losses: Sequence[float], norms: Sequence[float] = ()) -> tuple[bool, bool]:
    """Whether some records have diverged, and whether some have not: a loss that is not finite, or a norm of NaN."""
    if isfinite(sum(losses)) and isfinite(sum(norms)):
        return False, bool(losses)
    rows = zip(losses, norms or repeat(0.0), strict=False)
    bad = [not isfinite(loss) or norm != norm for loss, norm in rows]
    return any(bad), not all(bad)


MAX_DEPTH: Final = 40
MAX_ITEMS: Final = 50_000
MAX_LINE: Final = 1 << 16
_TOKEN = re.compile(
    r"""(?P<mark>[{}\[\](),:])
    |(?P<string>[bruf]{0,2}(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))
    |(?P<word>[^\s{}\[\](),:'"][^\s{}\[\](),:]*)""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_NUMBER = re.compile(
    r"[-+]?(?:\d[\d_]*(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE
)
_WORDS: Final = {"true": True, "false": False, "none": None, "null": None}
_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}
_MAX_DIGITS: Final = 400


def literal(text: str, start: int = 0) -> Any:
    """The value that begins at ``start``: dict, list (tuples too), text, number, bool or None.

    What cannot be read is text; nesting beyond `MAX_DEPTH` and items beyond `MAX_ITEMS` are left out.
    """
    return _Literal(text, start).value()


def balanced(text: str) -> int:
    """How many braces stay open after ``text``, those in quotes aside; what opened on a line that goes on below."""
    depth = 0
    for match in _TOKEN.finditer(text):
        if match["mark"] == "{":
            depth += 1
        elif match["mark"] == "}":
            depth -= 1
    return depth


class Brackets:
    """The lines of one printed object, until its braces close; true while one is open. It began on ``line``."""

    def __init__(self, most: int) -> None:
        self.line = self._depth = self._pieces = 0
        self._most = most
        self._lines: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._lines)

    def begin(self, text: str, line: int) -> bool:
        """Begin with the text from the first brace on; whether the object goes on below."""
        self._lines, self.line, self._depth, self._pieces = [text], line, balanced(text), 1
        return self._depth > 0

    def more(self, text: str, *, glued: bool = False) -> bool:
        """Take one more line, or the rest of the one before (``glued``); whether the object goes on below it."""
        before = self._lines.pop() if glued else ""
        self._lines.append(before + text)
        self._depth += balanced(before + text) - balanced(before)
        self._pieces += 1
        return self._depth > 0 and self._pieces < self._most and len(before + text) <= MAX_LINE

    @property
    def cut(self) -> bool:
        """Whether its braces did not close."""
        return self._depth > 0

    def take(self) -> str:
        """The object, closed where it was cut off; nothing where none is open, as none is afterwards."""
        lines, self._lines = self._lines, []
        return "\n".join(lines) + "}" * max(0, self._depth) if lines else ""


def csv_cells(line: str) -> list[str]:
    """The cells of one line of CSV, without the mark that begins a file; none where it is no such line."""
    try:
        return next(csv.reader([line.lstrip("\ufeff")]), [])
    except csv.Error:
        return []


def flattened(value: Any, prefix: str = "", depth: int = 8) -> dict[str, Any]:
    """Leaves of nested dictionaries by dotted names, ``training.seq_len``; lists are leaves."""
    if not isinstance(value, dict) or not depth:
        return {prefix: value} if prefix else {}
    leaves: dict[str, Any] = {}
    for key, item in value.items():
        leaves.update(flattened(item, f"{prefix}.{key}" if prefix else str(key), depth - 1))
    return leaves


def integer(value: Any) -> int | None:
    """A whole number, also of a quoted or float form (``1e6``); None for anything else, truth values included."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        value = _word(value.strip().replace(",", ""))
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def counted(value: Any) -> TypeGuard[int]:
    """Whether a value of JSON is a count: a whole number from 0, and no truth value."""
    return type(value) is int and 0 <= value < 1 << 53


def _word(text: str) -> Any:
    lower = text.lower()
    if lower in _WORDS:
        return _WORDS[lower]
    if len(text) < _MAX_DIGITS and _NUMBER.fullmatch(text):
        digits = text.replace("_", "")
        if digits.lstrip("+-").isdigit():
            whole = int(digits)
            return whole if abs(whole) < 2**63 else float(digits)
        return float(digits)
    return text


class _Literal:
    """One value out of a text, token by token; the position only moves forward."""

    def __init__(self, text: str, start: int) -> None:
        self._tokens = _TOKEN.finditer(text, start)
        self._text = text
        self._items = 0
        self._held: re.Match[str] | None = None

    def value(self, depth: int = 0) -> Any:
        token = self._next()
        if token is None:
            return None
        if token["string"] is not None:
            return self._string(token["string"])
        if token["word"] is not None:
            return self._words(token)
        if token["mark"] in _CLOSERS and depth < MAX_DEPTH:
            return self._mapping(depth + 1) if token["mark"] == "{" else self._list(_CLOSERS[token["mark"]], depth + 1)
        self._held = None if token["mark"] in _CLOSERS else token
        return None

    def _mapping(self, depth: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        while (token := self._next()) is not None and token["mark"] != "}":
            if token["mark"] is not None:
                continue
            key = self._string(token["string"]) if token["string"] is not None else token["word"]
            colon = self._next()
            if colon is None or colon["mark"] != ":":
                self._held = colon
                continue
            value = self.value(depth)
            if self._room():
                entries[key] = value
        return entries

    def _list(self, closer: str, depth: int) -> list[Any]:
        items: list[Any] = []
        while (token := self._next()) is not None and token["mark"] != closer:
            if token["mark"] in ("}", "]", ")"):
                self._held = token
                return items
            if token["mark"] in (",", ":"):
                continue
            self._held = token
            value = self.value(depth)
            if self._room():
                items.append(value)
        return items

    def _words(self, first: re.Match[str]) -> Any:
        """A word, or several up to the next mark; a call such as ``device(type='cuda')`` is kept as its text."""
        start, end = first.start("word"), first.end()
        single, depth = True, 0
        while (token := self._next()) is not None:
            mark = token["mark"]
            if depth == 0 and mark in (",", "}", "]", ")", ":"):
                self._held = token
                break
            if mark in _CLOSERS:
                depth += 1
            elif mark in ("}", "]", ")"):
                depth -= 1
            single, end = False, token.end()
        return _word(first["word"]) if single else self._text[start:end][:MAX_ITEMS]

    def _string(self, text: str) -> str:
        body = text[text.index(text[-1]) + 1 : -1]
        return _ESCAPE.sub(r"\1", body) if "\\" in body else body

    def _room(self) -> bool:
        self._items += 1
        return self._items <= MAX_ITEMS

    def _next(self) -> re.Match[str] | None:
        if (held := self._held) is not None:
            self._held = None
            return held
        return next(self._tokens, None)
