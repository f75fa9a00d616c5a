"""One pass over a log: every reader's anchors are looked for at once, and each reader sees its own lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from ahocorasick_rs import BytesAhoCorasick, Implementation

from receipts.evidence.reader import LineReader
from receipts.evidence.reading import Reading
from receipts.evidence.registry import line_readers

# Colours, cursor moves and titles, as terminals read them (ECMA-48).
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def scan(chunks: Iterable[bytes], kinds: Sequence[type[LineReader]] | None = None) -> list[Reading]:
    """What the line readers find in chunks of whole lines, in the order of the readers.

    A line goes to a reader that has an anchor on it, and as long as the reader asks for more.
    """
    classes = tuple(kinds) if kinds is not None else line_readers()
    scanner = _Scanner(classes)
    for chunk in chunks:
        scanner.feed(chunk)
    found = (reader.finish() for reader in scanner.readers)
    return [reading for reading in found if reading is not None]


@cache
def _automaton(classes: tuple[type[LineReader], ...]) -> tuple[BytesAhoCorasick, tuple[int, ...]]:
    """The anchors of all readers as one automaton, and for each anchor the readers that want it, as bits."""
    wanted: dict[bytes, int] = {}
    for index, reader in enumerate(classes):
        for anchor in reader.anchors:
            wanted[anchor] = wanted.get(anchor, 0) | 1 << index
    automaton = BytesAhoCorasick(list(wanted), implementation=Implementation.DFA)
    return automaton, tuple(wanted.values())


class _Scanner:
    def __init__(self, classes: tuple[type[LineReader], ...]) -> None:
        self.readers = [reader() for reader in classes]
        self._automaton, self._masks = _automaton(classes)
        self._holding = 0
        self._line = 1

    def feed(self, chunk: bytes) -> None:
        at = 0
        for start, end, mask in self._lines(chunk):
            at = self._through(chunk, at, start) if self._holding else at
            self._line += chunk.count(b"\n", at, start)
            self._give(chunk[start:end], mask | self._holding)
            at = end
        if self._holding:
            at = self._through(chunk, at, len(chunk))
        self._line += chunk.count(b"\n", at)

    def _lines(self, chunk: bytes) -> Iterable[tuple[int, int, int]]:
        """Start, end and readers of every line that holds an anchor. The end is that of the text, before its break."""
        end = -1
        start = mask = 0
        masks = self._masks
        for anchor, first, _ in self._automaton.find_matches_as_indexes(chunk, overlapping=True):
            if first < end:
                mask |= masks[anchor]
                continue
            if end >= 0:
                yield start, end, mask
            start = chunk.rfind(b"\n", 0, first) + 1
            end = chunk.find(b"\n", first)
            end = len(chunk) if end < 0 else end
            mask = masks[anchor]
        if end >= 0:
            yield start, end, mask

    def _through(self, chunk: bytes, at: int, stop: int) -> int:
        """Give the lines from ``at`` up to ``stop`` to the readers that hold, until none does; where it ended.

        ``at`` is where the last line's text ended, so it stands on a line break, or at the start of the chunk.
        """
        while self._holding and at < stop:
            if chunk[at : at + 1] == b"\n":
                self._line += 1
                at += 1
                if at >= stop:
                    break
            end = chunk.find(b"\n", at, stop)
            end = stop if end < 0 else end
            self._give(chunk[at:end], self._holding)
            at = end
        return at

    def _give(self, raw: bytes, mask: int) -> None:
        if b"\x1b" in raw:
            raw = _ANSI.sub(b"", raw)
        text = raw.decode("utf-8", "replace").rstrip("\r")
        parts = [part for part in text.split("\r") if part] if "\r" in text else (text,)
        index = 0
        while mask:
            if mask & 1:
                reader = self.readers[index]
                more = False
                for part in parts:
                    more = reader.line(part, self._line)
                bit = 1 << index
                self._holding = self._holding | bit if more else self._holding & ~bit
            mask >>= 1
            index += 1
