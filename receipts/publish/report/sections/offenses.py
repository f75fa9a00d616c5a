"""What launches offend, by rule: what makes them invalid, and how they left their path, drifted or never settled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from receipts.judging.rule import Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Finding, Level, Question
from receipts.publish.report.cut import Cut, cut
from receipts.publish.report.reader import Item
from receipts.publish.report.ref import Ref
from receipts.publish.report.sections.cost import Cost, cost

MOST_NAMED = 6
MOST_SEEN = 4
_ORDER = {Level.ERROR: 0, Level.OPEN: 1, Level.SHOWN: 2}


@dataclass(frozen=True, slots=True)
class OffenseSeen:
    """What a rule found at a place, of so many launches."""

    at: str
    found: str
    expected: str
    launches: int


@dataclass(frozen=True, slots=True)
class RuleOffenses:
    """A rule with the launches that offend it: each counts once, whatever was found of it.

    `level` is the heaviest, and `do` its remedy; an `incident` changes which system a number belongs to.
    """

    code: str
    name: str
    level: str
    incident: bool
    do: str
    launches: int
    seen: Cut[OffenseSeen]
    receipts: Cut[Ref]
    cost: Cost


def offenses(items: Iterable[Item]) -> tuple[RuleOffenses, ...]:
    """Offenses of these launches: incidents first, errors before what is shown, then by launches."""
    groups: dict[tuple[bool, str, str], list[tuple[Finding, Item]]] = defaultdict(list)
    for item in items:
        for finding in item.verdict.findings:
            incident = _is_incident(finding, item.reader.rulebook.rules)
            if incident or finding.level is Level.ERROR:
                groups[incident, finding.code, finding.name].append((finding, item))
    by_rule = (_offenses(group, incident=incident) for (incident, *_), group in groups.items())
    return tuple(
        sorted(by_rule, key=lambda item: (not item.incident, _ORDER[Level(item.level)], -item.launches, item.code))
    )


def _is_incident(finding: Finding, rules: RuleSet) -> bool:
    """Whether a finding, such as every error on the path, changes which system a number belongs to."""
    if finding.unjudged:
        return False
    listed = finding.code in rules.about(Topic.INCIDENT)
    if finding.question is Question.PATH:
        # On the path an open question is a fact that nobody stated, and no incident.
        return finding.level is Level.ERROR or (finding.level is Level.SHOWN and listed and not _is_unstated(finding))
    return listed


def _is_unstated(finding: Finding) -> bool:
    """Whether no version of a lineage is stated at all: what nobody knows has not drifted."""
    return all(part.endswith(" not stated") for part in finding.found.split("; "))


def _offenses(group: Sequence[tuple[Finding, Item]], *, incident: bool) -> RuleOffenses:
    heaviest = min((finding for finding, _ in group), key=lambda item: _ORDER[item.level])
    launches = {item.entry.id: item for _, item in group}
    # Of the same finding at the same place a launch counts once.
    places = {(finding.at, finding.found, finding.expected, item.entry.id): None for finding, item in group}
    seen = Counter(place[:3] for place in places)
    ordered = sorted(seen.items(), key=lambda one: (-one[1], one[0]))
    refs = [item.ref for item in launches.values()]
    return RuleOffenses(
        code=heaviest.code,
        name=heaviest.name,
        level=heaviest.level.value,
        incident=incident,
        do=heaviest.do,
        launches=len(refs),
        seen=cut((OffenseSeen(*place, many) for place, many in ordered), MOST_SEEN),
        receipts=cut(refs, MOST_NAMED),
        cost=cost(item.entry for item in launches.values()),
    )
