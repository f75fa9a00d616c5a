"""When a log begins: by the first time that it prints, and only where there is none by the file's date on the disk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from receipts.base.errors import UsageError
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reading import Place
from receipts.ingest.scan import scan
from receipts.ingest.source import Source

# Stamps lead a line; a date further on is the name of a data set or a checkpoint.
LEAD: Final = 96
_LINES: Final = 4000
_EARLIEST: Final = 2015
STDIN: Final = "standard input"  # what is spooled from there has the date of now
_STAMP: Final = re.compile(
    r"(?<!\d)(?P<year>20\d\d)[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ]+(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?:[.,](?P<part>\d{1,6})\d*)?\s?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?(?!\d)"
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# What `date` prints: Mon Mar  2 09:00:00 UTC 2026, and without the zone.
_DATE: Final = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? (?P<name>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d) (?:(?P<zone>UTC|GMT) )?(?P<year>20\d\d)"
)
# nanotron's formatter, month before day; without its own word for it the order would be a guess.
_AMERICAN: Final = re.compile(
    r"(?<!\d)(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>20\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?!\d)"
)
_AMERICANS: Final = ("nanotron",)
_YEARLESS: Final = re.compile(
    r"^(?:\S+ )?[IWEF](?P<month>[01]\d)(?P<day>[0-3]\d) (?P<time>\d\d:\d\d:\d\d)\.\d+ ", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Stamp:
    """A time as a log prints it. ``zoned`` is whether the text says its zone; else it is read as UTC."""

    time: datetime
    text: str
    zoned: bool
    place: Place


def first_stamp(file: FileEvidence) -> Stamp | None:
    """The first time that leads a line of the file's beginning; None where no line has one."""
    try:
        head = Source(file.path, file.name).head
    except UsageError:
        return None
    for number, line in enumerate(head.split(b"\n", _LINES)[:_LINES], start=1):
        if moment := stamp(line[:LEAD].decode("ascii", "replace"), number, american=_american(file)):
            return moment
    return None


def last_stamp(file: FileEvidence) -> Stamp | None:
    """The last time that leads a line of the file's end; None where no line there has one.

    A loop may print steps without a time below the messages of its start: the last of those is not its end.
    """
    try:
        lines = Source(file.path, file.name).tail.split(b"\n")[-_LINES:]
    except (UsageError, OSError):
        return None
    for at in range(len(lines) - 1, -1, -1):
        if moment := stamp(lines[at][:LEAD].decode("ascii", "replace"), american=_american(file)):
            return None if _trains(lines[at + 1 :]) else moment
    return None


def _trains(lines: Sequence[bytes]) -> bool:
    """Whether lines hold several records of training; the last step may go on below its own line."""
    readings = scan([b"\n".join(lines)]) if len(lines) > 1 else []
    return any(reading.records > 1 and reading.trains for reading in readings)


def yearless(file: FileEvidence) -> Stamp | None:
    """A stamp without a year, as Google's loggers print it (`I1120 13:05:05`), in the last year before the file's date.

    None where there is none, or the file has no date.
    """
    match = _YEARLESS.search(Source(file.path, file.name).head.decode("ascii", "replace"))
    date = modified(file)
    if match is None or date is None:
        return None
    for year in (date.time.year, date.time.year - 1):
        try:
            time = datetime.fromisoformat(f"{year}-{match['month']}-{match['day']}T{match['time']}+00:00")
        except ValueError:
            continue
        # A zone may lie between the log's clock and the disk's.
        if time <= date.time + timedelta(days=1):
            return Stamp(time, match[0].strip(), False, Place())
    return None


def modified(file: FileEvidence) -> Stamp | None:
    """When the file was last written, to the second; None for standard input, and for dates before any such run."""
    if file.name == STDIN:
        return None
    try:
        time = datetime.fromtimestamp(int(file.path.stat().st_mtime), UTC)
    except (OSError, OverflowError, ValueError):
        return None
    return Stamp(time, f"{time:%Y-%m-%d %H:%M:%S}", True, Place()) if time.year >= _EARLIEST else None


def _american(file: FileEvidence) -> bool:
    return any(reading.source in _AMERICANS for reading in file.readings)


def stamp(text: str, line: int = 0, *, american: bool = False) -> Stamp | None:
    """The time that a text holds, or None. ``american``: whoever wrote it puts the month before the day."""
    forms = (_STAMP, _AMERICAN, _DATE) if american else (_STAMP, _DATE)
    match = next((match for form in forms if (match := form.search(text)) is not None), None)
    if match is None:
        return None
    named = match.groupdict()
    zone, part = named.get("zone"), (named.get("part") or "").ljust(6, "0")
    try:
        month = int(named["month"]) if "month" in named else _MONTHS.index(named["name"].lower()) + 1
        day, hour, minute, second = (int(named[name]) for name in ("day", "hour", "minute", "second"))
        place = UTC if zone in (None, "UTC", "GMT") else datetime.strptime(zone, "%z").tzinfo
        time = datetime(int(named["year"]), month, day, hour, minute, second, int(part), tzinfo=place)
    except ValueError:
        return None
    return Stamp(time, match[0].strip(), zone is not None, Place(line))
