"""Shapes of lines: a log of a million steps is one line a million times, with other numbers.

A reader that has read one record line by line tells where the figures stand on it. The line with its numbers taken out
is its *shape*: one pattern that takes hundreds of such lines out of a chunk at once, as columns of words. Every part of
the pattern is a literal or a possessive class of characters, so that matching never goes back: it is linear in the
text, whatever the text is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_
from typing import Final

from receipts.ingest.record import RecordColumns

# A colour whose escape byte a page dropped, or a tool printed as a caret. Of "[5m30s]" it is a time.
_CODE: Final = rb"(?:\^\[)?\[\d{1,2}(?:;\d{1,3})*m(?!\s?\d{1,2}s)|\^\[\[[\d;]*[mK]"
# The same by the sign that each of them has, for whether there is one: a search for a sign is twenty times as fast.
CODE: Final = re.compile(rb"\[(?:\d{1,2}(?:;\d{1,3})*m(?!\s?\d{1,2}s)|(?<=\^\[\[)[\d;]*[mK])")
# Colours, cursor moves, titles and character sets, as terminals read them (ECMA-48, ECMA-35).
ANSI: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-Z\\^-~])|" + _CODE)
MAX_SHAPES: Final = 6
_MAX_LINE: Final = 2_000
# A number that no reader asked for, units and dates included: it may be another one on the next line.
_NUMBER: Final = re.compile(rb"(?<![\w.+\-])[-+]?\d[\dA-Za-z.+\-]*(?:,\d[\dA-Za-z.+\-]*)*")
_BLANKS: Final = re.compile(rb" +\Z")


@dataclass(frozen=True, slots=True)
class LineShape:
    """A pattern of one whole line without its end; its groups are the figures of these names. ``text`` is a line."""

    pattern: bytes
    names: tuple[str, ...]
    text: str = ""


def learn(raw: bytes, spans: Mapping[str, tuple[int, int]]) -> LineShape | None:
    """The shape of a line, whose figures stand at ``spans`` of its text; None where it is no line to learn from.

    ``raw`` is the line as it lies in the file, with its colours; the spans count characters of the text without them.
    """
    body = raw.rstrip(b"\r")
    if not body.isascii() or b"\r" in body or len(body) > _MAX_LINE:
        return None
    # Within colours no number is sought, and what is no part of the text has no place in it.
    hidden = ANSI.sub(lambda match: b"\x1b" * len(match[0]), body)
    shown = [at for at, code in enumerate(hidden) if code != 0x1B]
    holes: list[tuple[int, int, str]] = []
    for name, (start, stop) in spans.items():
        if not 0 <= start < stop <= len(shown) or shown[stop - 1] - shown[start] != stop - 1 - start:
            return None
        holes.append((shown[start], shown[stop - 1] + 1, name))
        hidden = hidden[: shown[start]] + b"\x1b" * (stop - start) + hidden[shown[start] + stop - start :]
    holes.extend((*match.span(), "") for match in _NUMBER.finditer(hidden))
    holes.sort()
    parts: list[bytes] = []
    at = 0
    for start, stop, name in holes:
        after = raw[stop : stop + 1]
        if start < at or after in {b".", b"+", b"-"} or after.isdigit():
            return None
        literal = raw[at:start]
        blanks = _BLANKS.search(literal)
        # A number that gets wider takes the place of blanks before it.
        parts.append(re.escape(literal) if blanks is None else re.escape(literal[: blanks.start()]) + b" ++")
        letters = b"" if after.isalpha() or after == b"_" else b"A-Za-z"
        comma = b"" if after == b"," else b","
        figure = rb"[\d" + letters + rb".+\-" + comma + b"]"
        parts.append(b"(" + figure + b"++)" if name else rb"[\d+\-]" + figure + b"*+")
        at = stop
    names = tuple(name for _, _, name in holes if name)
    return LineShape(b"".join(parts) + re.escape(raw[at:]), names, ANSI.sub(b"", body).decode()) if names else None


@dataclass(slots=True)
class _Known:
    reader: int
    shape: LineShape
    used: int = 1


@dataclass(frozen=True, slots=True)
class Sifted:
    """A piece of a log, taken apart: records by reader, and the other lines with their numbers."""

    tables: dict[int, list[RecordColumns]]
    rest: bytes
    lines: Sequence[int]


class Sieve:
    """Takes the lines of known shapes out of pieces of a log."""

    def __init__(self) -> None:
        self._known: list[_Known] = []
        self._pattern: re.Pattern[bytes] | None = None

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, reader: int, shape: LineShape) -> bool:
        """Know one more shape of a reader's; the one that is used least makes room. False where it was known."""
        if any(known.reader == reader and known.shape.pattern == shape.pattern for known in self._known):
            return False
        if len(self._known) == MAX_SHAPES:
            self._known.remove(min(self._known, key=lambda known: known.used))
        self._known.append(_Known(reader, shape))
        shapes = b"|".join(known.shape.pattern for known in self._known)
        self._pattern = re.compile(b"(?:" + shapes + b"|(.*))\n")
        return True

    def sift(self, piece: bytes, first: int) -> Sifted:
        """Take a piece of whole lines apart, each with its line end; ``first`` is the number of its first line."""
        assert self._pattern is not None
        columns = list(zip(*self._pattern.findall(piece), strict=True))
        # The last column holds the lines of no shape.
        numbers = range(first, first + len(columns[-1]))
        by_shape: dict[int, list[RecordColumns]] = {}
        others: list[bool] | None = None
        at = 0
        for known in self._known:
            names = known.shape.names
            words = columns[at : at + len(names)]
            at += len(names)
            count = len(numbers) - words[0].count(b"")
            known.used = known.used // 2 + count
            if count == len(numbers):
                table = RecordColumns(numbers, numbers, dict(zip(names, words, strict=True)), known.shape.text)
                return Sifted({known.reader: [table]}, b"", ())
            if count:
                hits = list(map(bool, words[0]))
                lines = list(compress(numbers, hits))
                taken = {name: list(compress(column, hits)) for name, column in zip(names, words, strict=True)}
                by_shape.setdefault(known.reader, []).append(RecordColumns(lines, lines, taken, known.shape.text))
                missed = list(map(not_, hits))
                others = missed if others is None else [a and b for a, b in zip(others, missed, strict=True)]
        if others is None:
            return Sifted(by_shape, piece, numbers)
        rest = b"\n".join(compress(columns[-1], others)) + b"\n"
        return Sifted(by_shape, rest, list(compress(numbers, others)))
