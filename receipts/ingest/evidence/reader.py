"""What a reader is. A module of readers ends in ``READERS = (…)``, where `readers` finds them without another entry.

A module that knows its program's settings wherever they are kept (an experiment tracker's record) lists the functions
that state them in ``CONFIGURATIONS``, where `configurations` finds them.

A `LineReader` names *anchors*: byte strings of which a line must hold one for the reader to see it. All anchors of all
readers are looked for in one pass, so a reader costs nothing on lines that are not its own; choose anchors that other
programs do not print. A `FileReader` takes a whole file of another form (a trace, an event file, a state document).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any, ClassVar, Final

from receipts.ingest.evidence.columns import RecordColumns
from receipts.ingest.evidence.reading import Reading
from receipts.ingest.evidence.stream import Source

FOLDERS: Final = ("frameworks", "witnesses", "memory")
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
    return tuple(item for name in FOLDERS for item in readers_in(name))


@cache
def readers_in(folder: str) -> tuple[type[LineReader | FileReader], ...]:
    """The readers of one folder alone: none of the others is imported."""
    return tuple(item for module in _modules(folder) for item in getattr(module, "READERS", ()))


@cache
def configurations() -> tuple[Configuration, ...]:
    """Every function that a module's ``CONFIGURATIONS`` names."""
    modules = (module for name in FOLDERS for module in _modules(name))
    return tuple(item for module in modules for item in getattr(module, "CONFIGURATIONS", ()))


@cache
def line_readers() -> tuple[type[LineReader], ...]:
    """Readers of lines."""
    return tuple(item for item in readers() if issubclass(item, LineReader))


@cache
def file_readers() -> tuple[type[FileReader], ...]:
    """Readers of whole files, in the order in which they may claim one."""
    return tuple(item for item in readers() if issubclass(item, FileReader))


@cache
def _modules(folder: str) -> tuple[ModuleType, ...]:
    """All modules of a folder of readers, in the order of their names."""
    package = importlib.import_module(f"receipts.ingest.evidence.{folder}")
    names = sorted(item.name for item in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    return tuple(importlib.import_module(name) for name in names)
