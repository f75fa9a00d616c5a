"""Compare two receipts, or two groups of launches: what changed, what is unknown, the findings and the effect.

Values in, a `Comparison` out: no store, no files. Callers fetch receipts and `Facts`. The stages: two sides (`side`),
their difference and the axes that count (all but those that are waived, indifferent to the metric, derived, or moved by
a study), the pair that rules judge (`rule`), the verdict, and on request its proofs (`proof`).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.axes import Difference, difference_under, same_context
from receipts.axes.catalogue import LENGTH, bookkeeping_reason
from receipts.axes.effective import leaves_of
from receipts.axes.lane import Lane, combined
from receipts.base.errors import UsageError
from receipts.judging.effect import alike, answering, effect_is_open, is_stated, metric_results, named_effect
from receipts.judging.facts import Facts
from receipts.judging.findings import proved_pair
from receipts.judging.grade import GRADES
from receipts.judging.judge import VERSION, judge_pair
from receipts.judging.rule import PairCase
from receipts.judging.rulebook import Rulebook
from receipts.judging.side import (
    JudgedLaunches,
    JudgedSide,
    check_distinct,
    differences_in_manner,
    gaps_in_configuration,
    judge_side,
    with_gaps,
)
from receipts.judging.verdict import (
    Comparison,
    LeftOut,
    Lost,
    PathAnswer,
    comparable_answer,
    decide,
    path_answer,
    standing_of,
)
from receipts.metrics import Metric
from receipts.receipt import Parsed, Role
from receipts.receipt.names import dtype_of

if TYPE_CHECKING:
    from receipts.judging.rulebook import Study


_OF_A_STEP = ("step", "rate", "memory", "compile")  # summaries that a longer run does not move


def check_waivers(waivers: Mapping[str, str], lane: Lane, diff: Difference, launches: Sequence[Parsed]) -> None:
    """Raises UsageError for a waiver without a reason, of an axis that the lane protects, or of one that is equal."""
    # A host that is not stated may be another host, and so may be waived as one that differs.
    unstated = (leaf.path for leaf in leaves_of(Role.BLOCK) if any(leaf.path not in item.stated for item in launches))
    places = (item.path for item in diff.blocks)
    named = {*diff.axes, *(item.axis for item in diff.unknown), *places, *unstated}
    for axis, reason in waivers.items():
        if not reason.strip():
            raise UsageError(f'a waiver needs a reason: --waive {axis}="why it cannot matter"')
        if not any(fnmatch.fnmatchcase(axis, pattern) for pattern in lane.waivable):
            allowed = ", ".join(lane.waivable) or "nothing"
            raise UsageError(f"lane {lane.name} does not allow to waive {axis}; it allows: {allowed}")
        if axis not in named:
            raise UsageError(f"{axis} neither changed nor is unknown here, so there is nothing to waive; leave it out")


def uncounted_axes(
    diff: Difference, metric: Metric, lane: Lane, study: Study | None, a: Parsed, b: Parsed
) -> Mapping[str, str]:
    """Changed axes that do not count, each with its reason: the metric's, the lane's, or the study's."""
    reasons: dict[str, str] = {}
    if metric.summary in _OF_A_STEP:
        reasons |= dict.fromkeys(diff.length, f"{metric.name} does not depend on it: {bookkeeping_reason(LENGTH)}")
    for item in metric.indifferent:
        if item.axis in diff.axes and not any(axis in diff.axes for axis in item.unchanged):
            reasons[item.axis] = f"{metric.name} does not depend on it: {item.because}"
    for coupling in lane.couplings:
        if coupling.when in diff.axes:
            for axis in coupling.then:
                if axis in diff.axes and axis != coupling.when and not _other_library(axis, diff, lane):
                    reasons.setdefault(axis, f"follows {coupling.when}: {coupling.because}")
    if study is not None:
        broken = study.broken_by(diff, a.stated, b.stated)
        moving = [axis for axis in study.axes if axis in diff.axes and axis not in reasons]
        if not broken:
            for axis in moving[1:]:
                reasons[axis] = f"moves with {moving[0]} in the study {study.name}"
    return reasons


def _other_library(axis: str, diff: Difference, lane: Lane) -> bool:
    """Whether a GEMM changed in more than the type that its name carries, where no list of the lane holds it."""
    if axis != "path.gemm" or "gemm" in lane.path:
        return False
    members = next(change.members for change in diff.changed if change.axis == axis)
    return any(_without_dtypes(item.a) != _without_dtypes(item.b) for item in members)


def _without_dtypes(name: object) -> tuple[str, ...]:
    return tuple(word for word in re.findall(r"[a-z0-9]+", str(name).lower()) if dtype_of(word) is None)


@dataclass(frozen=True)
class Request:
    """What is asked beside the two sides. ``waivers`` map an axis to the reason why it is waived.

    ``beside`` are the metrics that are reported beside the one that is asked for. ``lost`` are launches that the caller
    left out of its sides, and ``named`` the ids of launches that count in any case. ``left_out`` are stored launches
    that were not asked for; ``pooled``: the sides' sessions are pooled. With ``prove`` errors carry their proofs, which
    costs tens of comparisons.
    """

    metric: str = metrics.DEFAULT
    waivers: Mapping[str, str] = field(default_factory=dict)
    study: str | None = None
    facts: Facts | None = None
    beside: Sequence[str] = metrics.SHOWN
    prove: bool = False
    lost: tuple[Lost, ...] = ()
    named: Collection[str] = ()
    left_out: tuple[LeftOut, ...] = ()
    pooled: bool = False


def compare(a: Sequence[Parsed], b: Sequence[Parsed], rulebook: Rulebook, request: Request | None = None) -> Comparison:
    """Judge B against A. Each side is one or more launches of one configuration. Raises as `compare_sides` does."""
    request = request or Request()
    known = JudgedLaunches(request.facts)
    lost_a, lost_b = (tuple(item for item in request.lost if item.side == letter) for letter in ("a", "b"))
    sides = judge_side(a, "a", rulebook, known, lost_a), judge_side(b, "b", rulebook, known, lost_b)
    return compare_sides(*sides, rulebook, request)


def compare_sides(a: JudgedSide, b: JudgedSide, rulebook: Rulebook, request: Request) -> Comparison:
    """Judge side B against side A.

    Raises UsageError when a side mixes configurations, names a launch twice, or waives what its lane does not.
    """
    if not request.prove:
        return _verdict(_pair(a, b, rulebook, request), rulebook, request)
    pair = _pair(a.proved(rulebook.rules), b.proved(rulebook.rules), rulebook, request)
    verdict = _verdict(pair, rulebook, request)
    trial = replace(request, beside=(), prove=False, lost=pair.lost)

    def retry(a: Sequence[Parsed], b: Sequence[Parsed], rulebook: Rulebook, facts: Facts | None) -> Comparison:
        return compare(a, b, rulebook, replace(trial, facts=facts))

    return replace(verdict, findings=proved_pair(verdict, pair, rulebook, retry))


def _pair(a: JudgedSide, b: JudgedSide, rulebook: Rulebook, request: Request) -> PairCase:
    """What rules on a comparison see of two sides: their difference, and the axes of it that count."""
    asked, head_a, head_b = metrics.get(request.metric), a.cases[0], b.cases[0]
    group_a, group_b = alike([case.launch for case in a.cases], [case.launch for case in b.cases])
    metric = answering(asked, (*group_a, *group_b))
    lane = combined(head_a.lane, head_b.lane)
    context = head_a.receipt.run.context if same_context(head_a.parsed, head_b.parsed) else None
    varied = request.facts.varied.get(context, frozenset()) if request.facts and context else frozenset[str]()
    # The difference of the first launches, each with what its witnesses lend, and what each side leaves open.
    gaps = [gap for side in (a, b) for gap in gaps_in_configuration(side.cases, side.letter, lane)]
    gaps += [gap for side in (a, b) for gap in differences_in_manner(side.receipts, side.letter, metric)]
    check_distinct(*([case.launch for case in side.cases] for side in (a, b)))
    diff = with_gaps(difference_under(lane, a.cases[0].parsed, b.cases[0].parsed, varied), gaps)
    study = rulebook.studies.get(request.study) if request.study else None
    check_waivers(request.waivers, lane, diff, [case.parsed for case in (*a.cases, *b.cases)])
    uncounted = uncounted_axes(diff, metric, lane, study, head_a.parsed, head_b.parsed)
    held = study if study and not study.broken_by(diff, head_a.stated, head_b.stated) else None
    return PairCase(
        a=head_a,
        b=head_b,
        difference=diff,
        counted=tuple(axis for axis in diff.axes if axis not in uncounted and axis not in request.waivers),
        uncounted=uncounted,
        metric=metric,
        asked=asked,
        lane=lane,
        facts=request.facts,
        findings_a=a.findings,
        findings_b=b.findings,
        sparing=rulebook.rules.sparing(metric.name),
        context=context,
        varied=varied,
        study=held.name if held else None,
        regimes=tuple(held.regimes) if held else (),
        waived=request.waivers,
        group_a=group_a,
        group_b=group_b,
        witnesses=tuple(dict.fromkeys(name for case in (*a.cases, *b.cases) for name in case.borrowed.lenders)),
        lost=(*a.lost, *b.lost),
        pooled=request.pooled,
        left_out=request.left_out,
        grade=min((case.graded.grade for case in (*a.cases, *b.cases)), key=GRADES.index),
    )


def _verdict(pair: PairCase, rulebook: Rulebook, request: Request) -> Comparison:
    """What rules and effects decide about a pair."""
    findings = judge_pair(pair, rulebook.rules)
    every = (*findings, *pair.findings_a, *pair.findings_b)
    results = tuple(named_effect(item, every, rulebook.rules) for item in metric_results(pair, request.beside))
    headline = next((item for item in results if item.metric == pair.metric.name), None)
    effect = headline.effect.kind if headline is not None else "unproven"
    comparable = comparable_answer(findings)
    answers = {path_answer(some) for some in (pair.findings_a, pair.findings_b, findings)}
    path: PathAnswer = next((word for word in ("left", "unwitnessed") if word in answers), "witnessed")
    clear = comparable == "yes" and path == "witnessed" and not effect_is_open(every, pair.metric, rulebook.rules)
    stated = headline is not None and is_stated(pair.metric, (headline.a, headline.b))
    standing = standing_of(every, stated=stated, clear=clear)
    ids_a, ids_b = (tuple(launch.parsed.id for launch in group) for group in (pair.group_a, pair.group_b))
    return Comparison(
        a=ids_a,
        b=ids_b,
        label_a=pair.a.launch.parsed.name,
        label_b=pair.b.launch.parsed.name,
        metric=pair.metric.name,
        lanes=tuple(dict.fromkeys(f"{lane.name}@{lane.version}" for lane in (pair.a.lane, pair.b.lane))),
        comparable=comparable,
        path=path,
        effect=effect,
        standing=standing,
        asked=pair.asked.name,
        status=decide(comparable, path, effect, standing),
        difference=pair.difference,
        context=pair.context,
        uncounted=tuple(pair.uncounted.items()),
        findings=every,
        results=results,
        waivers=tuple(sorted(request.waivers.items())),
        study=request.study or None,
        rules=rulebook.rules.digest,
        judge=VERSION,
        witnesses=pair.witnesses,
        lost=pair.lost,
        grade=pair.grade,
        named=tuple(item for item in (*ids_a, *ids_b) if item in request.named),
        left_out=request.left_out,
        pooled=pair.pooled,
    )
