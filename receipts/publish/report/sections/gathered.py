"""What a report gathers beside its lanes: its sections, and what its pictures are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from receipts.publish.report.cut import Cut
from receipts.publish.report.pictures.chips import Chips, chips
from receipts.publish.report.pictures.over_weeks import ShapeCourse, courses
from receipts.publish.report.pictures.step_times import ComparedSteps, compared
from receipts.publish.report.reader import FAILED
from receipts.publish.report.sections.ceilings import MOST, Ceilings, ceilings
from receipts.publish.report.sections.claims import Claims, claims, judge_all
from receipts.publish.report.sections.decisions import DecisionRow, decisions
from receipts.publish.report.sections.failures import Failures, failures
from receipts.publish.report.sections.fallen import Fallen, fallen
from receipts.publish.report.sections.offenses import RuleOffenses, offenses
from receipts.publish.report.sections.regressions import regressions
from receipts.publish.report.sections.repeats import RepeatedFailure, repeats
from receipts.publish.report.sections.retest import Retests
from receipts.publish.report.sections.survival import Survival, survival
from receipts.publish.report.week import Week

if TYPE_CHECKING:
    from receipts.publish.report.data import LaneWeek
    from receipts.publish.report.reader import Item, ReportReader
    from receipts.publish.report.sections.memory import Headroom
    from receipts.store.decisions import Incident


@dataclass(frozen=True, slots=True)
class Gathered:
    """Sections by what they tell. `ceilings` are those of each lane."""

    survival: Survival
    decisions: Cut[DecisionRow]
    claims: Claims
    regressions: tuple[Incident, ...]
    offenses: tuple[RuleOffenses, ...]
    failures: Failures
    repeats: Cut[RepeatedFailure]
    fallen: Cut[Fallen]
    ceilings: Mapping[str, Ceilings]


def gather(
    reader: ReportReader,
    span: tuple[datetime, datetime],
    only: Sequence[str],
    lanes: Sequence[LaneWeek],
    items: Sequence[Item],
) -> Gathered:
    """The sections of a stretch, from its start to its end, the latter left out.

    ``items`` are receipts of the stretch, judged.
    """
    store, rulebook = reader.store, reader.rulebook
    since, until = span
    events = store.published.events_between(since, until)
    judged = judge_all(store, rulebook, events, until, only)
    return Gathered(
        survival=survival(reader, lanes, judged, Retests(reader, until)),
        decisions=decisions(store, events.decisions, only),
        claims=claims(judged),
        regressions=regressions(store, until, only),
        offenses=offenses(items),
        failures=failures(items),
        repeats=repeats(store, (item.entry for item in items if item.entry.outcome in FAILED), until),
        fallen=fallen(store, events, only),
        ceilings={lane.name: ceilings(store, lane.name, until=until, most=MOST) for lane in lanes},
    )


@dataclass(frozen=True, slots=True)
class LanePictures:
    """What is drawn of one lane beside its tables, up to a week (``2026-W47``)."""

    week: str
    courses: tuple[ShapeCourse, ...]
    compared: tuple[ComparedSteps, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn of a report: by lane, and the chips of its tightest launches."""

    lanes: Mapping[str, LanePictures]
    chips: tuple[Chips, ...]


def drawn(reader: ReportReader, lanes: Sequence[LaneWeek], headroom: Iterable[Headroom], end: datetime) -> Drawn:
    """Gather it for an interval that ends at a moment, the latter left out."""
    return Drawn(
        lanes={
            lane.name: LanePictures(
                week=str(Week.of(end - timedelta(microseconds=1))),
                courses=courses(reader, lane.name, lane.frontier, end),
                compared=compared(reader, (*lane.accepted, *lane.inconclusive)),
            )
            for lane in lanes
        },
        chips=chips(reader, headroom),
    )
