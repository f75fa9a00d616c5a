"""Moments as options name them: a day, a time, or how long ago."""

from __future__ import annotations

from typing import TYPE_CHECKING

from receipts.base.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime


def moment(option: str, text: str) -> datetime:
    """The moment that a word names: ``2026-03-01``, ``2026-03-01T09:00Z``, or ``7d`` ago. Without a zone it is UTC.

    Raises UsageError, naming the option.
    """
    import re
    from datetime import UTC, datetime, timedelta

    ago = re.fullmatch(r"(\d{1,5})([hdw])", text)
    if ago:
        unit = {"h": "hours", "d": "days", "w": "weeks"}[ago[2]]
        return datetime.now(UTC) - timedelta(**{unit: int(ago[1])})
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option} {text}: write a day such as 2026-03-01, a time, or 12h, 7d, 2w ago") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
