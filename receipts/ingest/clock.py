"""When a log begins: by the first time that it prints, and only where there is none by the file's date on the disk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
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
# Hours from UTC. Names that two zones share (CST, IST) are read as no zone.
_ZONES: Final = {
    name: float(hours)
    for hours, names in (
        (0, "Z UTC GMT WET"),
        *((1, "WEST BST CET"), (2, "CEST EET"), (3, "EEST MSK"), (8, "HKT SGT AWST"), (9, "JST KST"), (10, "AEST")),
        *((11, "AEDT"), (12, "NZST"), (13, "NZDT"), (-10, "HST"), (-9, "AKST"), (-8, "PST AKDT"), (-7, "PDT MST")),
        *((-6, "MDT"), (-5, "EST CDT"), (-4, "EDT")),
    )
    for name in names.split()
}
_STAMP: Final = re.compile(
    r"(?<!\d)(?P<year>20\d\d)[-/](?P<month>\d\d)[-/](?P<day>\d\d)[T ]+(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    r"(?:[.,](?P<part>\d{1,6})\d*)?(?:\s?(?P<zone>Z|[A-Z]{3,4}|[+-]\d\d(?::?\d\d)?)(?![\w.:]))?(?!\d)"
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# What `date` prints: Mon Mar  2 09:00:00 UTC 2026, and without the zone.
_DATE: Final = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? (?P<name>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d) (?:(?P<half>[AP]M) )?(?:(?P<zone>[A-Z]{3,4}) )?(?P<year>20\d\d)"
)
# nanotron's formatter, month before day; without its own word for it the order would be a guess.
_AMERICAN: Final = re.compile(
    r"(?<!\d)(?P<month>\d\d)/(?P<day>\d\d)/(?P<year>20\d\d) (?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?!\d)"
)
_AMERICANS: Final = ("nanotron",)
# Google's loggers, and a clock alone that begins a line.
_YEARLESS: Final = re.compile(
    r"^(?:\S+ )?[IWEFV](?P<month>[01]\d)(?P<day>[0-3]\d) (?P<time>\d\d:\d\d:\d\d)(?P<part>\.\d+)? ", re.MULTILINE
)
_DAYLESS: Final = re.compile(
    r"^(?:\[?(?:rank ?|default)\d{1,6}\]:? ?)?\[?(?P<time>[0-2]\d:[0-5]\d:[0-5]\d)(?P<part>[.,]\d{1,9})?\]?(?=[ |\t])",
    re.MULTILINE,
)
DAY_SECONDS: Final = 86_400.0
_BAR_END: Final = re.compile(r"(?:s/it|it/s)[^\]\n]{0,200}\]\s?")


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
        if moment := stamp(lead(line.decode("ascii", "replace")), number, american=_american(file)):
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
        if moment := stamp(lead(lines[at].decode("ascii", "replace")), american=_american(file)):
            # The last step may go on below its own line.
            readings = scan([b"\n".join(lines[at + 1 :])]) if len(lines) > at + 2 else []
            return None if any(reading.records > 1 and reading.trains for reading in readings) else moment
    return None


def partial_stamp(file: FileEvidence) -> tuple[Stamp, str] | None:
    """A stamp without a year (`I1120 13:05:05`) or without a day (`13:05:05`), the last such before the file's date.

    With what it lacks. None where there is none, or the file has no date.
    """
    head, date = Source(file.path, file.name).head.decode("ascii", "replace"), modified(file)
    match = _YEARLESS.search(head)
    if date is None:
        return None
    if match is None:
        clock = _DAYLESS.search(head)
        if clock is None:
            return None
        time = datetime.fromisoformat(f"{date.time:%Y-%m-%d}T{clock['time']}+00:00")
        time -= timedelta(days=time > date.time)
        return Stamp(time, clock["time"], False, Place()), "no day and no zone in the log; the day"
    for year in (date.time.year, date.time.year - 1):
        try:
            time = datetime.fromisoformat(f"{year}-{match['month']}-{match['day']}T{match['time']}+00:00")
        except ValueError:
            continue
        # A zone may lie between the log's clock and the disk's.
        if time <= date.time + timedelta(days=1):
            return Stamp(time, match[0].strip(), False, Place()), "no year and no zone in the log; the year"
    return None


def seconds_on(text: str, *, american: bool = False) -> tuple[str, float] | None:
    """The clock that begins a line, in seconds, with its kind: of two lines only one kind can be compared."""
    if (full := stamp(lead(text), american=american)) is not None:
        return "full", full.time.timestamp()
    match, kind = _YEARLESS.match(lead(text)), "yearless"
    if match is None:
        match, kind = _DAYLESS.match(lead(text)), "dayless"
    if match is None:
        return None
    date = f"2000-{match['month']}-{match['day']}" if kind == "yearless" else "2000-01-01"
    try:
        time = datetime.fromisoformat(f"{date}T{match['time']}+00:00").timestamp()
    except ValueError:
        return None
    return kind, time + float((match["part"] or "0").replace(",", "."))


def modified(file: FileEvidence) -> Stamp | None:
    """When the file was last written, to the second; None for standard input, and for dates before any such run."""
    if file.name == STDIN:
        return None
    try:
        time = datetime.fromtimestamp(int(file.path.stat().st_mtime), UTC)
    except (OSError, OverflowError, ValueError):
        return None
    return Stamp(time, f"{time:%Y-%m-%d %H:%M:%S}", True, Place()) if time.year >= _EARLIEST else None


def lead(line: str) -> str:
    """What leads a line, behind the progress bar that was drawn on it."""
    bar = _BAR_END.search(line) if "it/s" in line or "s/it" in line else None
    at = bar.end() if bar is not None else 0
    return line[at : at + LEAD]


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
        if (half := named.get("half")) is not None:
            hour = hour % 12 + 12 * (half == "PM")
        # By its offset or by its name; else UTC.
        if zone is None or zone.isalpha():
            hours = _ZONES.get(zone or "")
            place, zoned = timezone(timedelta(hours=hours)) if hours else UTC, hours is not None
        else:
            digits = zone[1:].replace(":", "").ljust(4, "0")
            offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
            place, zoned = timezone(-offset if zone[0] == "-" else offset), True
        time = datetime(int(named["year"]), month, day, hour, minute, second, int(part), tzinfo=place)
    except ValueError:
        return None
    if zone is not None and zone.isalpha():
        time = time.astimezone(UTC)
    # A word that follows a time is no part of it: `10:00:00 INFO`.
    text = match[0] if zoned or zone is None else match[0].removesuffix(zone)
    return Stamp(time, text.strip(), zoned, Place(line))
