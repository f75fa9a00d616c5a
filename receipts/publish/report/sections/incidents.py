"""Launches that left their path, drifted from their lineage, recompiled or never settled: by rule, with their cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from receipts.judging.rulebook import RuleSet
from receipts.judging.topic import Topic
from receipts.judging.verdict import Finding, Level, Question
from receipts.publish.page import Cell, Code, Section, table_of
from receipts.publish.report.page import joined, links, listed, more, rule
from receipts.publish.report.reader import Item
from receipts.publish.report.ref import Ref
from receipts.publish.report.sections.cost import Cost, cost, spent
from receipts.publish.text import NOTE, plain

MOST = 40
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

    `level` is the heaviest, and `do` its remedy; `seen_more` findings and `receipts_more` launches are left out.
    """

    code: str
    name: str
    level: str
    do: str
    launches: int
    seen: tuple[OffenseSeen, ...]
    seen_more: int
    receipts: tuple[Ref, ...]
    receipts_more: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class Incidents:
    """Incidents, errors first, then by launches. `more` rules were left out."""

    found: tuple[RuleOffenses, ...]
    more: int


def incidents(items: Iterable[Item]) -> Incidents:
    """Incidents on the path, by rule."""
    by_rule = offenses(items, lambda finding, item: _is_incident(finding, item.reader.rulebook.rules))
    return Incidents(tuple(by_rule[:MOST]), max(0, len(by_rule) - MOST))


def offenses(items: Iterable[Item], wanted: Callable[[Finding, Item], bool]) -> list[RuleOffenses]:
    """What launches offend, by rule: errors first, then by launches."""
    groups: dict[tuple[str, str], list[tuple[Finding, Item]]] = defaultdict(list)
    for item in items:
        for finding in item.verdict.findings:
            if wanted(finding, item):
                groups[finding.code, finding.name].append((finding, item))
    by_rule = [_offenses(group) for group in groups.values()]
    return sorted(by_rule, key=lambda item: (_ORDER[Level(item.level)], -item.launches, item.code))


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


def _offenses(group: Sequence[tuple[Finding, Item]]) -> RuleOffenses:
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
        do=heaviest.do,
        launches=len(refs),
        seen=tuple(OffenseSeen(*place, many) for place, many in ordered[:MOST_SEEN]),
        seen_more=max(0, len(ordered) - MOST_SEEN),
        receipts=tuple(refs[:MOST_NAMED]),
        receipts_more=max(0, len(refs) - MOST_NAMED),
        cost=cost(item.entry for item in launches.values()),
    )


def section(shown: Incidents) -> Section | str:
    """The incidents in words."""
    header = "#launches | rule | found | expected | what to do | #cost | receipts"
    caption = "Launches that left their path, drifted or never settled"
    table = table_of(caption, header, map(_cells, shown.found), more(shown.more, "rules"))
    return listed("incidents", "Path incidents", "path incidents", table)


def _cells(item: RuleOffenses) -> tuple[Cell, ...]:
    several = len(item.seen) > 1
    places: list[Cell] = [
        (Code(plain(one.at)), f" {plain(one.found, NOTE)}{f' ({one.launches:,} ×)' if several else ''}")
        for one in item.seen
    ]
    places += [(f"and {item.seen_more:,} more findings",)] if item.seen_more else []
    expected = dict.fromkeys(plain(one.expected, NOTE) for one in item.seen)
    return (
        (f"{item.launches:,} ×",),
        (rule(item.code, item.name),),
        joined(places, "; "),
        ("; ".join(list(expected)[:2]),),
        (plain(item.do, NOTE),),
        (spent(item.cost),),
        links(item.receipts, more=item.receipts_more),
    )
