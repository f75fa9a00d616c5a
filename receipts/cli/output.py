"""What commands print: rich on a terminal, plain when piped, within its width, colour only where wanted."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

Row = Sequence[str]
STYLES = {
    "accepted": "green",
    "valid": "green",
    "yes": "green",
    "witnessed": "green",
    "supported": "green",
    "refuted": "red",
    "stale": "yellow",
    "rejected": "red",
    "invalid": "red",
    "no": "red",
    "left": "red",
    "inconclusive": "yellow",
    "unwitnessed": "yellow",
    "unknown": "yellow",
    "unproven": "yellow",
    "E": "red",
    "I": "yellow",
    "W": "cyan",
    "head": "bold",
    "dim": "dim",
}
_ANSI = {"green": "32", "red": "31", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}


def coloured() -> bool:
    """Whether to colour: a terminal, and neither NO_COLOR nor a dumb terminal."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str) -> str:
    """A word in the colour of its meaning; unknown styles leave it plain."""
    colour = STYLES.get(style)
    return f"\x1b[{_ANSI[colour]}m{text}\x1b[0m" if colour and coloured() else text


def clean(text: str) -> str:
    """Text from a receipt, made harmless for a terminal: control characters and direction marks are shown escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def width() -> int:
    """Columns to use."""
    return max(40, shutil.get_terminal_size((100, 24)).columns)


def line(text: str = "") -> None:
    """One line on standard output."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """One line on standard error: progress, hints, what is not the answer."""
    sys.stderr.write(text + "\n")


def heading(text: str) -> None:
    """A section's name."""
    line()
    line(paint(text, "head"))


def wrapped(text: str, indent: int = 2, hanging: int | None = None) -> None:
    """A sentence folded to the width, indented."""
    import textwrap

    lead = " " * indent
    rest = " " * (indent if hanging is None else hanging)
    for part in textwrap.wrap(text, width(), initial_indent=lead, subsequent_indent=rest, break_long_words=False):
        line(part)


def table(columns: Row, rows: Sequence[Row], *, right: Sequence[int] = (), empty: str = "nothing") -> None:
    """A table: rich on a terminal, aligned columns when piped. ``right`` are the columns that hold numbers."""
    if not rows:
        line(f"  {empty}")
        return
    cells = [[clean(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _rich(columns, cells, right)
    else:
        _plain(columns, cells, right)


def _plain(columns: Row, rows: Sequence[Row], right: Sequence[int]) -> None:
    sizes = [max(len(row[index]) for row in (columns, *rows)) for index in range(len(columns))]
    for row in (columns, *rows):
        parts = [
            cell.rjust(size) if index in right else cell.ljust(size)
            for index, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]
        line(("  " + "  ".join(parts)).rstrip())


def _rich(columns: Row, rows: Sequence[Row], right: Sequence[int]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, name in enumerate(columns):
        made.add_column(name, justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    Console(no_color=not coloured(), highlight=False, width=width()).print(made)


def as_json(document: Any) -> None:
    """A document as JSON on standard output, keys in the order that they were made in."""
    sys.stdout.write(json.dumps(document, default=_plain_value, ensure_ascii=False, indent=2) + "\n")


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)
