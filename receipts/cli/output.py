"""What commands print: rich on a terminal, plain when piped, within its width, colour only where wanted."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from receipts.base.errors import InputError, ReceiptsError

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
    "open": "yellow",
    "unwitnessed": "yellow",
    "unknown": "yellow",
    "unproven": "yellow",
    "E": "red",
    "I": "yellow",
    "W": "cyan",
    "head": "bold",
    "dim": "dim",
}
NARROWEST = 40
SLOW = 50  # documents from which on progress is worth a line
PADDED = 44  # the widest column that a piped table pads
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
    # As `shutil` does, which loads every archive format there is.
    stated = os.environ.get("COLUMNS", "")
    if stated.isdecimal() and int(stated) > 0:
        return max(NARROWEST, int(stated))
    try:
        return max(NARROWEST, os.get_terminal_size(1).columns or 100)
    except OSError:
        return 100


def line(text: str = "") -> None:
    """One line on standard output."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """A line, or several, on standard error: hints, errors, what is not the answer. It may quote a receipt."""
    sys.stderr.write("\n".join(clean(part) for part in text.split("\n")) + "\n")


class Progress:
    """How far long work is, as one line of standard error that is written over; nothing where that is no terminal.

    Silent too where the answer itself appears line by line on the same terminal. ``total`` is None where only the end
    tells it.
    """

    def __init__(self, total: int | None, *, answers: bool) -> None:
        self._total = total
        self._shown = 0.0
        self._on = (total is None or total >= SLOW) and sys.stderr.isatty() and not (answers and sys.stdout.isatty())

    def __repr__(self) -> str:
        return f"Progress({self._total})"

    def at(self, done: int) -> None:
        """Say that so many are done; at most ten times a second."""
        import time

        now = time.monotonic()
        if self._on and now - self._shown >= 0.1:
            self._shown = now
            of = f" of {self._total:,}" if self._total is not None else ""
            sys.stderr.write(f"\r{done:,}{of}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away, before anything else is written there."""
        if self._on and self._shown:
            sys.stderr.write("\r\x1b[K")
            self._shown = 0.0


def refuse(error: ReceiptsError) -> None:
    """An error on standard error. One of a document stands by the document's name, as compilers have it."""
    lead = "" if isinstance(error, InputError) else "receipts: "
    note(f"{lead}{error}")


def heading(text: str) -> None:
    """A section's name."""
    line()
    line(paint(text, "head"))


def wrapped(text: str, indent: int = 2, hanging: int | None = None) -> None:
    """A sentence folded to the width, indented."""
    import textwrap

    lead = " " * indent
    rest = " " * (indent if hanging is None else hanging)
    for part in textwrap.wrap(
        clean(text), width(), initial_indent=lead, subsequent_indent=rest, break_long_words=False
    ):
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
    # One long word must not push the columns of every other row aside: it overflows alone.
    sizes = [min(PADDED, max(len(row[index]) for row in (columns, *rows))) for index in range(len(columns))]
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
    # Without a colour system nothing is styled at all; `no_color` would leave bold.
    Console(color_system="auto" if coloured() else None, highlight=False, width=width()).print(made)


def as_json(document: Any) -> None:
    """A document as JSON on standard output, keys in the order that they were made in."""
    text = json.dumps(document, default=_plain_value, ensure_ascii=False, indent=2)
    # Inside a string every sign may be written escaped, and those that a terminal obeys are.
    signs = {sign for sign in set(text) if not sign.isprintable() and sign != "\n"}
    if signs:
        escaped = {sign: json.dumps(sign)[1:-1] for sign in signs}
        text = text.translate(
            {ord(sign): said if said != sign else f"\\u{ord(sign):04x}" for sign, said in escaped.items()}
        )
    sys.stdout.write(text + "\n")


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)
