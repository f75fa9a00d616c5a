"""A side of a comparison: launches of one configuration, each judged once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from receipts.judging.effect import OF_DAYS, sessions_of
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_case
from receipts.judging.proof import proved
from receipts.judging.rule import Case
from receipts.judging.rulebook import Rulebook, RuleSet
from receipts.judging.sample import grade
from receipts.judging.side_checks import check_one_request
from receipts.judging.verdict import ANOTHER_SESSION, Finding, Level, Lost
from receipts.metrics import Launch, Metric
from receipts.receipt import Parsed

SideLetter = Literal["a", "b"]


@dataclass(frozen=True)
class JudgedLaunches:
    """Facts about some launches, and by receipt id what was computed of each under those facts.

    A launch that the mappings lack is computed when a side is made of it.
    """

    facts: Facts | None = None
    findings: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    launches: Mapping[str, Launch] = field(default_factory=dict)


class JudgedCase(NamedTuple):
    """A launch as rules see it, and their findings on it."""

    case: Case
    findings: tuple[Finding, ...]

    @property
    def submitted(self) -> Parsed:
        """The receipt itself, without what its witnesses lend."""
        return self.case.launch.parsed


@dataclass(frozen=True)
class JudgedSide:
    """One side: the launches that count, and those left out as no samples of the metric."""

    letter: SideLetter
    judged: tuple[JudgedCase, ...]
    lost: tuple[Lost, ...] = ()

    @property
    def cases(self) -> tuple[Case, ...]:
        """The launches that count, as rules see them."""
        return tuple(item.case for item in self.judged)

    @property
    def receipts(self) -> tuple[Parsed, ...]:
        """Receipts of the launches that count."""
        return tuple(item.submitted for item in self.judged)

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches that count, under their lanes."""
        return tuple(item.case.launch for item in self.judged)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings on its launches, each offense once."""
        return merged(item.findings for item in self.judged)

    def proved(self, rules: RuleSet) -> JudgedSide:
        """The side, its errors with their proofs."""
        judged = (item._replace(findings=proved(item.case, item.findings, rules)) for item in self.judged)
        return replace(self, judged=tuple(judged))

    def samples(self, metric: Metric | None, rules: RuleSet, named: Collection[str] = ()) -> JudgedSide:
        """The side with the launches that count: the best by `receipts.judging.sample`, and those named by id.

        Without a sample it keeps the launches that show most of what is wrong. Raises UsageError if a launch that is
        left out was requested in another configuration than one that is kept.
        """
        if len(self.judged) <= 1 or all(item.submitted.id in named for item in self.judged):
            return self
        sparing = rules.sparing(metric.name) if metric is not None else ()
        grades = [grade(item.case.launch, item.findings, metric, sparing) for item in self.judged]
        best = min(item.rank for item in grades)
        kept: list[JudgedCase] = []
        rest: list[Parsed] = []
        lost: list[Lost] = []
        for item, its_grade in zip(self.judged, grades, strict=True):
            if its_grade.rank == best or item.submitted.id in named:
                kept.append(item)
            else:
                rest.append(item.submitted)
                lost.append(Lost(self.letter, item.submitted.id, its_grade.why))
        check_one_request([kept[0].submitted, *rest], self.letter, self.judged[0].case.lane)
        return replace(self, judged=tuple(kept), lost=(*self.lost, *lost))


def in_common_sessions(a: JudgedSide, b: JudgedSide, metric: Metric) -> tuple[JudgedSide, JudgedSide]:
    """Both sides without the launches of sessions that have one side alone, where they share a session at all.

    A launch that rejects stays: it was named, whenever it ran.
    """
    if metric.summary not in OF_DAYS:
        return a, b
    of_a, of_b = sessions_of(a.launches, b.launches)
    shared = set(of_a) & set(of_b)
    if not shared or shared == {*of_a, *of_b}:
        return a, b
    one, other = (
        replace(
            side,
            judged=tuple(item for item, own in zip(side.judged, numbers, strict=True) if own in shared or _errs(item)),
            lost=(
                *side.lost,
                *(
                    Lost(side.letter, item.submitted.id, (ANOTHER_SESSION,))
                    for item, own in zip(side.judged, numbers, strict=True)
                    if own not in shared and not _errs(item)
                ),
            ),
        )
        for side, numbers in ((a, of_a), (b, of_b))
    )
    return one, other


def _errs(item: JudgedCase) -> bool:
    return any(finding.level is Level.ERROR for finding in item.findings)


def judge_side(
    group: Sequence[Parsed], letter: SideLetter, rulebook: Rulebook, known: JudgedLaunches, lost: tuple[Lost, ...] = ()
) -> JudgedSide:
    """A side of these launches, under the rules and facts in force; nothing that is known is computed again."""
    return JudgedSide(letter, tuple(_judged(item, letter, rulebook, known) for item in group), lost)


def _judged(parsed: Parsed, letter: SideLetter, rulebook: Rulebook, known: JudgedLaunches) -> JudgedCase:
    lane = rulebook.lanes.of(parsed.receipt.run.lane)
    case = Case(known.launches.get(parsed.id) or Launch(parsed, lane), lane, known.facts)
    findings = known.findings.get(parsed.id)
    if findings is None:
        findings = judge_case(case, rulebook.rules)
    return JudgedCase(case, tuple(replace(item, subject=letter) for item in findings))


def merged(findings: Iterable[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Findings on the launches of a group, each offense once."""
    first: dict[tuple[str, str, str], Finding] = {}
    for of_launch in findings:
        for item in of_launch:
            first.setdefault((item.code, item.at, item.found), item)
    return tuple(first.values())
