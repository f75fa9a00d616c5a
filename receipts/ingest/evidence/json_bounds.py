"""JSON documents, whole or as a stream with bounds: how deep it nests and how long one text is, in one vectorized pass.

A streaming parser keeps the path of where it is and the text that it is in, and so takes memory that a small hostile
file can drive to gigabytes.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from typing import Any, ClassVar, Final

from receipts.ingest.evidence.reader import FileReader
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.stream import CHUNK, Source, Stream


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
_QUOTE, _CASE = ord('"'), 0xDF  # without the case bit `{` is `[`, and `}` is `]`


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
        self._inside = 0  # 1 within a text
        self._text = 0
        self._escape = b""

    def check(self, block: bytes) -> None:
        """Follow the next block.

        Raises:
            ValueError: the document nests deeper than `MAX_DEPTH`, or a text is longer than `MAX_TEXT` bytes.
        """
        import numpy as np

        plain = self._without_escapes(block)
        signs = np.frombuffer(plain.translate(None, _OTHERS), np.uint8)
        quotes = signs == _QUOTE
        outside = (np.cumsum(quotes) + self._inside) & 1 == 0
        brackets = signs & _CASE
        steps = ((brackets == ord("[")) & outside).astype(np.int32) - ((brackets == ord("]")) & outside)
        depths = self._depth + np.cumsum(steps)
        if len(depths) and int(depths.max()) > MAX_DEPTH:
            raise ValueError(f"it nests deeper than {MAX_DEPTH} levels")
        last = plain.rfind(b'"')
        self._text = len(plain) - last - 1 if last >= 0 else self._text + len(plain)
        self._inside = (self._inside + int(quotes.sum())) & 1
        self._depth = int(depths[-1]) if len(depths) else self._depth
        if self._inside and self._text > MAX_TEXT:
            raise ValueError(f"a text in it is longer than {MAX_TEXT >> 20} MiB")

    def _without_escapes(self, block: bytes) -> bytes:
        if self._escape or b"\\" in block:
            block = self._escape + block
            odd = (len(block) - len(block.rstrip(b"\\"))) % 2
            self._escape = b"\\" if odd else b""
            block = block[: len(block) - odd].replace(b"\\\\", b"").replace(b'\\"', b"")
        return block
