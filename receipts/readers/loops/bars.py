"""Progress bars: how long a step takes by what a bar says has elapsed.

A bar of tqdm (``12%|█▏ | 15/200 [07:27<1:32:10, 29.9s/it, loss=2.5]``), of rich or of Keras is the only speed that many
trainers print. Its own rate is smoothed; the times that have elapsed are not, and count whole seconds. Bars of other
titles or totals are other loops: the one that spent most time is the training's. Where the count goes back, a bar
begins anew.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import ClassVar, Final

from receipts.base.units import SECONDS
from receipts.ingest.literals import number
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import BAR, IntervalMeans, Reading

TIMER: Final = "progress bar"
MAX_BARS: Final = 1_000
MAX_INTERVALS: Final = 100_000
# Of a clock of whole seconds: an interval of so many is known to two percent.
_MIN_SECONDS: Final = 50
# Fewer between the first and the last state of a bar say less than all that elapsed.
_SURE_SECONDS: Final = 10
_SMOOTHED: Final = 0.2
_CLOCK: Final = r"(?:(?P<days>\d{1,3}) days?, )?(?:(?P<hours>\d{1,4}):)?(?P<minutes>\d{1,2}):(?P<seconds>\d\d)"
_SPELLED: Final = r"(?:(?P<days>\d{1,3})d )?(?:(?P<hours>\d{1,2})h )?(?:(?P<minutes>\d{1,2})m )?(?P<seconds>\d{1,2})s"
_COUNT: Final = r"(?<![\d.])(?P<count>\d{1,9})/(?P<of>\d{1,9})"
_RATE: Final = r"(?P<rate>[\d.]{1,12}|\?)\s?(?P<unit>s/(?:it|step|batch|iter)|(?:it|step|batch|iter)/s)\b"
_BARS: Final = (
    re.compile(rf"(?:\d{{1,3}}%(?:\|[^|\n]{{0,400}}\|)?\s*)?{_COUNT}\s*\[{_CLOCK}<[^,\]]{{1,30}},\s*{_RATE}"),
    re.compile(rf"(?<![\d.])(?P<count>\d{{1,9}})it \[{_CLOCK},\s*{_RATE}"),
    re.compile(rf"{_COUNT} {_CLOCK} • \S{{1,20}} (?P<rate>[\d.]{{1,12}})(?P<unit>it/s)"),
    re.compile(rf"{_COUNT} (?:\[[=>.]{{4,80}}\]|[━╸╺ ]{{4,80}}).{{0,80}}?(?P<rate>[\d.]{{1,12}})(?P<unit>[mu]?s/step)"),
    # Records that say what the bar beside them shows: LLaMA-Factory's trainer_log.jsonl, ms-swift's dictionaries.
    re.compile(
        r"current_steps['\"]: (?P<count>\d{1,9}), ['\"]total_steps['\"]: (?P<of>\d{1,9})\b"
        rf".{{1,900}}?elapsed_time['\"]: ['\"]{_CLOCK}"
    ),
    re.compile(rf"global_step/max_steps['\"]: ['\"]{_COUNT}.{{1,900}}?elapsed_time['\"]: ['\"]{_SPELLED}"),
)
_TITLE: Final = re.compile(r"([A-Za-z][\w ()/.=-]{0,60}):\s*$")
_TRAINS: Final = re.compile(r"(?i)\b(?:train|epoch|step|iter|it\b|global|progress|batch)")
_OTHER: Final = re.compile(r"(?i)eval|valid|test|predict|generat|infer|sanity|load|map|token|filter|download|sav")


@dataclass(slots=True)
class Bar:
    """One bar that counts up. ``points`` are counts with the seconds that had elapsed, intervals apart."""

    points: list[tuple[int, float]] = field(default_factory=list)
    last: tuple[int, float] = (0, 0.0)

    def add(self, count: int, seconds: float) -> bool:
        """Take a later state; False where it is one of another bar."""
        before, at = self.last
        if self.points and (count < before or seconds < at):
            # Ranks draw the same bar, one a moment after the other.
            return count <= before and at - seconds <= 2 and before - count <= 1
        count_at, seconds_at = self.points[-1] if self.points else (-1, -math.inf)
        if count > count_at and seconds - seconds_at >= _MIN_SECONDS and len(self.points) < MAX_INTERVALS:
            self.points.append((count, seconds))
        self.last = count, seconds
        return True

    @property
    def span(self) -> tuple[int, float]:
        """The steps that it shows, and how long they took."""
        count, seconds = self.points[0]
        return self.last[0] - count, self.last[1] - seconds


class ProgressBars(LineReader):
    """Reads the bars of a log, whoever draws them."""

    source: ClassVar[str] = BAR
    anchors: ClassVar[tuple[bytes, ...]] = (
        *(b"s/it", b"it/s", b"s/step - ", b"s/step]", b"s/step,", b"step/s]", b"step/s,"),
        *(b"s/batch", b"batch/s", b"elapsed_time': ", b'elapsed_time": '),
    )

    def __init__(self) -> None:
        super().__init__()
        self._bars: dict[tuple[str, int], list[Bar]] = {}
        self._rates: dict[tuple[str, int], float] = {}

    def line(self, text: str, _: int) -> bool:
        """Take the bars of one line."""
        for match in (match for form in _BARS for match in form.finditer(text)):
            parts = match.groupdict()
            count, of, unit = int(parts["count"]), int(parts.get("of") or 0), parts.get("unit") or ""
            title = _TITLE.search(text, max(0, match.start() - 70), match.start())
            name = re.sub(r"[\d\s]+", " ", title[1]).strip().lower() if title is not None else ""
            if 0 < of < count or _OTHER.search(name) or (name and not _TRAINS.search(name)):
                continue
            rate = number(parts.get("rate") or "") or 0.0
            if unit.endswith("/s"):
                rate = 1 / rate if rate else 0.0
            elif unit:
                rate *= SECONDS[unit.partition("/")[0]]
            if "seconds" not in parts:
                elapsed = rate * count
            else:
                days, hours, minutes, seconds = (
                    int(parts[name] or 0) for name in ("days", "hours", "minutes", "seconds")
                )
                elapsed = float(86_400 * days + 3_600 * hours + 60 * minutes + seconds)
            key = name, of
            if key not in self._bars and len(self._bars) >= MAX_BARS:
                continue
            bars = self._bars.setdefault(key, [])
            if not bars or not bars[-1].add(count, elapsed):
                bars.append(Bar())
                bars[-1].add(count, elapsed)
                if len(bars) > MAX_BARS:
                    bars.pop(0)
            self._rates[key] = rate
        return False

    def finish(self) -> Reading | None:
        """The reading, with the means of the bar that spent most time."""
        if not self._bars:
            return None
        key = max(self._bars, key=lambda item: (sum(bar.span[1] for bar in self._bars[item]), item[1]))
        bars, reading = self._bars[key], self.reading
        reading.records = sum(len(bar.points) for bar in bars)
        steps, seconds = (sum(values) for values in zip(*(bar.span for bar in bars), strict=True))
        reading.counters["moved"] = steps
        (alone, elapsed), rate = bars[-1].last, self._rates.get(key, 0.0)
        if seconds < _SURE_SECONDS and alone > 1 and rate and abs(elapsed / alone - rate) <= _SMOOTHED * rate:
            # What elapsed is that of all its steps, unless the run was resumed: then its rate is another.
            steps, seconds = alone, elapsed
        # The first step alone compiles.
        if seconds <= 0 or not steps or bars[-1].last[0] < 2:
            return None
        reading.counters["steps"] = steps
        if key[1]:
            reading.counters["planned_steps"] = key[1]
        intervals = [
            (after[0] - before[0], after[1] - before[1])
            for bar in bars
            for before, after in zip(bar.points, bar.points[1:], strict=False)
        ]
        if len(intervals) < 3:
            intervals = [(steps, seconds)]
        means = [round(time / count, 6) for count, time in intervals]
        reading.means = IntervalMeans(means, [count for count, _ in intervals], TIMER)
        return reading


READERS = (ProgressBars,)
