"""A file as bounded chunks of whole lines: plain, UTF-16, or packed, by its first bytes and never by its name."""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from receipts.base.environment import extra
from receipts.base.errors import UsageError

CHUNK: Final = 1 << 20
MAX_LINE: Final = 1 << 20
_PIECE: Final = 1 << 9
HEAD: Final = 1 << 16
# A document that is read whole: parsed JSON takes up to ten times its bytes.
MAX_DOCUMENT: Final = 8 << 20
BROKEN: Final = (EOFError, OSError, zlib.error, lzma.LZMAError)
Stream = io.BufferedReader | gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File
# What a Windows shell redirects is UTF-16.
_WIDE: Final = "UTF-16"
_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
} | dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), _WIDE)
# What only other programs unpack.
_FOREIGN: Final = {
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"Rar!\x1a\x07": "RAR",
    b"\x1f\x9d": "compress",
    b"PK\x03\x04": "zip",
    b"\x89LZO\x00": "lzop",
    b"LZIP": "lzip",
}


@dataclass
class Source:
    """One file to read. ``broken`` is what ended the reading early, ``long_lines`` how many lines were cut.

    ``name`` is for people. Raises UsageError where the file cannot be opened at all.
    """

    path: Path
    name: str
    broken: str = ""
    long_lines: int = 0
    bytes_read: int = 0
    _digest: str = field(default="", init=False, repr=False)

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB, decompressed; what there is of them where the file is shorter or broken."""
        with self.open() as stream:
            return self._some(stream, HEAD)

    @cached_property
    def tail(self) -> bytes:
        """The last 64 KiB, decompressed, for which a packed file is read through; nothing where that breaks off."""
        if self.packing:
            last = b""
            with self.open() as stream:
                while block := self.block(stream):
                    last = (last + block)[-HEAD:]
            return b"" if self.broken else last
        with self._raw() as stream:
            stream.seek(max(0, stream.seek(0, io.SEEK_END) - HEAD))
            return stream.read(HEAD)

    @cached_property
    def sha256(self) -> str:
        """Digest of the file's bytes as they lie on the disk, which `sha256sum` prints.

        A plain file that `chunks` gave as a whole is not read again.
        """
        if self._digest:
            return self._digest
        digest = hashlib.sha256()
        with self._raw() as stream:
            while block := stream.read(CHUNK):
                digest.update(block)
        return digest.hexdigest()

    @cached_property
    def packing(self) -> str:
        """`gzip`, `xz`, `bzip2`, `zstd`, `lz4`, `UTF-16`, or empty for a plain file."""
        return self._known_by(_MAGIC)

    @cached_property
    def foreign(self) -> str:
        """The form of a file that this program does not unpack, or empty."""
        return self._known_by(_FOREIGN)

    def _known_by(self, magic: dict[bytes, str]) -> str:
        with self._raw() as stream:
            first = stream.read(6)
        return next((name for begin, name in magic.items() if first.startswith(begin)), "")

    def open(self) -> Stream:
        """A stream of the decompressed bytes; reading it may raise `BROKEN`."""
        # By the path: a packed stream closes only the file that it opened itself.
        packing = self.packing
        try:
            if packing == "gzip":
                return gzip.GzipFile(self.path)
            if packing == "xz":
                return lzma.LZMAFile(self.path)
            if packing == "bzip2":
                return bz2.BZ2File(self.path)
            if packing in ("zstd", "lz4"):
                return io.BufferedReader(_Unpacked(self.path, packing), CHUNK)
        except OSError as error:
            raise UsageError(f"{self.name}: {error.strerror}; name a file that can be read") from None
        return io.BufferedReader(_Narrowed(self._raw())) if packing == _WIDE else self._raw()

    def document(self) -> bytes | None:
        """The whole file, or None where it is larger than `MAX_DOCUMENT`; a broken one ends where it breaks."""
        with self.open() as stream:
            content = self._some(stream, MAX_DOCUMENT + 1)
        return None if len(content) > MAX_DOCUMENT else content

    def chunks(self) -> Iterator[bytes]:
        """Chunks of whole lines, about 1 MiB each; the last may lack its line end.

        Of a line longer than `MAX_LINE` the beginning is given and the rest skipped.
        """
        rest = b""
        skipping = False
        digest = None if self.packing else hashlib.sha256()
        with self.open() as stream:
            while block := self.block(stream):
                self.bytes_read += len(block)
                if digest is not None:
                    digest.update(block)
                if skipping:
                    end = block.find(b"\n")
                    if end < 0:
                        continue
                    block, skipping = block[end:], False
                end = block.rfind(b"\n")
                if end < 0:
                    rest += block
                else:
                    yield rest + block[: end + 1]
                    rest = block[end + 1 :]
                if len(rest) > MAX_LINE:
                    self.long_lines += 1
                    yield rest[:MAX_LINE]
                    rest, skipping = b"", True
        if digest is not None and not self.broken:
            self._digest = digest.hexdigest()
        if rest:
            yield rest

    def lines(self) -> Iterator[tuple[int, str]]:
        """Lines without their ends, by their numbers from 1."""
        raw = (line for chunk in self.chunks() for line in chunk.splitlines())
        return ((number, line.decode("utf-8", "replace")) for number, line in enumerate(raw, 1))

    def block(self, stream: Stream, size: int = CHUNK) -> bytes:
        """The next bytes of a stream of this file; none at its end, or where it breaks off: `broken`."""
        try:
            # One read of what lies below: what came before a break must not be lost with it.
            return stream.read1(size)
        except BROKEN as error:
            self.broken = f"{self.packing or 'file'} breaks off after {self.bytes_read:,} bytes: {error}"
            return b""

    def _some(self, stream: Stream, size: int) -> bytes:
        buffer = bytearray()
        while len(buffer) < size and (block := self.block(stream)):
            buffer += block
        return bytes(buffer[:size])

    def _raw(self) -> io.BufferedReader:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise UsageError(f"{self.name}: {error.strerror}; name a file that can be read") from None


class _Narrowed(io.RawIOBase):
    """A file in UTF-16 as UTF-8."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(_WIDE)("replace")
        self._rest = b""

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill a buffer as far as the next bytes go; 0 at the end."""
        while not self._rest and (block := self._stream.read1(CHUNK)):
            self._rest = self._decoder.decode(block).encode()
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        """Close the file below, too."""
        self._stream.close()
        super().close()


class _Unpacked(io.RawIOBase):
    """A file packed with zstd or lz4, frame after frame."""

    def __init__(self, path: Path, packing: str) -> None:
        pyarrow = extra("pyarrow", "data", f"{path}, which is packed with {packing},")
        self._stream: Any = pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), packing)
        self._error: OSError | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill a buffer in small pieces: the one in which the file breaks off is lost."""
        size = 0
        while size < len(buffer) and self._error is None:
            try:
                piece = self._stream.read(min(_PIECE, len(buffer) - size))
            except OSError as error:
                self._error = error
                break
            if not piece:
                break
            buffer[size : size + len(piece)] = piece
            size += len(piece)
        if not size and self._error is not None:
            raise self._error
        return size

    def close(self) -> None:
        """Close the file below, too."""
        self._stream.close()
        super().close()
