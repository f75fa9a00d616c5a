"""What went wrong in an interval: failed launches, and runs that left their path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from receipts.judging.rulebook import RuleSet
from receipts.judging.topic import Topic
from receipts.judging.verdict import Finding, Level, Question
from receipts.publish.report.data import Failed, Incident, Ref
from receipts.publish.report.shelf import FAILED, Item, Shelf, ref_of

MOST_EARLIER = 3
MOST_NAMED = 6


def failures(shelf: Shelf, items: Iterable[Item], most: int) -> tuple[list[Failed], int]:
    """Launches that failed, by lane and shape, so many, each with earlier ones of its signature; and how many are left.

    What is listed is read; the others are counted by their rows.
    """
    shape = ("sequence_length", "micro_batch", "depth")
    found = sorted(
        (item for item in items if item.entry.outcome in FAILED),
        key=lambda item: (
            item.entry.lane,
            FAILED.index(item.entry.outcome),
            *(getattr(item.entry, name) or 0 for name in shape),
        ),
    )
    return [_failed(shelf, item) for item in found[:most]], max(0, len(found) - most)


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
        earlier=tuple(map(ref_of, shelf.failed_before(row, MOST_EARLIER))),
    )


def incidents(items: Iterable[Item]) -> list[Incident]:
    """Incidents on the path, launches with one and the same finding together, errors first."""
    found: dict[tuple[str, ...], tuple[Finding, list[Ref]]] = {}
    for item in items:
        for finding in item.verdict.findings:
            if _is_incident(finding, item.shelf.rulebook.rules):
                key = (finding.code, finding.level.value, finding.at, finding.found, finding.expected)
                found.setdefault(key, (finding, []))[1].append(item.ref)
    order = {Level.ERROR: 0, Level.OPEN: 1, Level.SHOWN: 2}
    made = sorted(found.items(), key=lambda entry: (order[entry[1][0].level], entry[0]))
    return [_incident(finding, refs) for _, (finding, refs) in made]


def _is_incident(finding: Finding, rules: RuleSet) -> bool:
    """Whether a finding, such as every error on the path, changes which system a number belongs to."""
    if finding.unjudged:
        return False
    named = finding.code in rules.about(Topic.INCIDENT)
    if finding.question is Question.PATH:
        # On the path an open question is a fact that nobody stated, and no incident.
        return finding.level is Level.ERROR or (finding.level is Level.SHOWN and named and not _is_unstated(finding))
    return named


def _is_unstated(finding: Finding) -> bool:
    """Whether no version of a lineage is stated at all: what nobody knows has not drifted."""
    return all(part.endswith(" not stated") for part in finding.found.split("; "))


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
