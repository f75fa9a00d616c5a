"""The weekly report's section: the waterfall of each accepted comparison whose launches were traced.

`report.json` has what is gathered under the name of this module, so that it may not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from receipts.plugins.why.sections import has_traces
from receipts.publish.page import Figure, Section, table_of
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.plugins.why.page import Waterfall
    from receipts.questions.week.collect import WeekData
    from receipts.questions.week.data import LaneWeek
    from receipts.questions.week.reader import ReportReader


MAX_PICTURES: Final = 6
say = words("why")


def gathered(reader: ReportReader, lanes: Sequence[LaneWeek]) -> list[Waterfall]:
    """The waterfalls of a week's accepted comparisons, in the order of the report; none of a table that is refused."""
    from receipts.plugins.why.explanation import METRIC, explain
    from receipts.plugins.why.page import waterfall

    drawn: list[Waterfall] = []
    for pair in (pair for lane in lanes for pair in lane.accepted):
        if len(drawn) == MAX_PICTURES:
            break
        a, b = ([reader.item(reader.entry(ref.id)).parsed for ref in side] for side in (pair.a, pair.b))
        if all(any(map(has_traces, side)) for side in (a, b)):
            verdict = reader.comparisons.compare(a, b, METRIC)
            if (one := waterfall(explain(verdict, (a, b), reader.store))) is not None:
                drawn.append(one)
    return drawn


def section(data: WeekData) -> Section | None:
    """The pictures; None in a week without traces."""
    from receipts.plugins.why.page import amount, picture

    drawn: list[Waterfall] = data.added[__name__]
    figures = []
    for number, item in enumerate(drawn, 1):
        rows = [(what, amount(what, start, stop)) for what, start, stop, _ in item.bars]
        table = table_of(f"{item.a} → {item.b}", "part of a step | #time", rows)
        figures.append(Figure(f"why-{number}", (f"{item.a} → {item.b}",), partial(picture, item), table))
    return Section("why", say("section"), (say("picture"),), figures=tuple(figures)) if figures else None
