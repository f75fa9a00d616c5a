"""The evidence of one file: whole-file readers by content, everything else as lines of a log.

A page that people write is no evidence of a run in what it says of memory, except in the blocks that it quotes. What
looks like training steps in a form that no reader knows is reported, so that silence is never taken for a short log:
progress bars of Lightning, Keras and plain tqdm, and lines that name a step and a loss in words of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from receipts.ingest import arguments
from receipts.ingest.literals import FIGURE
from receipts.ingest.reader import file_readers
from receipts.ingest.reading import Place, Reading, Remark
from receipts.ingest.record import ANSI
from receipts.ingest.scan import scan
from receipts.ingest.source import HEAD, MAX_LINE, Source
from receipts.ingest.wrapping import MAX_SIZE, bare, placed, unwrapped

Progress = Callable[[int], None]
_PICKLE: Final = re.compile(rb"\x80[\x02-\x05](?:[}\]\x95c(]|\x8c)", re.DOTALL)
_UNKNOWN_FORM: Final = "neither text nor a binary form that a reader knows"
_MIN_STEPS: Final = 4
# Of a run that restarts, some steps do ascend.
_DESCENDING_SHARE: Final = 0.9


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
    # NUL bytes are in no encoding of a log but UTF-16, and none is known to write one.
    elif source.foreign or source.head[:HEAD].count(b"\0") > len(source.head) // 100:
        readings = []
        what = f"packed as {source.foreign}: unpack it first" if source.foreign else _UNKNOWN_FORM
        if _PICKLE.match(source.head):
            what = "a pickle, such as torch's memory snapshot: opening one runs what is in it, so that none is read"
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
    launch = (
        arguments.launch_of_command(text.decode("utf-8", "replace")) if len(text) <= arguments.MAX_COMMANDS else None
    )
    readings = scan([text])
    readings = read_from_end(text) if newest_first(readings) else unwrapped(text, readings)
    readings = without_prose(text.decode("utf-8", "replace"), readings)
    if launch is not None:
        readings.append(Reading("command-line", records=1, launch=launch))
    return readings, steps_unread(text, readings)


def newest_first(readings: Iterable[Reading]) -> bool:
    """Whether the steps of a source go back at nearly every record, as a log explorer exports its lines."""
    return any(
        len(reading.steps) >= _MIN_STEPS and reading.steps.restarts >= _DESCENDING_SHARE * (len(reading.steps) - 1)
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


_HEADING: Final = re.compile(r"#{1,5} \S|[=-]{4,}$")
# A heading, an entry of a list, a row of a table, a quotation, or a sentence.
_MARKED_LINE: Final = re.compile(r"#{1,5} \S|[-*+] \S|\d{1,2}[.)] \S|\||> ")
_SENTENCE: Final = re.compile(r"[A-Z\"'(`*\[].{30,}[.:;,?!)`*]$|[a-z(`*\[\"].{40,}[a-z.,;:)`*]$")
_FENCE: Final = ("```", "~~~")
_MIN_MARKED_LINES: Final = 5
_MARKED_SHARE: Final = 0.6


def without_prose(text: str, readings: Iterable[Reading]) -> list[Reading]:
    """The readings of a text; of a page of prose, without memory and failures that it does not quote in a block."""
    kept = list(readings)
    # A log may begin with the program's own source, whose comments look like a page.
    if not any(item.memory or item.failures for item in kept) or any(len(item.steps) for item in kept):
        return kept
    lines = text.split("\n")
    # Numbers of the lines within fences, or indented as code is.
    quoted: set[int] = set()
    fenced = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith(_FENCE):
            fenced = not fenced
        elif fenced or line.startswith(("    ", "\t")):
            quoted.add(number)
    texts = [line.strip() for number, line in enumerate(lines, 1) if number not in quoted and line.strip()]
    words = sum(bool(_MARKED_LINE.match(text) or _SENTENCE.match(text)) for text in texts)
    # On a page most lines are marked up or are sentences, and some line is a heading.
    if words < max(_MIN_MARKED_LINES, _MARKED_SHARE * len(texts)) or not any(map(_HEADING.match, texts)):
        return kept
    for reading in kept:
        memory = [row for row in reading.memory if row.place.line in quoted]
        failures = [item for item in reading.failures if item.place.line in quoted]
        if (len(memory), len(failures)) != (len(reading.memory), len(reading.failures)):
            reading.memory, reading.failures = memory, failures
            reading.remark("note", "this is a page of prose: its words on memory are no evidence of a run")
    return [item for item in kept if item.memory or item.failures or item.stated or item.seen or len(item.steps)]


MAX_UNREAD_TEXT: Final = 1 << 18
_MIN_UNREAD: Final = 2
# It prints times and rates, and leaves the loss to the program.
_LOSSLESS: Final = "deepspeed"
_MAX_QUOTED: Final = 90
_LOSS_FIGURE: Final = rf"(?:\w*loss[\w/]*|xent)['\"]?\s{{0,4}}[:=]?\s{{0,4}}['\"]?{FIGURE}"
_UNREAD_LINE = re.compile(
    r"(?i)(?:\b(?:step|iter(?:ation)?|batch|update)s?['\"]?\s{0,4}[:=\[#]?\s{0,4}\d{1,12}\b"
    rf"|\d{{1,12}}/\d{{1,12}}\s{{0,4}}[]\[]|\d{{1,12}}batch:|^\s{{0,8}}\d{{1,12}}\s{{0,4}}[|:,]).{{0,400}}?\b{_LOSS_FIGURE}"
    # The figure before its name: tinygrad.
    rf"|^\s{{0,8}}\d{{1,12}}\s.{{0,200}}?(?<![\w.]){FIGURE} loss\b"
)


def steps_unread(text: bytes, readings: Sequence[Reading]) -> list[Remark]:
    """A remark where the beginning of a log shows several steps and its readings none."""
    # Some reader knows the steps, or their losses.
    if any(
        item.diverged is not None or item.means or (len(item.steps) and item.source != _LOSSLESS) for item in readings
    ):
        return []
    shown: set[str] = set()
    first = (0, "")
    for at, line in enumerate(ANSI.sub(b"", text[:MAX_UNREAD_TEXT]).decode("utf-8", "replace").split("\n"), 1):
        for match in _UNREAD_LINE.finditer(line[:4000]):
            shown.add(match[0])
            first = first if first[0] else (at, match[0])
    if len(shown) < _MIN_UNREAD:
        return []
    words = " ".join(first[1].split())[:_MAX_QUOTED]
    what = f"looks like a training step (`{words}`) in a form that no reader knows: what it prints is not read"
    return [Remark("missing", f"{what}; docs/ingest-map.md shows how to have them read", Place(first[0]))]
