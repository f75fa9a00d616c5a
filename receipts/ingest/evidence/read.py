"""A file to its readings: whole-file readers by content, everything else as lines of a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from receipts.ingest.evidence import launches
from receipts.ingest.evidence.margin import bare
from receipts.ingest.evidence.prose import without_prose
from receipts.ingest.evidence.reader import file_readers
from receipts.ingest.evidence.reading import Place, Reading, Remark
from receipts.ingest.evidence.scan import scan
from receipts.ingest.evidence.stream import HEAD, MAX_LINE, Source
from receipts.ingest.evidence.unread import steps_unread
from receipts.ingest.evidence.unwrap import MAX_SIZE, placed, unwrapped

Progress = Callable[[int], None]
_UNKNOWN: Final = "neither text nor a binary form that a reader knows"
_FEWEST: Final = 4
# Of a run that restarts, some steps do ascend.
_SHARE: Final = 0.9


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """What one file says. ``sha256`` is that of its bytes on disk; ``readings`` is empty where nothing was known.

    ``cut``: the file breaks off, so that what came last in it is not known.
    """

    path: Path
    name: str
    sha256: str
    size: int
    readings: tuple[Reading, ...]
    remarks: tuple[Remark, ...]
    cut: bool = False


def read(path: Path, name: str | None = None, progress: Progress | None = None) -> FileEvidence:
    """Read one file. ``progress`` gets the bytes read so far, decompressed.

    Raises UsageError where it cannot be opened. Broken content is no error: it is read as far as it goes, and told.
    """
    source = Source(path, name or path.name)
    remarks: list[Remark] = []
    kind = next((item for item in file_readers() if item.claims(source.head)), None)
    if kind is not None:
        readings = kind().read(source)
    elif source.foreign or _binary(source.head):
        readings = []
        what = f"packed as {source.foreign}: unpack it first" if source.foreign else _UNKNOWN
        remarks.append(Remark("broken", what, Place()))
    else:
        readings, unread = _log(source, progress)
        remarks.extend(unread)
    if source.broken:
        remarks.append(Remark("broken", f"{source.broken}; what stands before it was read", Place()))
    if source.long_lines:
        what = f"{source.long_lines} lines are longer than {MAX_LINE >> 20} MiB; only their beginnings were read"
        remarks.append(Remark("broken", what, Place()))
    size, cut = path.stat().st_size, bool(source.broken)
    return FileEvidence(path, source.name, source.sha256, size, tuple(readings), tuple(remarks), cut)


def _log(source: Source, progress: Progress | None) -> tuple[list[Reading], list[Remark]]:
    """The readings of a log, and what is unread; of a short one, as it was before a terminal or a page broke it."""
    chunks = _watched(source, progress)
    begun: list[bytes] = []
    for chunk in chunks:
        begun.append(chunk)
        if sum(map(len, begun)) > MAX_SIZE:
            cut = bare(begun[0][:HEAD])
            readings = scan(map(cut, chain(begun, chunks)))
            text = source.document() if newest_first(readings) else None
            readings = readings if text is None else read_from_end(cut(text))
            return readings, steps_unread(cut(begun[0]), readings)
    text = b"".join(begun)
    text = bare(text)(text)
    launch = launches.of_command(text.decode("utf-8", "replace")) if len(text) <= launches.MAX_TEXT else None
    readings = scan([text])
    readings = read_from_end(text) if newest_first(readings) else unwrapped(text, readings)
    readings = without_prose(text.decode("utf-8", "replace"), readings)
    if launch is not None:
        readings.append(Reading("command-line", records=1, launch=launch))
    return readings, steps_unread(text, readings)


def newest_first(readings: Iterable[Reading]) -> bool:
    """Whether the steps of a source go back at nearly every record, as a log explorer exports its lines."""
    return any(
        len(reading.steps) >= _FEWEST and reading.steps.restarts >= _SHARE * (len(reading.steps) - 1)
        for reading in readings
    )


def read_from_end(text: bytes) -> list[Reading]:
    """The readings of a whole file from its end, with the lines of the file as it is; ``text`` may lack a line end."""
    lines = text.removesuffix(b"\n").split(b"\n")
    readings = scan([b"\n".join(reversed(lines)) + b"\n"])
    for reading in readings:
        placed(reading, range(len(lines), 0, -1))
        if len(reading.steps):
            reading.remark("note", "the newest line is first: the file was read from its end")
    return readings


def _watched(source: Source, progress: Progress | None) -> Iterator[bytes]:
    for chunk in source.chunks():
        yield chunk
        if progress is not None:
            progress(source.bytes_read)


def _binary(head: bytes) -> bool:
    """Whether this is no text: NUL bytes, which no encoding of a log has but UTF-16 (none is known to write one)."""
    return head[:HEAD].count(b"\0") > len(head) // 100
