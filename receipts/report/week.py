"""ISO weeks in UTC, and the moment that a report stands at."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from receipts.errors import UsageError

_WEEK = re.compile(r"^(\d{4})-W(\d{2})$")
_DAY = re.compile(r"^\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True, slots=True, order=True)
class Week:
    """One ISO 8601 week, Monday 00:00 UTC to the next, the next left out."""

    year: int
    number: int

    def __str__(self) -> str:
        return f"{self.year:04d}-W{self.number:02d}"

    @property
    def since(self) -> datetime:
        """Its first moment."""
        first = date.fromisocalendar(self.year, self.number, 1)
        return datetime(first.year, first.month, first.day, tzinfo=UTC)

    @property
    def until(self) -> datetime:
        """The first moment after it."""
        return self.since + timedelta(days=7)

    def holds(self, at: datetime) -> bool:
        """Whether a moment lies in it."""
        return self.since <= at < self.until

    @classmethod
    def of(cls, at: datetime) -> Week:
        """The week of a moment."""
        year, number, _ = at.astimezone(UTC).isocalendar()
        return cls(year, number)

    @classmethod
    def parse(cls, text: str) -> Week:
        """Read ``2026-W47``. Raises UsageError."""
        found = _WEEK.match(text.strip().upper())
        if found:
            week = cls(int(found[1]), int(found[2]))
            try:
                week.until  # noqa: B018 — computing it is the check: the last week of year 9999 has no end
            except (ValueError, OverflowError):
                found = None
            else:
                return week
        raise UsageError(f"--week {text}: there is no such ISO week; write it as 2026-W47")


def moment(text: str | None) -> datetime:
    """Read ``--as-of``, in UTC; None is now. A bare date means the end of that day. Raises UsageError."""
    if text is None:
        return datetime.now(UTC).replace(microsecond=0)
    if _DAY.match(text.strip()):
        text = f"{text.strip()}T23:59:59+00:00"
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"--as-of {text}: write a date or time such as 2026-11-20 or 2026-11-20T09:00Z") from None
    raise UsageError(f"--as-of {text}: the time has no zone; add Z or +02:00")
