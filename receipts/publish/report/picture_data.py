"""What the pictures of a report are drawn from, gathered from the store beside the values that the tables have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from receipts.publish.report.pictures.chips import Chips, chips
from receipts.publish.report.pictures.over_sequence import RepeatedResult, repeated
from receipts.publish.report.pictures.over_weeks import ShapeCourse, courses
from receipts.publish.report.pictures.step_times import ComparedSteps, compared
from receipts.publish.report.week import Week

if TYPE_CHECKING:
    from receipts.publish.report.data import LaneWeek
    from receipts.publish.report.reader import ReportReader
    from receipts.publish.report.replicates import Replicates
    from receipts.publish.report.sections.memory import Headroom


@dataclass(frozen=True, slots=True)
class LanePictures:
    """What is drawn of one lane beside its tables, up to a week (``2026-W47``)."""

    week: str
    repeated: tuple[RepeatedResult, ...]
    courses: tuple[ShapeCourse, ...]
    compared: tuple[ComparedSteps, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn of a report: by lane, and the chips of its tightest launches."""

    lanes: Mapping[str, LanePictures]
    chips: tuple[Chips, ...]


def drawn(
    reader: ReportReader, lanes: Sequence[LaneWeek], headroom: Sequence[Headroom], end: datetime, replicates: Replicates
) -> Drawn:
    """Gather it for an interval that ends at a moment, the latter left out."""
    return Drawn(
        lanes={
            lane.name: LanePictures(
                week=str(Week.of(end - timedelta(microseconds=1))),
                repeated=repeated(reader, (*lane.frontier, *lane.peaks), replicates),
                courses=courses(reader, lane.name, lane.frontier, end),
                compared=compared(reader, (*lane.accepted, *lane.inconclusive)),
            )
            for lane in lanes
        },
        chips=chips(reader, headroom),
    )
