"""The interval of a report, an ISO week or any other in UTC, and the moment that it is at."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

from receipts.base.errors import UsageError
from receipts.base.units import YEARS, is_day
from receipts.base.units import moment as read

_WEEK = re.compile(r"^(\d{4})-W(\d{2})$")
_NEARLY = re.compile(r"^(\d{4})[-_/ ]?W?[-_/ ]?(\d{1,2})$")


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

    @classmethod
    def of(cls, at: datetime) -> Week:
        """The week of a moment."""
        year, number, _ = at.astimezone(UTC).isocalendar()
        return cls(year, number)

    @classmethod
    def parse(cls, text: str) -> Week:
        """Read ``2026-W47``. Raises UsageError."""
        match = _WEEK.match(text.strip().upper())
        if match:
            week = cls(int(match[1]), int(match[2]))
            try:
                week.since  # noqa: B018 — computing it is the check
            except ValueError:
                pass
            else:
                if week.year in YEARS:
                    return week
        raise UsageError(f"--week {text}: there is no such ISO week; {_instead(text.strip().upper())}")


def _instead(text: str) -> str:
    """What to write where a text names no week."""
    match = _NEARLY.match(text)
    if match is None or int(match[1]) not in YEARS:
        return "write it as 2026-W47"
    year, number = int(match[1]), int(match[2])
    last = date(year, 12, 28).isocalendar().week  # which is always in the year's last week
    if 1 <= number <= last:
        return f"did you mean {year:04d}-W{number:02d}?"
    return f"{year:04d} has the weeks W01 to W{last}"


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Any interval in UTC, its end left out."""

    since: datetime
    until: datetime

    def __str__(self) -> str:
        """As ISO 8601 writes an interval, to the minute where seconds are none."""
        return "/".join(_written(at) for at in (self.since, self.until))


def _written(at: datetime) -> str:
    if at.hour == at.minute == at.second == at.microsecond == 0:
        return f"{at:%Y-%m-%d}"
    return at.isoformat(timespec="auto" if at.second or at.microsecond else "minutes").replace("+00:00", "Z")


def asked(week: str | None, since: str | None, until: str | None, as_of: datetime) -> Week | TimeRange:
    """The interval of ``--week``, or of ``--since`` and ``--until``; else the week of ``as_of``. Raises UsageError.

    A bare date begins with its day, and ends with it: ``--until 2026-11-20`` takes that day in. Until is ``as_of``
    unless it is named.
    """
    if since is None and until is None:
        return _begun(Week.parse(week), f"--week {week}", as_of) if week else Week.of(as_of)
    if week is not None:
        raise UsageError("--week is an interval of its own; leave it out, or --since and --until")
    if since is None:
        raise UsageError(f"--until {until}: name where the interval begins with --since")
    begin = read("--since", since)
    _begun(TimeRange(begin, begin), f"--since {since}", as_of)
    if until is None:
        end = as_of + timedelta(microseconds=1)
    else:
        end = read("--until", until) + timedelta(days=is_day(until))
    if end <= begin:
        raise UsageError(f"--since {since}: the interval ends before it begins; name an earlier moment")
    return TimeRange(begin, end)


_Stretch = TypeVar("_Stretch", Week, TimeRange)


def _begun(stretch: _Stretch, text: str, as_of: datetime) -> _Stretch:
    """The stretch, unless it begins after the moment that is looked at: then nothing can have run in it."""
    if stretch.since > as_of:
        raise UsageError(
            f"{text}: it begins after {as_of:%Y-%m-%d %H:%M} UTC, where this report ends; name an earlier one, "
            "or a later --as-of"
        )
    return stretch


def moment(text: str | None) -> datetime:
    """Read ``--as-of``, in UTC; None is now. A bare date means the end of that day. Raises UsageError."""
    return datetime.now(UTC).replace(microsecond=0) if text is None else read("--as-of", text, "23:59:59")
