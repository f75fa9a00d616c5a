"""Decisions on receipts as a section, wherever a receipt is quoted that one was made on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts.publish.page import Section, points_of

if TYPE_CHECKING:
    from receipts.store import Decision

TITLE = "Decided"


def sentence(item: Decision) -> str:
    """One decision in a line."""
    who = f" by {item.actor}" if item.actor else ""
    return f"{item.decision} ({item.at:%Y-%m-%d}{who}): {item.reason}"


def decisions(items: Sequence[Decision]) -> Section:
    """The decisions, oldest first."""
    return Section("decided", TITLE, points=points_of((item.receipt[:12], sentence(item)) for item in items))
