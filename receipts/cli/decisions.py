"""Decisions for people, wherever a receipt is quoted that one was made on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts.cli import output

if TYPE_CHECKING:
    from receipts.store import Decision


def sentence(item: Decision) -> str:
    """One decision in a line."""
    return f"{item.decision} ({item.at:%Y-%m-%d}): {output.clean(item.reason)}"


def print_decisions(decisions: Sequence[Decision], *, empty: str = "") -> None:
    """Decisions under a heading of their own, oldest first; nothing where there are none and nothing is to be said."""
    if not decisions and not empty:
        return
    output.heading("Decided")
    if not decisions:
        output.line(f"  {empty}")
    for item in decisions:
        output.wrapped(f"{item.receipt[:12]} {sentence(item)}", 2, 4)
