"""A statement whose line links to a recipe in the same tree, held against the recipe's own log.

A link to ``github.com/OWNER/REPO/tree/REF/PATH`` names a file here where REPO lies beside the page, or beside a folder
above it. A relative link names the file itself. The log is read as `receipts ingest` reads it, prose and all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple
from urllib.parse import unquote

from receipts.base.files import read_small
from receipts.plugins.lint.statement import Statement
from receipts.receipt.accelerators import find_accelerator

TOLERANCE: Final = 0.01  # a page rounds, and its figure may be of a neighboring step
_LINK: Final = re.compile(r"\]\(([^()\s]{1,400})\)")
_HOSTED: Final = re.compile(r"https?://(?:www\.)?github\.com/[\w.-]+/([\w.-]+)/(?:tree|blob)/[\w.-]+/([^#?]+)")
_LOGS: Final = ("README.md", "*.log", "*.txt")
_METRICS: Final = ("tokens_per_second_per_chip", "tflops_per_second_per_chip", "step_seconds")
MAX_LOG: Final = 4 << 20
MAX_ABOVE: Final = 6


class RecipeFigure(NamedTuple):
    """A metric's value in a recipe's log, in the registry's unit."""

    value: float
    file: str


def disagreeing(item: Statement) -> RecipeFigure | None:
    """What the linked recipe says of the statement's metric, where it says another number; else None."""
    if item.kind != "reading" or len(item.values) != 1:
        return None
    for path in _linked(Path(item.file), item.line):
        figure = _figures(path).get(item.metric)
        if figure is not None:
            size = 0.01 if item.unit == "%" else 1.0
            off = abs(item.values[0] * size - figure.value)
            return None if off <= item.halves[0] * size + TOLERANCE * figure.value else figure
    return None


@cache
def _figures(path: Path) -> dict[str, RecipeFigure]:
    """Figures of the steps that a recipe's log prints, by metric; MFU where the path names the chip."""
    from receipts.ingest.evidence import read

    known: dict[str, RecipeFigure] = {}
    files = [path] if path.is_file() else [file for pattern in _LOGS for file in sorted(path.glob(pattern))]
    for file in (one for one in files if one.is_file() and one.stat().st_size <= MAX_LOG):
        for reading in read(file).readings:
            for metric in _METRICS:
                values = [value for value in reading.steps.column(metric) if value is not None and value > 0]
                if values:
                    known.setdefault(metric, RecipeFigure(median(values), str(file)))
    machine = next((accelerator for part in reversed(path.parts) if (accelerator := find_accelerator(part))), None)
    peak, each = machine.peak("bf16") if machine is not None else None, known.get("tflops_per_second_per_chip")
    if peak and each:
        known["mfu"] = RecipeFigure(each.value * 1e12 / peak, each.file)
    return known


def _linked(page: Path, line: int) -> Iterator[Path]:
    """The files and folders of this tree that a line links to."""
    for target in _LINK.findall("".join(_lines(page)[line - 1 : line])):
        hosted = _HOSTED.match(target)
        if hosted:
            places = [folder / hosted[1] / unquote(hosted[2]) for folder in list(page.absolute().parents)[:MAX_ABOVE]]
        else:
            places = [] if "://" in target else [page.parent / unquote(target.partition("#")[0])]
        yield from (place for place in places if place.exists() and place != page)


@cache
def _lines(page: Path) -> tuple[str, ...]:
    try:
        return tuple(read_small(page, 64 << 20).decode("utf-8", "replace").splitlines())
    except OSError:
        return ()
