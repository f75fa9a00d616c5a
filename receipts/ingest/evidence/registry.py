"""All readers, from the modules of this package's folders: a new reader needs no entry here.

What else a framework's reader touches is in docs/new-reader.md.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Final

from receipts.ingest.evidence.reader import FileReader, LineReader

FOLDERS: Final = ("frameworks", "witnesses", "memory")


@cache
def readers() -> tuple[type[LineReader | FileReader], ...]:
    """Every class that a module's ``READERS`` names, in the order of modules and names."""
    classes: list[type[LineReader | FileReader]] = []
    for name in FOLDERS:
        package = importlib.import_module(f"receipts.ingest.evidence.{name}")
        for module in sorted(item.name for item in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")):
            classes.extend(getattr(importlib.import_module(module), "READERS", ()))
    return tuple(classes)


@cache
def line_readers() -> tuple[type[LineReader], ...]:
    """Readers of lines."""
    return tuple(item for item in readers() if issubclass(item, LineReader))


@cache
def file_readers() -> tuple[type[FileReader], ...]:
    """Readers of whole files, in the order in which they may claim one."""
    return tuple(item for item in readers() if issubclass(item, FileReader))
