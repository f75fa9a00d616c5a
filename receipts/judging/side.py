"""A side of a comparison: launches of one configuration, run and measured in one manner, each there and judged once.

Launches that cannot be one side are an error. What they leave open is unknown, like what the two sides leave open.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Final, Literal, NamedTuple

from receipts.axes import Change, Difference, Member, Unknown, difference_under
from receipts.axes.effective import decided
from receipts.axes.lane import Lane
from receipts.base.errors import UsageError
from receipts.judging.effect import OF_DAYS, sessions_of
from receipts.judging.facts import Facts
from receipts.judging.findings import proved
from receipts.judging.grade import sample_grade
from receipts.judging.judge import judge_case
from receipts.judging.rule import Case
from receipts.judging.rulebook import Rulebook, RuleSet
from receipts.judging.verdict import ANOTHER_SESSION, Finding, Level, Lost
from receipts.judging.witness import as_requested
from receipts.metrics import Launch, Metric
from receipts.receipt import Parsed

STEPS_ARE_NO_LAUNCHES = (
    "the steps of one launch are not independent repeats, however many they are: name different launches"
)
# What the rules on a pair read of the first launch of a side, for all of them, beside its axes.
_OF_THE_FIRST = ("run.witness_for", "measurement.tokens_per_step", "data.kind", "data.dataset_digest")


def gaps_in_configuration(group: Sequence[Case], side: Literal["a", "b"], lane: Lane) -> Iterator[Unknown]:
    """Axes that the launches of a side leave open, so that some may be of another configuration.

    What only a witness of one of them tells apart is open too: it says nothing of the launches that have none. Raises
    UsageError where two launches differ in an axis.
    """
    head = group[0]
    # Launches that decided the same differ from the first in the same: of five alike, one is compared.
    compared: list[tuple[object, Difference, list[Unknown]]] = []
    for other in group[1:]:
        key = (other.receipt.run.context, decided(other.launch.parsed))
        apart, gaps = next(((known, left) for seen, known, left in compared if seen == key), (None, None))
        if apart is None or gaps is None:
            apart = head.launch.difference(other.launch, lane)
            gaps = _gaps(apart, side)
            compared.append((key, apart, gaps))
        if apart.changed:
            raise _mixed(side, head.parsed, other.parsed, apart)
        if head.borrowed.by or other.borrowed.by:
            gaps = _gaps(difference_under(lane, head.parsed, other.parsed), side)
        yield from gaps


def _gaps(apart: Difference, side: Literal["a", "b"]) -> list[Unknown]:
    items: tuple[Unknown | Change, ...] = (*apart.unknown, *apart.changed)
    return [Unknown(gap.axis, tuple(Member(item.path, None, None) for item in gap.members), side) for gap in items]


def _mixed(side: str, head: Parsed, other: Parsed, apart: Difference) -> UsageError:
    return UsageError(
        f"side {side.upper()} mixes configurations: {head.name} and {other.name} differ in "
        f"{', '.join(apart.axes)}; a side holds launches of one configuration. Name a group as one word: "
        "'a-*.json' 'b-*.json' in quotes, or 'label=a*' 'label=b*'"
    )


def differences_in_manner(group: Sequence[Parsed], side: Literal["a", "b"], metric: Metric) -> Iterator[Unknown]:
    """What the launches of a side do not share with its first, which represents them all where rules read it.

    Raises UsageError if they are of different kinds.
    """
    head = group[0]
    for other in group[1:]:
        if other.receipt.run.kind != head.receipt.run.kind:
            raise UsageError(
                f"side {side.upper()} mixes kinds: {head.name} is {head.receipt.run.kind}, {other.name} is "
                f"{other.receipt.run.kind}; a side holds launches of one kind"
            )
        basis = tuple(f"measurement.stated.{name}" for name in metric.basis)
        for path in (*_OF_THE_FIRST, *metric.regimes, *basis):
            if head.stated.get(path) != other.stated.get(path):
                yield Unknown(path, (Member(path, None, None),), side)


def with_gaps(diff: Difference, gaps: Sequence[Unknown]) -> Difference:
    """The difference, with what the launches of a side leave open among what is unknown."""
    known = {*diff.axes, *(gap.axis for gap in diff.unknown)}
    more = {gap.axis: gap for gap in gaps if gap.axis not in known}
    return replace(diff, unknown=(*diff.unknown, *more.values())) if more else diff


def check_distinct(a: Sequence[Launch], b: Sequence[Launch]) -> None:
    """Raises UsageError for a launch that is named twice, or that is the copy of another one of its side."""
    launches = [item.parsed.receipt.run.launch for item in (*a, *b)]
    twice = {name for name in launches if launches.count(name) > 1}
    if twice:
        raise UsageError(f"launch {sorted(twice)[0]} is named more than once; {STEPS_ARE_NO_LAUNCHES}")
    for side in (a, b):
        first: dict[tuple[float, ...], Parsed] = {}
        for parsed, steps in ((launch.parsed, steps) for launch in side for steps in launch.distinct_steps):
            other = first.setdefault(steps, parsed)
            if other is not parsed:
                raise UsageError(
                    f"{other.name} and {parsed.name} have the same step times to the last digit, whatever their "
                    f"order, so they are one launch recorded twice; {STEPS_ARE_NO_LAUNCHES}"
                )


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
        return merged_findings(item.findings for item in self.judged)

    def proved(self, rules: RuleSet) -> JudgedSide:
        """The side, its errors with their proofs."""
        judged = (item._replace(findings=proved(item.case, item.findings, rules)) for item in self.judged)
        return replace(self, judged=tuple(judged))

    def samples(self, metric: Metric | None, rules: RuleSet, named: Collection[str] = ()) -> JudgedSide:
        """The side with the launches that count: the best by `receipts.judging.grade`, and those named by id.

        Without a sample it keeps the launches that show most of what is wrong. Raises UsageError if a launch that is
        left out was requested in another configuration than one that is kept.
        """
        if len(self.judged) <= 1 or all(item.submitted.id in named for item in self.judged):
            return self
        sparing = rules.sparing(metric.name) if metric is not None else ()
        grades = [sample_grade(item.case.launch, item.findings, metric, sparing) for item in self.judged]
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
        # Launches of one side were asked for one configuration, whatever path they took.
        lane, head, requested = self.judged[0].case.lane, kept[0].submitted, as_requested(kept[0].submitted)
        for other in rest:
            apart = difference_under(lane, requested, as_requested(other))
            if apart.changed:
                raise _mixed(self.letter, head, other, apart)
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
    sides: list[JudgedSide] = []
    for side, numbers in ((a, of_a), (b, of_b)):
        kept: list[JudgedCase] = []
        lost = list(side.lost)
        for item, own in zip(side.judged, numbers, strict=True):
            if own in shared or any(finding.level is Level.ERROR for finding in item.findings):
                kept.append(item)
            else:
                lost.append(Lost(side.letter, item.submitted.id, (ANOTHER_SESSION,)))
        sides.append(replace(side, judged=tuple(kept), lost=tuple(lost)))
    return sides[0], sides[1]


def judge_side(
    group: Sequence[Parsed], letter: SideLetter, rulebook: Rulebook, known: JudgedLaunches, lost: tuple[Lost, ...] = ()
) -> JudgedSide:
    """A side of these launches, under the rules and facts in force; nothing that is known is computed again."""
    judged: list[JudgedCase] = []
    for parsed in group:
        lane = rulebook.lanes.of(parsed.receipt.run.lane)
        case = Case(known.launches.get(parsed.id) or Launch(parsed, lane), lane, known.facts)
        findings = known.findings.get(parsed.id)
        if findings is None:
            findings = judge_case(case, rulebook.rules)
        judged.append(JudgedCase(case, tuple(replace(item, subject=letter) for item in findings)))
    return JudgedSide(letter, tuple(judged), lost)


def merged_findings(findings: Iterable[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Findings on the launches of a group, each offense once."""
    first: dict[tuple[str, str, str], Finding] = {}
    for of_launch in findings:
        for item in of_launch:
            first.setdefault((item.code, item.at, item.found), item)
    return tuple(first.values())


FIRST: Final = "measurement.gradient_norm.first"
MIN_SHARE: Final = 0.9  # of the other side's: a shifted target, and sequences that end early
_OF_ONE_SEED, _OF_TWO = math.log(1.1), math.log(1.5)


def first_norms(group: Iterable[Parsed]) -> list[float]:
    """Logarithms of the first norms that launches state."""
    stated = [item.stated.get(FIRST) for item in group]
    return [math.log(norm) for norm in stated if norm and math.isfinite(norm) and norm > 0]


def parted(a: Sequence[float], b: Sequence[float], *, one_seed: bool) -> tuple[float, float] | None:
    """The mean norms of both sides, where they are not those of one model, its data and one loss."""
    if not a or not b or abs(fmean(a) - fmean(b)) <= (_OF_ONE_SEED if one_seed else _OF_TWO):
        return None
    return math.exp(fmean(a)), math.exp(fmean(b))


def rows_of_loss(group: Iterable[Parsed]) -> float | None:
    """The mean share of a step's tokens whose loss the launches' traces show; None if no trace shows both."""
    shown = [row.observed or {} for item in group for row in item.receipt.evidence or ()]
    pairs = [(row.get("work.loss_rows"), row.get("work.tokens")) for row in shown]
    shares = [rows / tokens for rows, tokens in pairs if type(rows) is int and type(tokens) is int and tokens]
    return fmean(shares) if shares else None


def fewer_rows(a: float | None, b: float | None) -> tuple[float, float] | None:
    """The shares, where one side's loss leaves out tokens that the other's has; two losses of a token are no more."""
    if a is None or b is None or min(a, b) >= MIN_SHARE * min(1.0, max(a, b)):
        return None
    return a, b
