"""What export and import say while they run and at the end: how far they are, and how many rows of what."""

from __future__ import annotations

from collections.abc import Mapping

from receipts.cli.output import Progress


class Advance:
    """Called with how much is done and of how much; shows it as `output.Progress` does."""

    def __init__(self) -> None:
        self._shown: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        if self._shown is None:
            self._shown = Progress(total, answers=False)
        self._shown.at(done)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown is not None:
            self._shown.clear()


def beside(rows: Mapping[str, int]) -> str:
    """Rows of every dataset but the receipts, in words; empty where there are none."""
    return ", ".join(f"{count:,} {_named(name, count)}" for name, count in rows.items() if count and name != "receipts")


def _named(name: str, count: int) -> str:
    words = name.replace("_", " ")
    return words.removesuffix("s") if count == 1 else words
