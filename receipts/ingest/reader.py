"""What a reader is. A module of readers ends in ``READERS = (…)``, where `readers` finds them without another entry.

A `LineReader` names *anchors*: byte strings of which a line must hold one for the reader to see it. All anchors of all
readers are looked for in one pass, so a reader costs nothing on lines that are not its own; choose anchors that other
programs do not print. A `FileReader` takes a whole file of another form (a trace, an event file, a state document).

A `JsonReader` takes a JSON document whole, `JsonStream` reads one with bounds: how deep it nests and how long one text
is. A streaming parser keeps the path of where it is and the text that it is in, and so takes
memory that a small hostile file can drive to gigabytes.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from functools import cache
from itertools import accumulate
from typing import Any, ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.reading import Reading
from receipts.ingest.record import RecordColumns
from receipts.ingest.source import CHUNK, Source, Stream

Spans = Mapping[str, tuple[int, int]]
# States what plain settings by dotted name say; False, and nothing stated, where they are another program's.
Configuration = Callable[[Reading, Mapping[str, Any]], bool]


class LineReader:
    """Reads one source's lines out of a log. One object a file.

    ``line`` gets text without line end and ANSI codes (undecodable bytes are U+FFFD) and its number from 1. What
    overwrites itself with carriage returns (progress bars) comes as several lines of one number. Return True to get
    the next line too, whatever it holds (a block, a wrapped record); the reader must let go by itself.

    ``companions`` are anchors of lines that other sources print and that this reader wants only while `follows` is
    true, such as the step lines between the messages of a compiler.

    A source of millions of like lines has `spans` and `many` too: the same records, many at once.
    """

    source: ClassVar[str]
    anchors: ClassVar[tuple[bytes, ...]]
    companions: ClassVar[tuple[bytes, ...]] = ()
    follows: bool = True

    def __init__(self) -> None:
        self.reading = Reading(self.source)

    def line(self, text: str, number: int) -> bool:
        """Take one line; True asks for the next."""
        raise NotImplementedError

    def wants(self, text: str) -> bool:
        """Whether a line with an anchor of this reader's is of use to it: where not, no line of the same words is."""
        return True

    def spans(self, text: str) -> Spans:
        """Where the figures stand on a line that is one whole record of a step, by names of the reader's choice.

        Nothing on any other line. What is between is the line's shape: words must be the same on another line for
        it to be of this shape, numbers may differ. So a number that the reader looks at must have its span here.
        """
        return {}

    def many(self, columns: RecordColumns) -> bool:
        """Take records of a shape that `spans` described. False, and nothing taken, where one needs `line`.

        What it leaves in the reading must be what `line` leaves for the same lines.
        """
        return False

    def finish(self) -> Reading | None:
        """The reading, or None where the anchors were a chance and nothing of this source is there."""
        return self.reading if self.reading.records else None


class FileReader:
    """Reads a whole file of one form.

    ``claims`` sees the first 64 KiB, decompressed; it must know the form by its content. ``read`` must keep memory
    bounded whatever the file, raise nothing for broken content, and say in remarks what is missing.
    """

    source: ClassVar[str]

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether a file that begins with ``head`` is of this form."""
        raise NotImplementedError

    def read(self, source: Source) -> list[Reading]:
        """What the file says; several readings where it holds several sources' records."""
        raise NotImplementedError


@cache
def readers() -> tuple[type[LineReader | FileReader], ...]:
    """Every class that a module's ``READERS`` names, in the order of modules and names."""
    return tuple(item for name in vocabulary.producers() for item in _listed(name, "READERS"))


@cache
def readers_in(folder: str) -> tuple[type[LineReader | FileReader], ...]:
    """The readers of one folder of `receipts.readers` alone: no other is imported. None where there is no such folder.

    So a verb that needs one producer's readers starts without the rest.
    """
    name = f"{vocabulary.GROUP}.{folder}"
    return _listed(name, "READERS") if name in vocabulary.producers() else ()


@cache
def configurations() -> tuple[Configuration, ...]:
    """Every function that a module's ``CONFIGURATIONS`` names."""
    return tuple(item for name in vocabulary.producers() for item in _listed(name, "CONFIGURATIONS"))


@cache
def line_readers() -> tuple[type[LineReader], ...]:
    """Readers of lines, in the order of their readings in a receipt; those without a place in it are last."""
    places = vocabulary.order()

    def place(kind: type[LineReader]) -> int:
        return places.get(f"{kind.source}:{kind.__name__}", places.get(kind.source, len(places)))

    return tuple(sorted((item for item in readers() if issubclass(item, LineReader)), key=place))


@cache
def file_readers() -> tuple[type[FileReader], ...]:
    """Readers of whole files, in the order in which they may claim one."""
    return tuple(item for item in readers() if issubclass(item, FileReader))


def _listed(package: str, name: str) -> tuple[Any, ...]:
    """What the modules of a package list under a name, in the order of the modules' names."""
    walked = pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    modules = sorted(item.name for item in walked)
    return tuple(item for module in modules for item in getattr(importlib.import_module(module), name, ()))


def json_document(source: Source, reading: Reading, what: str) -> list[Any] | dict[str, Any] | None:
    """The list or object; None, with a remark, where the file is broken or larger than ``what`` can be."""
    content = source.document()
    try:
        document = None if content is None else json.loads(content)
    except (ValueError, RecursionError) as error:
        reading.remark("broken", f"no JSON document: {error!s:.100}")
        return None
    if isinstance(document, list | dict):
        return document
    reading.remark("broken", f"larger than {what} can be; not read")
    return None


class JsonReader(FileReader):
    """Reads a JSON document as a whole; ``what`` it is, for people. An object of this form has all of ``marks``."""

    what: ClassVar[str]
    marks: ClassVar[tuple[bytes, ...]] = ()

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether it begins as a JSON object, and every mark is in it."""
        return head.lstrip(BOM_UTF8 + b" \t\r\n")[:1] == b"{" and all(mark in head for mark in cls.marks)

    def read(self, source: Source) -> list[Reading]:
        """One reading, if anything is known; a document that is broken or too large says so in a remark."""
        reading = Reading(self.source)
        document = json_document(source, reading, self.what)
        if isinstance(document, dict):
            self.take(reading, document)
        elif document is not None:
            self.listed(reading, document)
        return [reading] if reading.records or reading.remarks or reading.complete else []

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """Put into the reading what the object says."""
        raise NotImplementedError

    def listed(self, reading: Reading, rows: list[Any]) -> None:
        """Put into the reading what a list says: nothing, of most forms."""


MAX_DEPTH: Final = 256  # a trace nests six levels deep
MAX_TEXT: Final = 16 << 20  # bytes; the longest honest text is a stack of some kilobytes
_OTHERS: Final = bytes(set(range(256)) - set(b'"[]{}'))
_AS_LISTS: Final = bytes.maketrans(b"{}", b"[]")
_OPENS: Final = ord("[")
_TEXT: Final = re.compile(rb'"[^"]*"')


class JsonStream:
    """A document as a parser reads it. It ends where the file breaks off or leaves its bounds: `Source.broken`."""

    def __init__(self, stream: Stream, source: Source) -> None:
        self._stream = stream
        self.source = source
        self._bounds = JsonBounds()

    def read(self, size: int = CHUNK) -> bytes:
        """Up to ``size`` bytes; none at the end."""
        block = self.source.block(self._stream, size)
        try:
            self._bounds.check(block)
        except ValueError as error:
            self.source.broken = str(error)
            return b""
        self.source.bytes_read += len(block)
        return block


class JsonBounds:
    """Follows a document block by block."""

    def __init__(self) -> None:
        self._depth = 0
        self._inside = b""  # a quote within a text
        self._text = 0
        self._escape = b""

    def check(self, block: bytes) -> None:
        """Follow the next block.

        Raises:
            ValueError: the document nests deeper than `MAX_DEPTH`, or a text is longer than `MAX_TEXT` bytes.
        """
        plain = block
        if self._escape or b"\\" in block:
            plain = self._escape + block
            odd = (len(plain) - len(plain.rstrip(b"\\"))) % 2
            self._escape = b"\\" if odd else b""
            plain = plain[: len(plain) - odd].replace(b"\\\\", b"").replace(b'\\"', b"")
        # Where two quotes meet, both can go: what is left stands inside or outside of a text as before.
        signs = (self._inside + plain.translate(_AS_LISTS, _OTHERS)).replace(b'""', b"")
        outside, self._inside, _ = _TEXT.sub(b"", signs).partition(b'"')
        opened = outside.count(b"[")
        if self._depth + opened > MAX_DEPTH:
            steps = (1 if sign == _OPENS else -1 for sign in outside)
            if max(accumulate(steps, initial=self._depth)) > MAX_DEPTH:
                raise ValueError(f"it nests deeper than {MAX_DEPTH} levels")
        self._depth += 2 * opened - len(outside)
        last = plain.rfind(b'"')
        self._text = len(plain) - last - 1 if last >= 0 else self._text + len(plain)
        if self._inside and self._text > MAX_TEXT:
            raise ValueError(f"a text in it is longer than {MAX_TEXT >> 20} MiB")
