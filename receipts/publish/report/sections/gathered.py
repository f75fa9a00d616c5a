"""The sections of a report that stand on what people decided and published, and on what came back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.publish.report.sections.ceilings import Ceilings, ceilings
from receipts.publish.report.sections.claims import Claims, claims, judge_all
from receipts.publish.report.sections.decisions import Decisions, decisions
from receipts.publish.report.sections.intake import Intake, intake
from receipts.publish.report.sections.repeats import Repeats, repeats
from receipts.publish.report.sections.retest import Retests
from receipts.publish.report.sections.rules import Cited
from receipts.publish.report.sections.survival import Survival, survival

if TYPE_CHECKING:
    from receipts.publish.report.data import LaneWeek
    from receipts.publish.report.ref import Ref
    from receipts.publish.report.shelf import Item, Shelf
    from receipts.store import Entry


@dataclass(frozen=True, slots=True)
class Gathered:
    """Sections by what they tell. `ceilings` are those of each lane; `rules` are those that the page cites."""

    survival: Survival
    decisions: Decisions
    claims: Claims
    repeats: Repeats
    intake: Intake
    ceilings: Mapping[str, Ceilings]
    rules: tuple[Cited, ...]

    def refs(self) -> Iterator[Ref]:
        """Every receipt that they name."""
        yield from self.survival.refs()
        yield from self.decisions.refs()
        yield from self.claims.refs()
        yield from self.repeats.refs()
        yield from self.intake.refs()
        for reached in self.ceilings.values():
            yield from reached.refs()


def gather(
    shelf: Shelf,
    span: tuple[datetime, datetime],
    only: Sequence[str],
    lanes: Sequence[LaneWeek],
    items: Iterable[Item],
    failed: Iterable[Entry],
) -> Gathered:
    """The sections of a stretch, from its start to its end, the latter left out.

    ``items`` and ``failed`` are receipts of the stretch, judged, and those of them that failed.
    """
    store, rulebook = shelf.store, shelf.rulebook
    since, until = span
    said = store.published.chronicle(since, until)
    judged = judge_all(store, rulebook, said, until, only)
    return Gathered(
        survival=survival(shelf, lanes, judged, Retests(shelf, until)),
        decisions=decisions(store, said.decisions, only),
        claims=claims(judged),
        repeats=repeats(store, failed, until),
        intake=intake(store, items, said, only),
        ceilings={lane.name: ceilings(store, lane.name, until) for lane in lanes},
        rules=(),
    )
