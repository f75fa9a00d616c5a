"""Compare two receipts, or two groups of launches: what changed, what is unknown, what rules say, what the effect is.

Values in, a `Comparison` out: no store, no files. Callers fetch receipts and `Facts`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from receipts import metrics
from receipts.axes import Difference, difference, same_context
from receipts.axes.effective import leaves_of
from receipts.axes.lane import Lane, combined
from receipts.axes.lane_files import Lanes
from receipts.base.errors import UsageError
from receipts.judging.facts import Facts
from receipts.judging.judge import VERSION, judge_case, judge_pair
from receipts.judging.metric_results import metric_results, named_effect
from receipts.judging.proof import Reducer, minimal, proved, same_place, stated_by
from receipts.judging.rule import Case, Pair
from receipts.judging.rulebook import Rulebook
from receipts.judging.sample import grade
from receipts.judging.side import (
    check_distinct,
    check_one_request,
    differences_in_manner,
    gaps_in_configuration,
    with_gaps,
)
from receipts.judging.topic import Topic
from receipts.judging.verdict import (
    Comparison,
    Finding,
    Level,
    Lost,
    PathAnswer,
    ProofLeaf,
    comparable_answer,
    decide,
    path_answer,
)
from receipts.metrics import Launch, Metric
from receipts.receipt import Parsed, Role
from receipts.receipt.catalogue import path_of
from receipts.receipt.dtypes import dtype_of

if TYPE_CHECKING:
    from receipts.judging.study import Study

Uncounted = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Request:
    """What is asked beside the two sides. ``waivers`` map an axis to the reason why it is waived.

    ``known`` are findings on single launches, by id, of who has judged them under the same rules and facts, ``read``
    launches of who has read them already. ``beside`` are the metrics that are told beside the one that is asked for.
    ``lost`` are launches of the sides that `choose` has left out, and ``named`` the ids that it keeps in any case.
    With ``prove`` errors carry their proofs, which costs tens of comparisons.
    """

    metric: str = metrics.DEFAULT
    waivers: Mapping[str, str] = field(default_factory=dict)
    study: str | None = None
    facts: Facts | None = None
    known: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    read: Mapping[str, Launch] = field(default_factory=dict)
    beside: Sequence[str] = metrics.SHOWN
    prove: bool = False
    lost: tuple[Lost, ...] = ()
    named: Collection[str] = ()


def choose(
    group: Sequence[Parsed], side: Literal["a", "b"], rulebook: Rulebook, metric: Metric | None, request: Request
) -> tuple[list[Parsed], tuple[Lost, ...]]:
    """The launches of a side that count, and those that do not: the best by `receipts.judging.sample`, and the named.

    Where none is a sample, those are kept that say most of what is wrong. Raises UsageError where a launch that is
    left out was asked for another configuration than one that is kept.
    """
    if all(item.id in request.named for item in group) or len(group) == 1:
        return list(group), ()
    cases = [_side(item, rulebook, request) for item in group]
    sparing = rulebook.rules.sparing(metric.name) if metric is not None else ()
    grades = [grade(case.launch, _findings(case, rulebook, side, request), metric, sparing) for case in cases]
    best = min(item.rank for item in grades)
    graded = list(zip(group, grades, strict=True))
    kept = [item for item, graded_as in graded if graded_as.rank == best or item.id in request.named]
    ids = {item.id for item in kept}
    gone = [(item, graded_as) for item, graded_as in graded if item.id not in ids]
    lane = cases[0].lane
    check_one_request([*kept[:1], *(item for item, _ in gone)], side, lane)
    return kept, tuple(Lost(side, item.id, graded_as.why) for item, graded_as in gone)


def compare(a: Sequence[Parsed], b: Sequence[Parsed], rulebook: Rulebook, request: Request | None = None) -> Comparison:
    """Judge B against A. Each side is one or more launches of one configuration.

    Raises UsageError when a side mixes configurations, names a launch twice, or waives what its lane does not.
    """
    asked = request or Request()
    metric = metrics.get(asked.metric)
    lane = _lane(rulebook.lanes, a[0], b[0])
    sides_a = [_side(item, rulebook, asked) for item in a]
    sides_b = [_side(item, rulebook, asked) for item in b]
    gaps = (*gaps_in_configuration(sides_a, "a", lane), *gaps_in_configuration(sides_b, "b", lane))
    gaps = (*gaps, *differences_in_manner(a, "a", metric), *differences_in_manner(b, "b", metric))
    check_distinct(a, b)
    # From here on each launch states what its witnesses saw: a path axis takes the witnessed value.
    a, b = [case.parsed for case in sides_a], [case.parsed for case in sides_b]
    context = a[0].receipt.run.context if same_context(a[0], b[0]) else None
    varied = asked.facts.varied.get(context, frozenset()) if asked.facts and context else frozenset[str]()
    diff = with_gaps(difference(a[0], b[0], tuple(lane.not_applicable), varied), gaps)
    study = rulebook.studies.get(asked.study) if asked.study else None
    _check_waivers(asked.waivers, lane, diff, (*a, *b))
    uncounted = _uncounted(diff, metric, lane, study, a[0], b[0])
    findings_a = [_findings(case, rulebook, "a", asked) for case in sides_a]
    findings_b = [_findings(case, rulebook, "b", asked) for case in sides_b]
    left_out = {axis for axis, _ in uncounted} | set(asked.waivers)
    pair = Pair(
        a=sides_a[0],
        b=sides_b[0],
        difference=diff,
        counted=tuple(axis for axis in diff.axes if axis not in left_out),
        metric=metric,
        lane=lane,
        facts=asked.facts,
        findings_a=merged(findings_a),
        findings_b=merged(findings_b),
        sparing=rulebook.rules.sparing(metric.name),
        context=context,
        varied=varied,
        study=study.name if study and not study.broken_by(diff, a[0].stated, b[0].stated) else None,
        waived=asked.waivers,
        group_a=tuple(case.launch for case in sides_a),
        group_b=tuple(case.launch for case in sides_b),
        lost=asked.lost,
    )
    witnesses = tuple(dict.fromkeys(name for case in (*sides_a, *sides_b) for name in case.borrowed.lenders))
    comparison = replace(_assemble(pair, rulebook, asked, uncounted, study), witnesses=witnesses)
    return replace(comparison, findings=_proved(comparison, pair, rulebook, asked)) if asked.prove else comparison


def _assemble(pair: Pair, rulebook: Rulebook, asked: Request, uncounted: Uncounted, study: Study | None) -> Comparison:
    findings = judge_pair(pair, rulebook.rules)
    sides = (*pair.findings_a, *pair.findings_b)
    every = (*findings, *sides)
    results = tuple(named_effect(item, every, rulebook.rules) for item in metric_results(pair, asked.beside))
    headline = next((item for item in results if item.metric == pair.metric.name), None)
    effect = headline.effect.kind if headline is not None else "unproven"
    comparable = comparable_answer(findings)
    path = _path(pair, findings)
    parsed_a, parsed_b = pair.a.launch.parsed, pair.b.launch.parsed
    ids_a, ids_b = (tuple(launch.parsed.id for launch in group) for group in (pair.group_a, pair.group_b))
    return Comparison(
        a=ids_a,
        b=ids_b,
        label_a=parsed_a.name,
        label_b=parsed_b.name,
        metric=pair.metric.name,
        lanes=tuple(dict.fromkeys(f"{lane.name}@{lane.version}" for lane in (pair.a.lane, pair.b.lane))),
        comparable=comparable,
        path=path,
        effect=effect,
        status=decide(comparable, path, effect),
        difference=pair.difference,
        context=pair.context,
        uncounted=uncounted,
        findings=every,
        results=results,
        waivers=tuple(sorted(asked.waivers.items())),
        study=study.name if study else None,
        rules=rulebook.rules.digest,
        judge=VERSION,
        lost=asked.lost,
        named=tuple(item for item in (*ids_a, *ids_b) if item in asked.named),
    )


def _proved(comparison: Comparison, pair: Pair, rulebook: Rulebook, asked: Request) -> tuple[Finding, ...]:
    """The findings, the errors on the pair with their proofs: what of both sides and their witnesses they stand on."""
    facts = asked.facts
    witnesses = facts.witnesses if facts is not None else ()
    sides = [[launch.parsed for launch in group] for group in (pair.group_a, pair.group_b)]
    every = stated_by([*sides[0], *sides[1], *(item for item in witnesses if item.id in comparison.witnesses)])
    moved = {member.path for change in comparison.difference.changed for member in change.members}
    # What a witness lends takes most leaves of two receipts: the proofs of the sides' own findings have them already.
    shown = {leaf for item in (*pair.findings_a, *pair.findings_b) for leaf in item.proof}
    spoilt = {item.code for item in (*pair.findings_a, *pair.findings_b) if item.level is Level.ERROR}
    quoting = rulebook.rules.about(Topic.SIDES)

    less = Reducer()
    books = {
        item.code: rulebook.of_rules({item.code, *(spoilt if item.code in quoting else ())})
        for item in comparison.findings
    }

    @lru_cache(maxsize=1024)  # several findings of one rule are tried on the same leaves
    def errors(code: str, leaves: frozenset[ProofLeaf]) -> frozenset[str]:
        a, b = ([less(one, leaves) for one in side] for side in sides)
        fewer = facts and replace(facts, witnesses=tuple(less(one, leaves) for one in witnesses))
        request = replace(asked, facts=fewer, known={}, read={}, beside=(), prove=False)
        items = compare(a, b, books[code], request).findings
        return frozenset(item.at for item in items if item.code == code and item.level is Level.ERROR)

    def proof(item: Finding) -> tuple[ProofLeaf, ...]:
        def stands(leaves: Collection[ProofLeaf]) -> bool:
            return any(same_place(at, item.at) for at in errors(item.code, frozenset(leaves)))

        likely = [leaf for leaf in every if path_of(leaf.path) in moved or leaf.path.startswith(item.at)]
        lent = [leaf for leaf in every if leaf in shown or leaf in likely]
        return minimal(likely, stands) or minimal(lent, stands) or minimal(every, stands)

    return tuple(
        replace(item, proof=proof(item)) if item.level is Level.ERROR and item.on_pair else item
        for item in comparison.findings
    )


def _lane(lanes: Lanes, a: Parsed, b: Parsed) -> Lane:
    return combined(lanes.of(a.receipt.run.lane), lanes.of(b.receipt.run.lane))


def _side(parsed: Parsed, rulebook: Rulebook, asked: Request) -> Case:
    lane = rulebook.lanes.of(parsed.receipt.run.lane)
    return Case(asked.read.get(parsed.id) or Launch(parsed, lane), lane, asked.facts)


def _findings(case: Case, rulebook: Rulebook, side: Literal["a", "b"], asked: Request) -> tuple[Finding, ...]:
    known = asked.known.get(case.launch.parsed.id)
    findings = known if known is not None else judge_case(case, rulebook.rules)
    findings = tuple(replace(one, subject=side) for one in findings)
    return proved(case, findings, rulebook.rules) if asked.prove else findings


def _check_waivers(waivers: Mapping[str, str], lane: Lane, diff: Difference, launches: Sequence[Parsed]) -> None:
    # A host that nobody states may be another host, and so may be waived as one that differs.
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


def _uncounted(diff: Difference, metric: Metric, lane: Lane, study: Study | None, a: Parsed, b: Parsed) -> Uncounted:
    """Changed axes that do not count, each with its reason: the metric's, the lane's, or the study's."""
    reasons: dict[str, str] = {}
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
    return tuple(reasons.items())


def _other_library(axis: str, diff: Difference, lane: Lane) -> bool:
    """Whether a GEMM changed in more than the type that its name carries, where no list of the lane holds it."""
    if axis != "path.gemm" or "gemm" in lane.path:
        return False
    members = next(change.members for change in diff.changed if change.axis == axis)
    return any(_without_dtypes(item.a) != _without_dtypes(item.b) for item in members)


def _without_dtypes(name: object) -> tuple[str, ...]:
    return tuple(word for word in re.findall(r"[a-z0-9]+", str(name).lower()) if dtype_of(word) is None)


def merged(findings: Iterable[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Findings on the launches of a group, each offence once."""
    seen: dict[tuple[str, str, str], Finding] = {}
    for of_launch in findings:
        for item in of_launch:
            seen.setdefault((item.code, item.at, item.found), item)
    return tuple(seen.values())


def _path(pair: Pair, findings: Iterable[Finding]) -> PathAnswer:
    answers = (path_answer(pair.findings_a), path_answer(pair.findings_b), path_answer(findings))
    if "left" in answers:
        return "left"
    return "unwitnessed" if "unwitnessed" in answers else "witnessed"
