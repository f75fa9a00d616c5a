"""What wraps a log: the width at which a terminal or a page broke its lines, and the margin before every line.

A terminal breaks every line at one column, within a word or a figure; an editor breaks at blanks before a column. Both
leave their mark in the lengths of the lines. Whether a file was broken cannot be seen from one line, and a table's rows
are of one length too: so the file is read as it stands and as it may have been, and what tells more is what it was.

A margin is what a collector or a viewer puts before every line: a time, a stream, a pod, the number of the line. It is
the same on nearly all lines except for its times and for a number that only grows. A rank varies and does not grow, so
a margin ends before it. Readers find their records behind any margin; tables, dumps and blocks of several lines need it
gone. A margin is taken away only where the log then tells more.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from typing import Final

from receipts.ingest.reading import AllocationFailure, CompileCounts, MemoryRow, Place, Reading
from receipts.ingest.record import ANSI
from receipts.ingest.scan import scan
from receipts.ingest.steps import FIELDS

# What was broken was copied from a screen or a page: no log of a long run.
MAX_SIZE: Final = 1 << 18
_NARROWEST: Final = 40
_MAX_SCREEN: Final = 400
_MAX_PAGE: Final = 160
_MAX_PIECES: Final = 2000
_OFTEN: Final = 3
_HEAD: Final = 8
# A page that puts a blank line below every line has one in two.
_DOUBLE_SPACED: Final = 3


def unwrapped(text: bytes, readings: list[Reading]) -> list[Reading]:
    """The readings of a whole file, or better ones of what it was before it was broken.

    ``readings`` are those of ``text`` as it stands. Lines of what is reported are those of ``text`` in either case.
    """
    # Lines without the margin that a page put before all of them: blanks, or the marks of a quotation.
    lines = [line.rstrip("\r") for line in ANSI.sub(b"", text).decode("utf-8", "replace").split("\n")]
    margins = [len(line) - len(line.lstrip(" \t>")) for line in lines if line.strip(" \t>")]
    size = min(margins, default=0)
    lines = [line[size:] for line in lines] if size else lines
    before = figures(readings)
    for ways in _ways(lines):
        best: list[Reading] = []
        most, places = -1, list[int]()
        for join in ways:
            joined, first = _joined(lines, join)
            if len(joined) < len(lines):
                inner = scan(["\n".join(joined).encode("utf-8", "replace")])
                if (count := figures(inner)) > most:
                    best, most, places = inner, count, first
        # What was broken may tell more than there was: a number that is cut is a number.
        if most > before or (most * 10 >= before * 9 > 0 and _evident(lines, places)):
            return [placed(reading, places) for reading in best]
    return readings


def figures(readings: Sequence[Reading]) -> int:
    """How much readings tell: the figures of steps, memory, counters and failures, and what was stated and seen."""
    total = 0
    for reading in readings:
        named: list[Sized] = [reading.steps, reading.stated, reading.failures, reading.counters]
        named += [reading.timings, reading.seen]
        failures = (failure for failure in reading.failures if failure.is_oom is not False)
        rows: list[MemoryRow | AllocationFailure | CompileCounts] = [*reading.memory, *failures, reading.compile]
        total += sum(map(len, named)) + (reading.memory_unavailable is not None)
        total += sum(value is not None for name in FIELDS for value in reading.steps.column(name))
        total += sum(type(value) in (int, float) for row in rows for value in asdict(row).values())
    return total


# A number that begins a line may have one digit more on the next.
_DIGIT = re.compile(r"^\s*\d+|\d")
_PREFIX_MARK = re.compile(r"[0\[(|:]")
# Given a line and the next, what is between them: nothing, a blank, or None for a break that is the log's own.
_Join = Callable[[str, str], str | None]


def _ways(lines: Sequence[str]) -> Iterator[list[_Join]]:
    """Ways in which the lines may have been broken, the likelier kind first."""
    if lines.count("") * _DOUBLE_SPACED > len(lines):
        yield [lambda line, after: None if after else ""]
    # One line that is printed again and again has one length, too.
    lengths = Counter(length for line in dict.fromkeys(lines) if (length := len(line)) >= _NARROWEST)
    if not lengths:
        return
    longest = max(lengths)
    page, joins = _page(lines)
    if joins > 2 * lengths[longest]:
        yield page
    screen: list[_Join] = []
    for width, count in dict.fromkeys(((longest, lengths[longest]), *lengths.most_common(1))):
        if width <= _MAX_SCREEN and (width == longest or count >= _OFTEN):
            screen.append(_screen(lines, width, width))
            if lengths[width - 1] and not any(len(line) == width and line.endswith(" ") for line in lines):
                # A blank at the column is often gone: nobody sees it.
                screen.append(_screen(lines, width, width - 1))
    yield screen
    if joins <= 2 * lengths[longest]:
        yield page


def _page(lines: Sequence[str]) -> tuple[list[_Join], int]:
    """How an editor may have broken the lines, and how many of them go on then."""
    # What has no blank it cannot break.
    width = max((len(line) for line in lines if " " in line.strip()), default=0)
    if not _NARROWEST <= width <= _MAX_PAGE:
        return [], 0
    breaks = [_at_blank(width, set(), *both) is not None for both in pairwise(lines)]
    return [partial(_at_blank, width, _marks(lines, breaks))], sum(breaks)


def _screen(lines: Sequence[str], width: int, cut: int) -> _Join:
    """How a terminal of one width may have broken the lines; those of ``cut`` lost a blank at its edge."""
    breaks = [_at_column(width, cut, set(), *both) is not None for both in pairwise(lines)]
    return partial(_at_column, width, cut, _marks(lines, breaks))


def _marks(lines: Sequence[str], breaks: Sequence[bool]) -> set[str]:
    """What a program puts before each of its lines: it begins one wherever it stands."""
    own = {_head(line) for line, goes_on in zip(lines[1:], breaks, strict=True) if not goes_on}
    return {head for head in own if _PREFIX_MARK.search(head)}


def _at_column(width: int, cut: int, marks: set[str], line: str, after: str) -> str | None:
    goes_on = after and len(line) in (width, cut) and _head(after) not in marks
    return " " * (width - len(line)) if goes_on else None


def _at_blank(width: int, marks: set[str], line: str, after: str) -> str | None:
    words = after.split(maxsplit=1)
    goes_on = line and words and len(line) + len(words[0]) >= width and _head(after) not in marks
    return " " if goes_on else None


def _head(line: str) -> str:
    return _DIGIT.sub("0", line[:_HEAD])


def _joined(lines: Sequence[str], join: _Join) -> tuple[list[str], list[int]]:
    """Lines put together, and the number from 1 of the first piece of each."""
    joined: list[list[str]] = []
    first: list[int] = []
    before: str | None = None
    for number, line in enumerate(lines, 1):
        between = None if before is None else join(before, line)
        if between is None or len(joined[-1]) >= _MAX_PIECES:
            joined.append([line])
            first.append(number)
        else:
            joined[-1].append(between + line)
        before = line
    return ["".join(pieces) for pieces in joined], first


def _evident(lines: Sequence[str], first: Sequence[int]) -> bool:
    """Whether much was put together, and most of what goes on begins otherwise than lines that are the first."""
    begins = set(first)
    heads = [_head(line) for line in lines]
    own = {heads[number - 1] for number in first}
    alike = [head in own for number, head in enumerate(heads, 1) if number not in begins]
    widths = Counter(map(len, lines))
    return widths[max(widths)] * 3 >= len(lines) <= len(alike) * 3 and sum(alike) * 2 < len(alike)


def placed(reading: Reading, first: Sequence[int]) -> Reading:
    """The reading with the lines of the file as it stands."""

    def place(of: Place) -> Place:
        return replace(of, line=first[of.line - 1]) if 0 < of.line <= len(first) else of

    reading.stated = {path: replace(claim, place=place(claim.place)) for path, claim in reading.stated.items()}
    for others in reading.others.values():
        others[:] = [replace(other, place=place(other.place)) for other in others]
    reading.memory = [replace(row, place=place(row.place)) for row in reading.memory]
    reading.seen = [replace(seen, place=place(seen.place)) for seen in reading.seen]
    reading.failures = [replace(failure, place=place(failure.place)) for failure in reading.failures]
    reading.remarks = [replace(remark, place=place(remark.place)) for remark in reading.remarks]
    reading.lines = array("q", (place(Place(line)).line for line in reading.lines))
    return reading


_DAY: Final = (
    rb"\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d[-/]\d{2,4}|"
    rb"(?:[A-Z][a-z]{2},? {1,2})?(?:[A-Z][a-z]{2} {1,2}\d{1,2}|\d{1,2} [A-Z][a-z]{2})(?: \d{4})?"
)
_CLOCK: Final = rb"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?: [AP]M)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?(?: \d{4}(?=\W))?"
_TIME: Final = re.compile(rb"(?:(?:" + _DAY + rb")[T ])?" + _CLOCK + rb"|\d{10}\.\d{1,9}")
_NUMBER: Final = rb"(?:(?!\d{1,9}:)[\w./-]{1,200}[:-])?[ \t]{0,12}(\d{1,9})"
_NUMBERED: Final = re.compile(_NUMBER + rb"[:\t|]")
_STREAM: Final = re.compile(rb"\bstd(?:out|err)\b")
# Characters after which a margin may end; a time and a number end one, too.
_ENDS: Final = b" \t|:>]\0\1\2"
_PLACEHOLDERS: Final = {0: rb"(?:" + _TIME.pattern + rb")", 1: _NUMBER, 2: _STREAM.pattern}
_DIGITS: Final = re.compile(rb"\d+")
_PLACEHOLDER: Final = re.compile(rb"[\0\1\2]")
# How a margin of words alone ends: other words are those of the records.
_CONSTANT: Final = (b" ", b"\t", b"]:", b">:")
_MAX_LINE: Final = 240
_SAMPLE: Final = 400
_MIN_LINES: Final = 2
_MARGIN_SHARE: Final = 0.9

Cut = Callable[[bytes], bytes]


def bare(text: bytes) -> Cut:
    """What takes the margin off whole lines like those of ``text``, if they then tell more; else nothing off."""
    kinds: dict[bytes, bytes] = {}
    for line in text.split(b"\n"):
        kinds.setdefault(_DIGITS.sub(b"0", line), line)
    # Thousands of steps show no more than one.
    sample = b"\n".join(kinds.values())
    cut = margin(sample)
    return cut if cut is not None and figures(scan([cut(sample)])) > figures(scan([sample])) else lambda piece: piece


def margin(text: bytes) -> Cut | None:
    """What takes the margin off whole lines; None where they have none."""
    heads = [line[:_MAX_LINE] for line in text.split(b"\n", _SAMPLE)[:_SAMPLE] if line.strip()]
    counts = [match for match in map(_NUMBERED.match, heads) if match]
    if len(counts) == len(heads) and all(int(a[1]) < int(b[1]) for a, b in pairwise(counts)):
        heads = [b"\1" + head[match.end(1) :] for head, match in zip(heads, counts, strict=True)]
    heads = [_STREAM.sub(b"\2", _TIME.sub(b"\0", head)) for head in heads]
    common = _common(heads)
    while digits := list(_DIGITS.finditer(common)):
        # Whether some lines begin alike but for a number, such as a rank.
        like = re.compile(rb"\d+".join(map(re.escape, _DIGITS.split(common))))
        if not any(like.match(head) and not head.startswith(common) for head in heads):
            break
        common = _ended(common[: digits[-1].start()])
    if not common.strip(b" \t") or not (_PLACEHOLDER.search(common) or common.endswith(_CONSTANT)):
        return None
    words = b"".join(_PLACEHOLDERS.get(byte) or re.escape(bytes([byte])) for byte in common.rstrip(b" "))
    # Viewers cut blanks from the end of a line that holds nothing else.
    blanks = rb"(?: {%d}|(?=\r?$))" % (len(common) - len(common.rstrip(b" ")))
    pattern = re.compile(rb"^" + words + blanks, re.MULTILINE)
    return lambda piece: pattern.sub(b"", piece)


def _common(heads: Iterable[bytes]) -> bytes:
    """The beginning that nearly all have in common, up to the end of a word; those that differ in digits are one."""
    rest = list({_DIGITS.sub(b"0", head): head for head in heads}.values())
    least, at = max(_MIN_LINES, _MARGIN_SHARE * len(rest)), 0
    while True:
        following = Counter(head[at] for head in rest if len(head) > at)
        byte, count = following.most_common(1)[0] if following else (0, 0)
        if count < least:
            return _ended(rest[0][:at]) if rest else b""
        rest = [head for head in rest if len(head) > at and head[at] == byte]
        at += 1


def _ended(text: bytes) -> bytes:
    """A beginning as far as its last word ends."""
    return text[: max(text.rfind(_ENDS[at : at + 1]) for at in range(len(_ENDS))) + 1]
