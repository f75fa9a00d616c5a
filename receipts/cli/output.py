"""Where commands print: standard output and standard error, their width, and color only where it is wanted."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from receipts.base.errors import ReceiptsError, printed
from receipts.publish.page import Page, Table
from receipts.publish.terminal import Terminal, clean

NARROWEST = 40
SLOW = 50  # documents from which on progress is worth a line
PATIENCE = 1.0  # seconds


def terminal() -> Terminal:
    """What standard output is: its width, and whether it shows colors. A pipe without COLUMNS gets whole tables."""
    limited = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Terminal(_width(), _width() if limited else None, colored)


def show(shown: Page | Table, *, opened: bool = False) -> None:
    """A page, or a table, on standard output; ``opened`` opens its folds."""
    sys.stdout.write(terminal().text(shown, opened=opened))


def _width() -> int:
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

    Silent too in its first second, and where the answer itself appears line by line on the same terminal.
    """

    def __init__(self) -> None:
        self._total: int | None = None
        self._begins = time.monotonic() + PATIENCE
        self._shown = 0.0
        self._on = sys.stderr.isatty()
        self._ended = threading.Event()

    def __repr__(self) -> str:
        return f"Progress({self._total})"

    def tick(self) -> Progress:
        """Count the seconds from the second one on, until there is more to say or the answer comes."""

        def count() -> None:
            begun = time.monotonic()
            while not self._ended.wait(0.5):
                seconds = time.monotonic() - begun
                if seconds >= 2 and time.monotonic() - self._shown > 2 and not self._ended.is_set():
                    self.text(f"{seconds:.0f} s")

        if self._on:
            threading.Thread(target=count, daemon=True).start()
        return self

    def of(self, total: int | None, *, answers: bool = False) -> Progress:
        """The same, of a known total; with ``answers`` the answer appears meanwhile."""
        self._total = total
        self._on &= not (answers and sys.stdout.isatty())
        return self

    def at(self, done: int, total: int | None = None) -> None:
        """Say that so many are done, of a total that may be known only now; at most ten times a second."""
        self._total = self._total if total is None else total
        of = f" of {self._total:,}" if self._total is not None else ""
        if self._total is None or self._total >= SLOW:
            self.text(f"{done:,}{of}")

    def text(self, line: str) -> None:
        """Write the line over."""
        now = time.monotonic()
        if self._on and now >= self._begins and now - self._shown >= 0.1:
            self._shown = now
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away, before anything else is written there."""
        self._ended.set()
        if self._on and self._shown:
            sys.stderr.write("\r\x1b[K")
            self._shown = 0.0


def refuse(error: ReceiptsError) -> None:
    """An error on standard error."""
    for text in printed(error):
        note(text)


def as_json(document: Any) -> None:
    """A document as JSON on standard output, keys in the order that they were made in."""
    from receipts.publish.text import json_text

    sys.stdout.write(json_text(document) + "\n")
