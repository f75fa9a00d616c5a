"""A statement whose line links to a recipe in the same tree: what the recipe's own log says.

A link to ``github.com/OWNER/REPO/tree/REF/PATH`` names a file here where REPO lies beside the page, or beside a folder
above it. A relative link names the file itself. The log is read as `receipts ingest` reads it, prose and all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from receipts.base.files import read_small
from receipts.receipt.accelerators import find_accelerator

if TYPE_CHECKING:
    from receipts.publish.lint.statement import Statement

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
    for path in _linked(item.file, item.line):
        figure = figures(path).get(item.metric)
        if figure is None:
            continue
        stated, half = item.values[0], item.halves[0] if item.halves else 0.0
        if item.unit == "%":
            stated, half = stated / 100, half / 100
        return None if abs(stated - figure.value) <= half + TOLERANCE * figure.value else figure
    return None


@cache
def figures(path: Path) -> dict[str, RecipeFigure]:
    """Figures of the steps that a recipe's log prints, by metric; MFU where the path names the chip."""
    from receipts.ingest.evidence import read

    known: dict[str, RecipeFigure] = {}
    for file in _logs(path):
        for reading in read(file).readings:
            for metric in _METRICS:
                values = [value for value in reading.steps.column(metric) if value is not None and value > 0]
                if values:
                    known.setdefault(metric, RecipeFigure(median(values), str(file)))
    machine = next((accelerator for part in reversed(path.parts) if (accelerator := find_accelerator(part))), None)
    peak = machine.peak("bf16") if machine is not None else None
    if peak and "tflops_per_second_per_chip" in known:
        each = known["tflops_per_second_per_chip"]
        known["mfu"] = RecipeFigure(each.value * 1e12 / peak, each.file)
    return known


def _linked(file: str, line: int) -> Iterator[Path]:
    """The files and folders of this tree that a line links to."""
    page = Path(file)
    for target in _LINK.findall(_lines(page)[line - 1] if 0 < line <= len(_lines(page)) else ""):
        hosted = _HOSTED.match(target)
        if hosted:
            above = list(page.absolute().parents)[:MAX_ABOVE]
            places = [folder / hosted[1] / unquote(hosted[2]) for folder in above]
        else:
            places = [] if "://" in target else [page.parent / unquote(target.partition("#")[0])]
        yield from (place for place in places if place.exists() and place != page)


@cache
def _lines(page: Path) -> tuple[str, ...]:
    try:
        return tuple(read_small(page, 64 << 20).decode("utf-8", "replace").splitlines())
    except OSError:
        return ()


def _logs(path: Path) -> list[Path]:
    files = [path] if path.is_file() else [file for pattern in _LOGS for file in sorted(path.glob(pattern))]
    return [file for file in files if file.is_file() and file.stat().st_size <= MAX_LOG]
