"""One pass over a log: every reader's anchors are looked for at once, and each reader sees its own lines.

There are two ways through a piece of the log. Line by line: each line with an anchor goes to the readers that have it.
By shapes: lines like one that a reader has described are taken out all at once (`receipts.ingest.record`), and only
what is left goes line by line. Both leave the same in the readings; the order of lines holds within a reader only.

A program's line within another one's record is read as the line: Docker's log driver, a cloud's export, a logger in
JSON, a notebook.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, Implementation

from receipts.ingest.reader import LineReader, line_readers
from receipts.ingest.reading import Place, Reading, Remark
from receipts.ingest.record import ANSI, CODE, RecordColumns, Sieve, in_order, learn

# Pieces in which a log is read: line by line until a shape is known, and by shapes.
_LEARNING = 1 << 15
_SIFTING = 1 << 16
# Lines of a piece that a reader is asked to describe: at first, and once something is known.
_ATTEMPTS = 16
_AGAIN = 2
# A pattern costs as much as thousands of lines: so many at once, and one more for so many lines.
_AT_ONCE = 12
_LINES = 20_000
# A piece with fewer records of known shapes than one line in so many is read sooner line by line.
_SPARSE = 128
_RESTING = 64
_MIN_LENGTH = 24
DEFECT = "a defect of the program; please report it"


def scan(chunks: Iterable[bytes], kinds: Sequence[type[LineReader]] | None = None) -> list[Reading]:
    """What the line readers find in chunks of whole lines, in the order of the readers.

    A line goes to a reader that has an anchor on it, and as long as the reader asks for more.
    """
    classes = tuple(kinds) if kinds is not None else line_readers()
    scanner = Scanner(classes)
    for chunk in chunks:
        scanner.feed(chunk)
    return scanner.finish()


@cache
def _automaton(classes: tuple[type[LineReader], ...]) -> tuple[BytesAhoCorasick, tuple[tuple[int, int], ...]]:
    """The anchors of all readers as one automaton; for each, the readers whose it is and those that follow, as bits."""
    wanted: dict[bytes, tuple[int, int]] = {}
    for index, reader in enumerate(classes):
        for anchor in reader.anchors:
            own, followed = wanted.get(anchor, (0, 0))
            wanted[anchor] = own | 1 << index, followed
        for anchor in reader.companions:
            own, followed = wanted.get(anchor, (0, 0))
            wanted[anchor] = own, followed | 1 << index
    automaton = BytesAhoCorasick(list(wanted), implementation=Implementation.DFA)
    return automaton, tuple(wanted.values())


class Scanner:
    """Readers and their anchors, over one log."""

    def __init__(self, classes: tuple[type[LineReader], ...]) -> None:
        self._readers = [reader() for reader in classes]
        self._automaton, self._wanted = _automaton(classes)
        self._masks = [0] * len(self._wanted)
        # Readers that follow come and go with every compile of a log.
        self._known: dict[tuple[int, int], list[int]] = {}
        self._alive = (1 << len(classes)) - 1
        self._following = [index for index, reader in enumerate(classes) if reader.companions]
        self._companions = sum(1 << index for index in self._following)
        self._follows = -1
        self._describing = sum(
            1 << index for index, reader in enumerate(classes) if reader.spans is not LineReader.spans
        )
        self._sieve = Sieve()
        self._attempts: dict[int, int] = {}
        self._learnt = 0
        self._resting = 0
        self._holding = 0
        self._line = 1
        self._mask()

    def feed(self, chunk: bytes) -> None:
        """Read one chunk of whole lines, of which the last may lack its end."""
        if self._line == 1:
            chunk = chunk.removeprefix(BOM_UTF8)
        chunk = plain_text(chunk)
        at = 0
        while at < len(chunk):
            self._attempts.clear()
            sifting = bool(self._sieve) and not self._holding and self._resting <= 0
            size = _SIFTING if sifting else _LEARNING
            # No small piece is left over.
            size = size if at + size + size // 2 < len(chunk) else len(chunk)
            stop = chunk.rfind(b"\n", at, at + size) + 1
            if stop <= at:
                stop, sifting = chunk.find(b"\n", at) + 1 or len(chunk), False
            piece = chunk[at:stop] if at or stop < len(chunk) else chunk
            lines = piece.count(b"\n")
            if sifting and lines * _MIN_LENGTH <= len(piece):
                self._sift(piece)
                self._line += lines
            else:
                # Line by line.
                self._resting -= 1
                done = 0
                for start, end, mask in self._lines(piece):
                    done = self._through(piece, done, start) if self._holding else done
                    self._line += piece.count(b"\n", done, start)
                    self._give(piece[start:end], self._line, mask | self._holding)
                    done = end
                done = self._through(piece, done, len(piece)) if self._holding else done
                self._line += piece.count(b"\n", done)
            at = stop

    def finish(self) -> list[Reading]:
        """What the readers found, in their order; of one that failed, what it had until then."""
        readings = []
        for index, reader in enumerate(self._readers):
            reading: Reading | None = reader.reading
            if self._alive >> index & 1:
                try:
                    reading = reader.finish()
                except Exception as error:
                    self._fail(index, error, 0)
            if reading is not None:
                readings.append(reading)
        return readings

    # Line by line.

    def _lines(self, piece: bytes) -> Iterator[tuple[int, int, int]]:
        """Start, end and readers of every line that holds an anchor. The end is that of the text, before its break."""
        end = -1
        start = mask = 0
        masks = self._masks
        for anchor, first, _ in self._automaton.find_matches_as_indexes(piece, overlapping=True):
            if first < end:
                mask |= masks[anchor]
                continue
            if mask:
                yield start, end, mask
            mask = masks[anchor]
            if mask:
                start = piece.rfind(b"\n", 0, first) + 1
                end = piece.find(b"\n", first)
                end = len(piece) if end < 0 else end
        if mask:
            yield start, end, mask

    def _through(self, piece: bytes, at: int, stop: int) -> int:
        """Give the lines from ``at`` up to ``stop`` to the readers that hold, until none does; where it ended.

        ``at`` is where the last line's text ended, so it is on a line break, or at the start of the piece.
        """
        while self._holding and at < stop:
            if piece[at : at + 1] == b"\n":
                self._line += 1
                at += 1
                if at >= stop:
                    break
            end = piece.find(b"\n", at, stop)
            end = stop if end < 0 else end
            self._give(piece[at:end], self._line, self._holding)
            at = end
        return at

    def _give(self, raw: bytes, number: int, mask: int) -> None:
        """Give one line to some readers, and note which of them ask for the next."""
        inner = inner_line(raw)
        packed = inner is not None
        raw = raw if inner is None else inner
        body = ANSI.sub(b"", raw) if b"\x1b" in raw or CODE.search(raw) else raw
        text = body.decode("utf-8", "replace").rstrip("\r")
        parts = [part for part in text.split("\r") if part] if "\r" in text else (text,)
        for index in _bits(mask & self._alive):
            reader, bit = self._readers[index], 1 << index
            more = False
            try:
                for part in parts:
                    more = reader.line(part, number)
                if self._describing & bit and not more and len(parts) == 1 and not packed:
                    self._learn(index, raw, text)
            except Exception as error:
                more = False
                self._fail(index, error, number)
            self._holding = self._holding | bit if more else self._holding & ~bit
        if mask & self._companions:
            self._mask()

    # By shapes.

    def _sift(self, chunk: bytes) -> None:
        """Read a piece of whole lines; each reader gets its own in their order."""
        sieve = self._sieve
        sifted = sieve.sift(chunk, self._line)
        given: dict[int, list[int]] = {}
        at = count = 0
        for start, _, mask in self._lines(sifted.rest):
            count += sifted.rest.count(b"\n", at, start)
            at = start
            for index in _bits(mask):
                given.setdefault(index, []).append(sifted.lines[count])
        piece = Piece(self, chunk, self._line)
        for index in sifted.tables.keys() | given.keys():
            piece.take(index, sifted.tables.get(index, []), given.get(index, []))
        if piece.taken * _SPARSE < chunk.count(b"\n") - _SPARSE * MAX_FEW:
            self._resting = _RESTING

    def one(self, index: int, raw: bytes, number: int) -> bool:
        """Give one line to one reader; whether it asks for the next."""
        self._give(raw, number, 1 << index)
        return bool(self._holding >> index & 1)

    def many(self, index: int, columns: RecordColumns) -> bool:
        """Offer records to one reader; whether it took them. One that failed takes whatever comes."""
        if not self._alive >> index & 1:
            return True
        try:
            return self._readers[index].many(columns)
        except Exception as error:
            self._fail(index, error, columns.lines[0])
            return True

    def follows(self, index: int) -> bool:
        """Whether a reader wants the lines of its companions."""
        return bool(self._follows >> index & 1)

    def lines_after(self, index: int, piece: bytes, first: int, number: int) -> Iterator[int]:
        """The numbers of a piece's lines that one reader wants, behind one of them."""
        at = 0
        for start, _, mask in self._lines(piece):
            first += piece.count(b"\n", at, start)
            at = start
            if mask >> index & 1 and first > number:
                yield first

    def _learn(self, index: int, raw: bytes, text: str) -> None:
        """Learn the shape of a line that its reader can describe and no other reader wants."""
        tried = self._attempts.get(index, 0)
        if tried >= (_AGAIN if self._sieve else _ATTEMPTS) or self._learnt > _AT_ONCE + self._line // _LINES:
            return
        self._attempts[index] = tried + 1
        others = (other for _, _, mask in self._lines(raw) for other in _bits(mask & ~(1 << index) & self._alive))
        if any(self._readers[other].wants(text) for other in others):
            return
        spans = self._readers[index].spans(text)
        shape = learn(raw, spans) if spans else None
        if shape is not None and self._sieve.add(index, shape):
            self._learnt += 1
            self._attempts[index] = _ATTEMPTS
            self._resting = 0

    # Which readers want what.

    def _mask(self) -> None:
        """Which readers an anchor's line goes to; a reader that begins to follow needs shaped lines as lines, too."""
        follows = sum(1 << index for index in self._following if self._readers[index].follows)
        if follows != self._follows:
            self._follows = follows
            key = follows, self._alive
            if key not in self._known:
                self._known[key] = [(own | followed & follows) & self._alive for own, followed in self._wanted]
            self._masks[:] = self._known[key]
            self._sieve = Sieve()

    def _fail(self, index: int, error: Exception, number: int) -> None:
        """Drop a reader that has a defect; the others go on."""
        self._alive &= ~(1 << index)
        self._follows = -1
        self._mask()
        reading = self._readers[index].reading
        what = f"the reader of {reading.source} failed ({type(error).__name__}) and read no further: {DEFECT}"
        # Past the limit of remarks too: whoever reads the others must know of this one.
        reading.remarks.append(Remark("broken", what, Place(number)))


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


# Records are taken one by one where fewer stand together.
MAX_FEW: Final = 4


class Piece:
    """One piece of a log, from which each reader takes records and lines in turn."""

    def __init__(self, scanner: Scanner, piece: bytes, first: int) -> None:
        self._scanner = scanner
        self._piece = piece
        self._first = first
        self._split: list[bytes] = []
        # The last line that the reader has been given, and the lines that it has not and that are no records.
        self._seen = 0
        self._others: deque[int] = deque()
        self._follows = False
        self.taken = 0

    def take(self, index: int, tables: list[RecordColumns], lines: list[int]) -> None:
        """Give one reader its records, all at once where it takes them, and the other lines that it wants, in order."""
        self._seen = 0
        self._others = deque(lines)
        self._follows = self._scanner.follows(index)
        for table in in_order(tables):
            refused = 0
            while (at := table.before(self._seen + 1)) < len(table):
                self._before(index, table.lines[at])
                stop = table.before(self._others[0]) if self._others else len(table)
                if stop - at >= MAX_FEW and at >= refused and self._seen < table.lines[at]:
                    if self._scanner.many(index, table.part(at, stop)):
                        self.taken += stop - at
                        self._seen = table.ends[stop - 1]
                        continue
                    refused = stop
                # Other lines of this reader's may stand between the two of one record.
                self._line(index, table.lines[at])
                self._before(index, table.ends[at])
                self._line(index, table.ends[at])
        self._before(index, self._first + len(self._piece))

    def _before(self, index: int, number: int) -> None:
        """Give the lines that are no records and stand before one."""
        while self._others and self._others[0] < number:
            self._line(index, self._others.popleft())

    def _line(self, index: int, number: int) -> None:
        """Give one line, and those after it for which the reader asks."""
        if number <= self._seen:
            return
        if not self._split:
            self._split = self._piece.split(b"\n")[:-1]
        while self._scanner.one(index, self._split[number - self._first], number):
            number += 1
            if number - self._first >= len(self._split):
                number -= 1
                break
        self._seen = number
        if self._scanner.follows(index) != self._follows:
            # From here on it wants lines that were taken out as records, or no lines of others any more.
            self._follows = not self._follows
            self._others = deque(self._scanner.lines_after(index, self._piece, self._first, number))


# Names of the member that holds the line: Docker, Cloud Logging, structured loggers, systemd, Loki.
_NAMES: Final = ("log", "textPayload", "message", "msg", "MESSAGE", "line")
_NAME: Final = b'"(?:' + "|".join(_NAMES).encode() + rb')"\s{0,4}:\s{0,4}"'
_RECORD: Final = re.compile(rb"\s*+\{.{0,4000}?" + _NAME)
# One member a line, as exports are indented, or an element of a notebook's output, which keeps its line end.
_MEMBER: Final = re.compile(rb"\s*+" + _NAME[:-1] + rb'("(?:[^"\\]|\\.)*+")\s*+,?\s*+')
_ELEMENT: Final = re.compile(rb'\s*+("(?:[^"\\]|\\.)*+(?<=\\n)")\s*+,?\s*+')

# A blank that does not break, in UTF-8: what was copied from a web page has them, also within anchors.
_UNBREAKABLE = b"\xc2\xa0"
# Characters that a web page escapes.
_ENTITIES = {
    b"lt": b"<",
    b"gt": b">",
    b"quot": b'"',
    b"#34": b'"',
    b"#39": b"'",
    b"#x27": b"'",
    b"nbsp": b" ",
    b"amp": b"&",
}
# What a page makes bold: a figure or a word.
_EMPHASIS = re.compile(rb"(?<!\*)\*\*([^\s*][^*\n]{0,60}(?<!\s))\*\*(?!\*)")
_ENTITY = re.compile(rb"&(" + b"|".join(_ENTITIES) + rb");")


def plain_text(chunk: bytes) -> bytes:
    """Text as it was before a web page wrote it: blanks that break, and characters that are not escaped."""
    if _UNBREAKABLE in chunk:
        chunk = chunk.replace(_UNBREAKABLE, b" ")
    if b"**" in chunk:
        chunk = _EMPHASIS.sub(rb"\1", chunk)
    if b"&" in chunk:
        chunk = _ENTITY.sub(lambda match: _ENTITIES[match[1]], chunk)
    return chunk


def inner_line(raw: bytes) -> bytes | None:
    """The line that a record holds, its inner line ends as carriage returns; None for a line that is no record."""
    head = raw.lstrip()[:1]
    if head == b"{":
        return _line_of(raw) if _RECORD.match(raw) else None
    if head == b'"' and (match := _MEMBER.fullmatch(raw) or _ELEMENT.fullmatch(raw)):
        return _line_of(match[1])
    return None


def _line_of(document: bytes) -> bytes | None:
    try:
        node = json.loads(document)
    except (ValueError, RecursionError):
        return None
    if isinstance(node, dict):
        node = next((node[name] for name in _NAMES if isinstance(node.get(name), str)), None)
    if not isinstance(node, str):
        return None
    return node.removesuffix("\n").replace("\n", "\r").encode("utf-8", "replace")
