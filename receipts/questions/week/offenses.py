"""What launches of a week offend, by rule, failures that were known before, and what they cost.

An offense makes a launch invalid, or says that it left its path, drifted or never settled. A failure was known where
its signature had failed before. A cost is the time that launches ran, and the same by the chips that they held.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.judging.rule import Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Finding, Level, Question
from receipts.questions.week.reader import Item
from receipts.questions.week.ref import Cut, Ref, cut, ref_of

if TYPE_CHECKING:
    from receipts.store import Entry, Store


_UNITS = ((3600, "hours"), (60, "minutes"), (1, "seconds"))


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds from start to end of `timed` launches, and chip seconds; `untimed` launches do not say when they ended.

    `chip_seconds` leaves out launches that do not state their chips.
    """

    seconds: float
    chip_seconds: float
    timed: int
    untimed: int


def cost(rows: Iterable[Entry]) -> Cost:
    """What these launches cost together."""
    launches = list(rows)
    times = [
        ((row.finished - row.started).total_seconds(), row.chips or 0) for row in launches if row.finished is not None
    ]
    return Cost(
        seconds=sum(seconds for seconds, _ in times),
        chip_seconds=sum(seconds * chips for seconds, chips in times),
        timed=len(times),
        untimed=len(launches) - len(times),
    )


def spent(total: Cost) -> str:
    """A cost in words; `~` where no launch says how long it ran."""
    if not total.timed:
        return "~"
    spent_on, of = (total.chip_seconds, "chip ") if total.chip_seconds else (total.seconds, "")
    size, unit = next(pair for pair in _UNITS if spent_on >= pair[0] or pair[0] == 1)
    amount = f"{spent_on / size:,.1f} {of}{unit}"
    return f"{amount} ({total.untimed} not stated)" if total.untimed else amount


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


MAX_REPEATS = 20
MAX_NAMED_LAUNCHES = 6


@dataclass(frozen=True, slots=True)
class RepeatedFailure:
    """A signature that failed in the week and had failed before: `again` are the launches of the week that knew.

    `first` failed first, `times` is how often it failed until the end of the week. The cost is that of `again`:
    `compile_seconds` where the launches compiled and say so, else `failed_seconds` from start to end, and `uncosted`
    launches state neither.
    """

    signature: str
    lane: str
    kind: str
    first: Ref
    first_at: datetime
    times: int
    again: Cut[Ref]
    compile_seconds: float
    compiled: int
    failed_seconds: float
    timed: int
    uncosted: int

    @property
    def seconds(self) -> float | None:
        """What the repeats took together; None where none of them says."""
        return self.compile_seconds + self.failed_seconds if self.compiled or self.timed else None

    @property
    def spent(self) -> float:
        """The same, 0 where none of them says."""
        return self.seconds or 0.0


def repeats(store: Store, failed: Iterable[Entry], until: datetime) -> Cut[RepeatedFailure]:
    """Failures that were known before some launches started, by signature, the most expensive first."""
    week = {row.id for row in failed}
    groups: dict[str, list[Entry]] = defaultdict(list)
    for signature, item in store.query.failed_alike(sorted(week)):
        if item.started < until:
            groups[signature].append(item)
    repeated = (_repeated(signature, members, week) for signature, members in groups.items())
    rows = [item for item in repeated if item is not None]
    rows.sort(key=lambda item: (-(item.seconds or 0.0), item.lane, item.signature))
    return cut(rows, MAX_REPEATS)


def _repeated(signature: str, members: Sequence[Entry], week: set[str]) -> RepeatedFailure | None:
    first, *later = members
    again = [item for item in later if item.id in week and item.started > first.started]
    if not again:
        return None
    compiled = [item.compile_seconds for item in again if item.compile_seconds]
    timed = [
        (item.finished - item.started).total_seconds()
        for item in again
        if not item.compile_seconds and item.finished is not None
    ]
    last = again[-1]
    kind = last.failure_type.replace("_", " ")
    return RepeatedFailure(
        signature=signature,
        lane=last.lane,
        kind=f"{kind} in {last.failure_phase.replace('_', ' ')}" if last.failure_phase else kind,
        first=ref_of(first),
        first_at=first.started,
        times=len(members),
        again=cut(map(ref_of, again), MAX_NAMED_LAUNCHES),
        compile_seconds=sum(compiled),
        compiled=len(compiled),
        failed_seconds=sum(timed),
        timed=len(timed),
        uncosted=len(again) - len(compiled) - len(timed),
    )
