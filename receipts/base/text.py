"""Text of others as one harmless line: what cannot be printed is escaped, and what is long is cut."""

from __future__ import annotations

MAX_SHOWN = 120  # of a label or a value


UNKNOWN = "~"


def plain(text: object, most: int = MAX_SHOWN) -> str:
    """One line of printable text, cut at ``most``: control characters and direction marks are shown escaped."""
    cut = str(text)[: most + 1]
    shown = cut if cut.isprintable() else "".join(char if char.isprintable() else _escaped(char) for char in cut)
    return short(shown, most)


def short(text: str, most: int) -> str:
    """Text cut at ``most``, as it is."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _escaped(char: str) -> str:
    return " " if char in "\n\r\t\u00a0\u2003" else char.encode("unicode_escape").decode()
