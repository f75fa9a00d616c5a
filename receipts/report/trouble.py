"""What went wrong in a week: failed launches, memory that is nearly spent, and runs that left their path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from receipts.chips import account
from receipts.report.data import Failed, Headroom, Incident, Ref
from receipts.report.shelf import FAILED, Item, Shelf, ref_of
from receipts.verdict import Finding, Level, Question

# Beside every error on the path: what silently changes which system a number belongs to.
INCIDENTS = ("R202", "R203", "R303", "R305")
MOST_EARLIER = 3
MOST_NAMED = 6


def failures(shelf: Shelf, items: Iterable[Item]) -> list[Failed]:
    """Launches that failed, by lane and shape, each with earlier ones that failed at the same shape."""
    found = [_failed(shelf, item) for item in items if item.entry.outcome in FAILED]
    shape = ("sequence_length", "micro_batch", "depth")
    return sorted(
        found, key=lambda made: (made.lane, FAILED.index(made.outcome), *(getattr(made, name) or 0 for name in shape))
    )


def _failed(shelf: Shelf, item: Item) -> Failed:
    row, said = item.entry, item.parsed.receipt.failure
    return Failed(
        receipt=item.ref,
        lane=row.lane,
        outcome=row.outcome,
        phase=said.phase if said else None,
        failure_class=said.class_ if said else None,
        chip=said.chip if said else None,
        chips=row.chips,
        accelerator=row.accelerator,
        sequence_length=row.sequence_length,
        micro_batch=row.micro_batch,
        depth=row.depth,
        requested_bytes=said.requested_bytes if said else None,
        used_bytes=said.used_bytes if said else None,
        limit_bytes=said.limit_bytes if said else None,
        operator=said.operator if said else None,
        message=said.message if said else None,
        earlier=tuple(ref_of(other) for other in shelf.failed_before(row)[-MOST_EARLIER:]),
    )


def headroom(items: Iterable[Item]) -> list[Headroom]:
    """Launches that read their memory chip by chip, the tightest first; one figure for many chips tells of none."""
    found = [made for item in items if (made := _headroom(item)) is not None]
    return sorted(found, key=lambda made: (made.left is None, made.left or 0.0, made.receipt.id))


def _headroom(item: Item) -> Headroom | None:
    made = account(item.parsed)
    phase = made.worst("peak")
    ranking = phase.ranking("peak") if phase is not None else None
    if phase is None or ranking is None:
        return None
    # A chip with a low limit may be tighter than the one with the highest peak.
    tightest, moment = made.tightest, phase.moment
    apart = moment if moment is not None and not moment.together else None
    return Headroom(
        receipt=item.ref,
        lane=item.entry.lane,
        chips=len(made.peaks),
        chip=tightest.chip if tightest is not None else ranking.leaders[0],
        phase=tightest.phase if tightest is not None else phase.name,
        lowest_peak_bytes=min(made.peaks.values()),
        highest_peak_bytes=ranking.highest,
        leaders=ranking.leaders,
        skew=ranking.skew,
        first_chips=apart.chips if apart is not None else (),
        first_step=apart.step if apart is not None else None,
        last_step=moment.last_step if moment is not None else None,
        faulty=not all(one.whole for one in made.phases),
        limit_bytes=tightest.limit if tightest is not None else None,
        left=tightest.left if tightest is not None else None,
        wanted=item.lane.headroom,
    )


def incidents(items: Iterable[Item]) -> list[Incident]:
    """Incidents on the path, launches with one and the same finding together, errors first."""
    found: dict[tuple[str, ...], tuple[Finding, list[Ref]]] = {}
    for item in items:
        for finding in item.verdict.findings:
            if _is_incident(finding):
                key = (finding.code, finding.level.value, finding.at, finding.found, finding.expected)
                found.setdefault(key, (finding, []))[1].append(item.ref)
    order = {Level.ERROR: 0, Level.OPEN: 1, Level.SHOWN: 2}
    made = sorted(found.items(), key=lambda entry: (order[entry[1][0].level], entry[0]))
    return [_incident(finding, refs) for _, (finding, refs) in made]


def _is_incident(finding: Finding) -> bool:
    if finding.unjudged:
        return False
    if finding.question is Question.PATH:
        # On the path an open question is a fact that nobody stated, and no incident.
        return finding.level is Level.ERROR or (finding.level is Level.SHOWN and finding.code in INCIDENTS)
    return finding.code in INCIDENTS


def _incident(finding: Finding, refs: Sequence[Ref]) -> Incident:
    return Incident(
        code=finding.code,
        name=finding.name,
        level=finding.level.value,
        at=finding.at,
        found=finding.found,
        expected=finding.expected,
        do=finding.do,
        receipts=tuple(refs[:MOST_NAMED]),
        receipts_more=max(0, len(refs) - MOST_NAMED),
    )
