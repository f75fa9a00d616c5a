"""The weekly report's section: the waterfall of each accepted comparison whose launches were traced."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from receipts.plugins.why.picture import Waterfall, amount, picture, waterfall
from receipts.plugins.why.sections import has_traces
from receipts.publish.page import Figure, Section, table_of
from receipts.publish.text import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from receipts.questions.week.collect import WeekData
    from receipts.questions.week.data import LaneWeek
    from receipts.questions.week.reader import ReportReader

MAX_PICTURES: Final = 6
say = words("why")


def gathered(reader: ReportReader, lanes: Sequence[LaneWeek]) -> list[Waterfall]:
    """The waterfalls of a week's accepted comparisons, in the order of the report; none of a table that is refused."""
    return list(islice(_waterfalls(reader, lanes), MAX_PICTURES))


def _waterfalls(reader: ReportReader, lanes: Sequence[LaneWeek]) -> Iterator[Waterfall]:
    from receipts.plugins.why.explanation import METRIC, explain

    for pair in (pair for lane in lanes for pair in lane.accepted):
        a, b = ([reader.item(reader.entry(ref.id)).parsed for ref in side] for side in (pair.a, pair.b))
        if all(any(map(has_traces, side)) for side in (a, b)):
            verdict = reader.comparisons.compare(a, b, METRIC)
            drawn = waterfall(explain(verdict, (a, b), reader.store))
            if drawn is not None:
                yield drawn


def section(data: WeekData) -> Section | None:
    """The pictures; None in a week without traces."""
    drawn: list[Waterfall] = data.added[__name__]
    figures = tuple(_figure(f"why-{number}", item) for number, item in enumerate(drawn, 1))
    return Section("why", say("section"), (say("picture"),), figures=figures) if figures else None


def _figure(place: str, drawn: Waterfall) -> Figure:
    rows = [(what, amount(what, start, stop)) for what, start, stop, _ in drawn.bars]
    table = table_of(f"{drawn.a} → {drawn.b}", "part of a step | #time", rows)
    return Figure(place, (f"{drawn.a} → {drawn.b}",), lambda name: picture(drawn, name), table)
