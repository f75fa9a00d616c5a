"""Moments as options name them: a day, a time, or how long ago."""

from __future__ import annotations

import re
from datetime import MAXYEAR, UTC, datetime, timedelta

from receipts.base.errors import UsageError

YEARS = range(1900, MAXYEAR)  # beyond them an interval has no moment before it, or none after it
_AGO = re.compile(r"(\d{1,5})([hdw])")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def is_day(text: str) -> bool:
    """Whether a word names a day and no time of it."""
    return _DAY.fullmatch(text.strip()) is not None


def moment(option: str, text: str, of_day: str = "00:00:00") -> datetime:
    """The moment that a word names, in UTC: ``2026-03-01``, ``2026-03-01T09:00Z``, or ``7d`` ago.

    Of a day it is a time; what names no zone is in UTC. Raises UsageError, naming the option.
    """
    if ago := _AGO.fullmatch(text):
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    day = is_day(text)
    try:
        parsed = datetime.fromisoformat(f"{text.strip()}T{of_day}" if day else text)
        at = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        if day:
            raise UsageError(f"{option} {text}: there is no such day") from None
        raise UsageError(f"{option} {text}: write a day such as 2026-03-01, a time, or 12h, 7d, 2w ago") from None
    if at.year not in YEARS:
        raise UsageError(f"{option} {text}: write a moment of the years {YEARS[0]} to {YEARS[-1]}")
    return at
