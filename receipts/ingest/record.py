"""What a record is: how a line prints it, where it is on a line, and many of them as columns.

`RecordColumns` are records of one shape as columns of words, read as numbers; `in_order` puts the records of several
shapes in their order. `Form` says how a line prints a record, `Pieces` finds the records on a line, and `RecordRows`
are their figures.

A log of a million steps is one line a million times, with other numbers. A reader that has read one record line by line
tells where the figures stand on it. The line with its numbers taken out is its *shape*: one pattern that takes hundreds
of such lines out of a chunk at once, as columns of words. Every part of the pattern is a literal or a possessive class
of characters, so that matching never goes back: it is linear in the text, whatever the text is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_
from typing import Any, Final

import orjson

from receipts.base.units import LETTERS
from receipts.ingest.steps import ABSENT

_MAX_INTEGER: Final = 10**12
_LETTERS: Final = {ord(letter): factor for letter, factor in LETTERS.items() if letter}
_LETTER: Final = re.compile(b"[" + "".join(LETTERS).encode() + b"] ")
_GROUPED: Final = re.compile(rb"(?:[-+]?+\d{1,3}+(?:,\d{3})*+(?:\.\d++)?+ )*+")


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Records of one shape in the order of the file: words for each figure, and the lines on which they begin and end.

    Where two lines of a source follow each other all along, of two shapes and with figures of different names, they
    are one record: ``ends`` are the second lines. ``text`` is one of the lines: others differ from it in numbers alone.
    """

    lines: Sequence[int]
    ends: Sequence[int]
    figures: Mapping[str, Sequence[bytes]]
    text: str = ""

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: str) -> bool:
        return name in self.figures

    @property
    def names(self) -> Iterable[str]:
        """The names of the figures, in the order in which they stand on a line."""
        return self.figures

    def words(self, name: str) -> Sequence[bytes]:
        """One figure as it is printed."""
        return self.figures[name]

    def whole(self, name: str) -> list[int]:
        """One figure as whole numbers of up to twelve digits; ValueError where one is something else."""
        words = self.figures[name]
        numbers = _json(words, b"0123456789,")
        if numbers is None:
            if not all(map(bytes.isdigit, words)):
                raise ValueError(name)
            numbers = list(map(int, words))
        if max(numbers) >= _MAX_INTEGER:
            raise ValueError(name)
        return numbers

    def floats(self, name: str) -> list[float]:
        """One figure as numbers, NaN and infinities included; ValueError where one is something else, or was cut."""
        words = self.figures[name]
        numbers = _json(words, b"0123456789.,-+eE")
        if numbers is not None:
            return numbers
        text = b" ".join(words) + b" "
        if b". " in text:
            raise ValueError(name)
        if b"," in text:
            if not _GROUPED.fullmatch(text):
                raise ValueError(name)
            words = text.replace(b",", b"").split()
        return list(map(float, words))

    def scaled(self, name: str) -> list[float]:
        """One figure as numbers with letters of base 1000, ``4.14M``; ValueError where one is something else."""
        words = self.figures[name]
        text = b" ".join(words) + b" "
        for letter, factor in LETTERS.items():
            # Most often all of them have the same letter, or none.
            if letter and text.count(letter.encode() + b" ") == len(words):
                return [value * factor for value in map(float, text.replace(letter.encode() + b" ", b" ").split())]
        return list(map(_scaled, words)) if _LETTER.search(text) else self.floats(name)

    def part(self, start: int, stop: int) -> RecordColumns:
        """Some of the records."""
        figures = {name: words[start:stop] for name, words in self.figures.items()}
        return RecordColumns(self.lines[start:stop], self.ends[start:stop], figures, self.text)

    def before(self, line: int) -> int:
        """How many of the records end before a line."""
        return bisect_left(self.ends, line)


def _json(words: Sequence[bytes], letters: bytes) -> list[Any] | None:
    """Words as numbers where all of them are numbers of JSON, as nearly always: it reads them three times as fast."""
    text = b",".join(words)
    if text.translate(None, letters):
        return None
    try:
        values: list[Any] = orjson.loads(b"[" + text + b"]")
    except orjson.JSONDecodeError:
        return None
    return values if len(values) == len(words) else None


def _scaled(word: bytes) -> float:
    factor = _LETTERS.get(word[-1])
    return float(word) if factor is None else float(word[:-1]) * factor


def in_order(tables: Sequence[RecordColumns]) -> Iterator[RecordColumns]:
    """The records of several shapes in the order of their lines: runs of one kind, or of two that alternate."""
    # Shapes with figures of the same names as one.
    kinds: dict[frozenset[str], list[RecordColumns]] = {}
    for table in tables:
        kinds.setdefault(frozenset(table.names), []).append(table)
    tables = [kind[0] if len(kind) == 1 else _merged(kind) for kind in kinds.values()]
    if len(tables) == 1:
        yield tables[0]
        return
    order = sorted((line, which, at) for which, table in enumerate(tables) for at, line in enumerate(table.lines))
    start = 0
    while start < len(order):
        stop = _run(order, start, 1)
        first, second = order[start], order[min(stop, len(order) - 1)]
        apart = set(tables[first[1]].names).isdisjoint(tables[second[1]].names)
        pairs = _run(order, start, 2) if stop == start + 1 and apart else start
        if pairs > start + 2:
            count = (pairs - start) // 2
            one, other = (tables[which].part(at, at + count) for _, which, at in (first, second))
            yield RecordColumns(one.lines, other.ends, {**one.figures, **other.figures}, f"{one.text}\n{other.text}")
            start += 2 * count
        else:
            yield tables[first[1]].part(first[2], order[stop - 1][2] + 1)
            start = stop


def _merged(tables: Sequence[RecordColumns]) -> RecordColumns:
    lines = [line for table in tables for line in table.lines]
    order = sorted(range(len(lines)), key=lines.__getitem__)
    figures = {}
    for name in tables[0].names:
        words = [word for table in tables for word in table.figures[name]]
        figures[name] = [words[at] for at in order]
    lines.sort()
    return RecordColumns(lines, lines, figures, tables[0].text)


def _run(order: Sequence[tuple[int, int, int]], start: int, stride: int) -> int:
    """Where the records from ``start`` on cease to be of the shape of the one that stands ``stride`` before."""
    stop = min(start + stride, len(order))
    while stop < len(order) and order[stop][1] == order[stop - stride][1]:
        stop += 1
    return stop


_MAX_PIECES: Final = 8
_MAX_RECORD: Final = 4_000
# What a page puts before the lines that it quotes.
_MARGIN: Final = " \t>#"


@dataclass(frozen=True, slots=True)
class Form:
    """How a record is printed.

    The named groups of ``head`` are whole numbers, of which one is the ``step``. Each of ``cells`` has the groups
    ``label`` and ``word``, and ``unit`` where the unit is a part of the label. ``end`` matches, from the head on, up to
    what every whole record reaches, where a record may be broken over several lines.
    """

    head: re.Pattern[str]
    cells: tuple[re.Pattern[str], ...]
    end: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class LineRecord:
    """One record on a line: where it begins and ends, and where the words of its figures are, by label."""

    start: int
    stop: int
    spans: dict[str, tuple[int, int]]
    whole: bool


@dataclass(slots=True)
class RecordRows:
    """Records of one shape. ``text`` is one of their lines: the others differ from it in numbers alone.

    ``counts`` are the whole numbers of their heads; ``figures`` are by field in SI units, `ABSENT` where not printed.
    """

    steps: list[int]
    lines: Sequence[int]
    counts: dict[str, list[int]]
    figures: dict[str, list[float]]
    columns: RecordColumns

    def __iter__(self) -> Iterator[RecordRows]:
        """One record after the other."""
        for at, (step, line) in enumerate(zip(self.steps, self.lines, strict=True)):
            counts = {name: [column[at]] for name, column in self.counts.items()}
            figures = {name: [column[at]] for name, column in self.figures.items() if column[at] != ABSENT}
            yield RecordRows([step], [line], counts, figures, self.columns)

    @property
    def text(self) -> str:
        """A line of this shape."""
        return self.columns.text

    def keep(self, kept: Sequence[bool]) -> None:
        """Leave out some of the records."""
        if all(kept):
            return
        self.steps, self.lines = list(compress(self.steps, kept)), list(compress(self.lines, kept))
        self.counts = {name: list(compress(column, kept)) for name, column in self.counts.items()}
        self.figures = {name: list(compress(column, kept)) for name, column in self.figures.items()}

    def values(self, field: str) -> list[float]:
        """The figures of one field; as many `ABSENT` where the lines do not print it."""
        return self.figures.get(field) or [ABSENT] * len(self.lines)


class Pieces:
    """A record that a terminal or a page broke over several lines, put together again; true while one is held."""

    def __init__(self) -> None:
        self.line = 0
        self._text = ""
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._text)

    def hold(self, text: str, line: int) -> bool:
        """Keep a record that may go on below; False where it has become too long for one."""
        if self._count >= _MAX_PIECES or len(text) > _MAX_RECORD:
            self._count = 0
            return False
        self._text, self.line = text, line
        self._count += 1
        return True

    def take(self) -> tuple[str, int]:
        """What is held, and the line on which it began; nothing is held afterwards."""
        text, self._text, self._count = self._text, "", 0
        return text, self.line

    def join(self, text: str, find: Callable[[str], Sequence[LineRecord]]) -> str | None:
        """The record with its next piece; None where the line is no piece of it.

        A terminal breaks within words and figures, an editor between words: of both ways the one with more figures is
        right. A line that adds no figure and changes none is another's.
        """
        if len(text) > _MAX_RECORD or find(text):
            return None
        before = _figures(self._text, find)
        ways = [self._text + text.rstrip(), f"{self._text.rstrip()} {text.strip(_MARGIN)}"]
        figures = [_figures(way, find) for way in ways]
        best = 0 if len(figures[0]) >= len(figures[1]) else 1
        if len(figures[best]) < len(before) or figures[best] == before:
            return None
        self._text = ""
        return ways[best]


def _figures(text: str, find: Callable[[str], Sequence[LineRecord]]) -> dict[str, str]:
    records = find(text)
    if not records:
        return {}
    return {"": str(records[-1].whole)} | {
        label: text[start:stop] for label, (start, stop) in records[-1].spans.items()
    }


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
