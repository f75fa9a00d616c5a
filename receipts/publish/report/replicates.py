"""The valid launches of a result's configuration: two make it a repeated result, one is a peak."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from receipts.judging.envelope import REPEATED

if TYPE_CHECKING:
    from receipts.publish.report.reader import ReportReader
    from receipts.store import Entry

MOST_LAUNCHES: Final = 50


class Replicates:
    """Looks up launches of configurations, each once, by the store's axis index."""

    def __init__(self, reader: ReportReader) -> None:
        self._reader = reader
        self._rates: dict[tuple[str, datetime], tuple[float, ...]] = {}

    def rates(self, row: Entry, until: datetime | None = None) -> tuple[float, ...]:
        """Tokens a second a chip of each valid launch that kept its steps, until a moment (the report's end)."""
        key = (row.id, until or self._reader.sought.until)
        if key not in self._rates:
            self._rates[key] = self._read(row, key[1])
        return self._rates[key]

    def is_repeated(self, row: Entry, until: datetime | None = None) -> bool:
        """Whether two launches or more reached it."""
        return len(self.rates(row, until)) >= REPEATED

    def _read(self, row: Entry, until: datetime) -> tuple[float, ...]:
        place = self._reader.stored.place([row.id]).get(row.id)
        rows = [row]
        if place is not None:
            rows += self._reader.stored.launches(place, row.kind, until, MOST_LAUNCHES)
        return _by_launch(rows)


def _by_launch(rows: Sequence[Entry]) -> tuple[float, ...]:
    """The rate of each launch among these rows, that of its first row."""
    rates = {
        row.launch: row.tokens_per_second_per_chip
        for row in reversed(rows)
        if row.rate_status == "valid" and row.rate_source == "steps" and row.tokens_per_second_per_chip
    }
    return tuple(rate for rate in rates.values() if rate)
