"""The judgment of a claim: from the receipts that it names, in files beside it or in a store, to a `ClaimVerdict`.

`judge` takes values: no store and no files. `gather` fetches receipts and `Facts` for it. A rejected comparison refutes
the claim as it is worded: its two numbers do not measure what it says. Where a fact is missing, the path is not
witnessed, or numbers are merely stated, nothing speaks against it and it stays *unproven*.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.axes.lane import UNLISTED, Lane, Target, combined
from receipts.axes.shape import PATTERN, meets
from receipts.base.errors import NotFound, ReceiptsError, RuleError, UsageError
from receipts.judging.claim import Claim, ClaimFile, assess_arithmetic, claim_from_json
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts, ShapeStanding, shape_standing
from receipts.judging.judge import VERSION, judge_case, judge_claim
from receipts.judging.rule import Case, ClaimCase, Topic
from receipts.judging.rulebook import Rulebook, RuleSet
from receipts.judging.side import merged_findings
from receipts.judging.verdict import (
    Assessment,
    ClaimStatus,
    ClaimVerdict,
    Comparison,
    Finding,
    Level,
    Lost,
    Question,
    counted_of,
    path_answer,
)
from receipts.metrics import Launch
from receipts.questions.claims import assessment
from receipts.questions.claims.wording import wordings
from receipts.questions.comparisons import Comparisons, Floors, names_one
from receipts.questions.sides import Join
from receipts.receipt import Document, Parsed, parse, read

if TYPE_CHECKING:
    from receipts.store import Store


@dataclass(frozen=True)
class ClaimEvidence:
    """The receipts that a claim names. ``missing`` are words that name none, each as ``side`` and reason.

    ``earlier`` is the status that it had when a store last recorded a verdict on it, and ``lost`` the receipts that it
    stood on then and that no longer stand: id, successor (empty where it was retracted), reason. ``left_out`` are
    launches of its sides that are no samples, and ``named`` the ids that it names itself.
    """

    baseline: tuple[Parsed, ...] = ()
    candidate: tuple[Parsed, ...] = ()
    facts: Facts | None = None
    missing: tuple[tuple[str, str], ...] = ()
    earlier: str | None = None
    lost: tuple[tuple[str, str, str], ...] = ()
    left_out: tuple[Lost, ...] = ()
    named: Collection[str] = ()


def judge(claim: Claim, evidence: ClaimEvidence, rulebook: Rulebook) -> ClaimVerdict:
    """The verdict on one claim under the rule set in force, with wordings that would hold where it falls short."""
    verdict = _judge(claim, evidence, rulebook)
    shown = verdict.assessment
    if verdict.status == "supported" or shown.state == "holds" or shown.low is None or shown.high is None:
        return verdict
    offered = (claim.with_effect(effect) for effect in wordings(claim, shown.low, shown.high))
    held = (item.effect for item in offered if _judge(item, evidence, rulebook).otherwise == "supported")
    return replace(verdict, would_hold=tuple(effect for effect in held if effect is not None))


def _judge(claim: Claim, evidence: ClaimEvidence, rulebook: Rulebook) -> ClaimVerdict:
    names = dict.fromkeys(item.receipt.run.lane for item in (*evidence.candidate, *evidence.baseline))
    lanes = [rulebook.lanes.of(name) for name in names] or [rulebook.lanes.get(UNLISTED)]
    lane = lanes[0] if len(lanes) == 1 else combined(lanes[0], lanes[1])
    baseline, candidate = (tuple(map(rulebook.launch, side)) for side in (evidence.baseline, evidence.candidate))
    comparison, missing = _comparison(claim, evidence, rulebook)
    cases = (Case(item, item.lane, evidence.facts) for item in candidate)
    about = () if comparison is not None else merged_findings(judge_case(case, rulebook.rules) for case in cases)
    met, target = _at_target(claim, candidate, lane)
    shown = _assess(claim, candidate, comparison, about, evidence.facts, rulebook.rules)
    # It says how many launches it rests on where some do not count.
    sides = (("a", evidence.baseline), ("b", evidence.candidate))
    counted = [words for side, kept in sides if (words := counted_of(side, len(kept), evidence.left_out))]
    shown = replace(shown, why="; ".join((shown.why, *counted))) if counted else shown
    case = ClaimCase(
        claim=claim,
        baseline=baseline,
        candidate=candidate,
        comparison=comparison,
        assessment=shown,
        lane=lane,
        facts=evidence.facts,
        missing=missing,
        envelope=_envelope(claim, candidate, lane, evidence.facts),
        target=target,
        at_target=met,
        earlier=evidence.earlier,
        lost=evidence.lost,
    )
    otherwise = _otherwise(claim, evidence, case, rulebook)
    findings = judge_claim(replace(case, now=otherwise), rulebook.rules)
    stale = any(item.code in rulebook.rules.about(Topic.STALENESS) for item in findings)
    return ClaimVerdict(
        claim=claim.id,
        text=claim.text,
        kind=claim.kind,
        metric=claim.metric_name,
        effect=claim.effect,
        status="stale" if stale else otherwise,
        otherwise=otherwise,
        assessment=case.assessment,
        baseline=tuple(item.parsed.id for item in baseline),
        candidate=tuple(item.parsed.id for item in candidate),
        lanes=tuple(dict.fromkeys(f"{item.lane.name}@{item.lane.version}" for item in case.launches)),
        target=target,
        at_target=met,
        findings=findings,
        about=about,
        comparison=comparison,
        rules=rulebook.rules.digest,
        judge=VERSION,
    )


def _otherwise(claim: Claim, evidence: ClaimEvidence, case: ClaimCase, rulebook: Rulebook) -> ClaimStatus:
    """The status by every rule but that of age, as if all receipts stood."""
    if evidence.facts is not None and evidence.facts.superseded:
        standing = replace(evidence, facts=replace(evidence.facts, superseded={}), lost=(), earlier=None)
        return _judge(claim, standing, rulebook).otherwise
    findings, staleness = judge_claim(case, rulebook.rules), rulebook.rules.about(Topic.STALENESS)
    return status([item for item in findings if item.code not in staleness], case, rulebook.rules)


def status(findings: Sequence[Finding], case: ClaimCase, rules: RuleSet) -> ClaimStatus:
    """What findings, comparison and number together make of a claim, its age aside.

    A claim without receipts is *unproven* whatever else is wrong with it: nothing was held against it.
    """
    if any(item.code in rules.about(Topic.RECEIPTS) for item in findings):
        return "unproven"
    levels = {item.level for item in findings}
    if Level.ERROR in levels or _contradicted(case, rules) or case.assessment.state == "fails":
        return "refuted"
    return "supported" if case.assessment.state == "holds" and Level.OPEN not in levels else "unproven"


def waits(verdict: ClaimVerdict, rules: RuleSet) -> bool:
    """Whether it holds where it was shown, and its target, or the envelope around it, is all that keeps it open."""
    heavy = {item.code for item in verdict.findings if item.level is not Level.SHOWN}
    held = verdict.assessment.state == "holds" and verdict.otherwise == "unproven"
    return held and bool(heavy) and heavy <= set(rules.about(Topic.TARGET))


def _contradicted(case: ClaimCase, rules: RuleSet) -> bool:
    """Whether its comparison is rejected, and for more than what a side leaves out: an MFU of no named denominator."""
    comparison = case.comparison
    if comparison is None or comparison.status != "rejected":
        return False
    sides = {"a": case.baseline, "b": case.candidate}
    silences = [
        item.code in rules.about(Topic.SIDES) and assessment.silent(item, sides.get(item.subject, ()))
        for item in comparison.findings
        if item.level is Level.ERROR and item.question is Question.COMPARABLE and item.on_pair
    ]
    return comparison.path == "left" or not silences or not all(silences)


def _comparison(
    claim: Claim, evidence: ClaimEvidence, rulebook: Rulebook
) -> tuple[Comparison | None, tuple[tuple[str, str], ...]]:
    """The comparison that the claim asks for, and what is missing for it."""
    if not claim.compares or not evidence.baseline or not evidence.candidate:
        return None, evidence.missing
    request = Request(
        claim.metric_name,
        claim.waive or {},
        claim.study,
        evidence.facts,
        lost=evidence.left_out,
        named=evidence.named,
    )
    try:
        return compare(evidence.baseline, evidence.candidate, rulebook, request), evidence.missing
    except RuleError:
        raise
    except ReceiptsError as error:
        # A side of several configurations, or a waiver that the lane does not grant: the claim names no such pair.
        return None, (*evidence.missing, ("candidate", str(error)))


def _assess(
    claim: Claim,
    candidate: Sequence[Launch],
    comparison: Comparison | None,
    about: Sequence[Finding],
    facts: Facts | None,
    rules: RuleSet,
) -> Assessment:
    if comparison is not None:
        return assessment.of_pair(claim, comparison, rules)
    if claim.kind == "arithmetic":
        return assess_arithmetic(claim)
    if claim.compares or not candidate:
        return Assessment("open", "there is nothing that it could be held against")
    path = path_answer(about)
    if claim.kind == "does-not-fit":
        return assessment.of_misfit(candidate, facts)
    if claim.kind == "ceiling":
        return assessment.of_ceiling(claim, candidate, about, path, facts)
    return assessment.of_value(claim, candidate, about, path, facts)


def _at_target(claim: Claim, candidate: Sequence[Launch], lane: Lane) -> tuple[bool | None, str | None]:
    """Whether it was shown where it is to hold, and where that is; None where neither claim nor lane says."""
    if claim.target is None:
        wanted = [(item.name, item.bounds) for item in lane.targets]
    elif isinstance(claim.target, str):
        wanted = [(item.name, item.bounds) for item in _named(claim.target, lane)]
        wanted = wanted or [(f"{claim.target}, which lane {lane.name} does not name", {})]
    else:
        wanted = [(str(claim.target), claim.target.bounds)]
    if not wanted:
        return None, None
    met = next((name for name, bounds in wanted if candidate and meets(candidate[0].parsed, bounds)), None)
    return met is not None, met or " or ".join(name for name, _ in wanted)


def _named(name: str, lane: Lane) -> list[Target]:
    return [item for item in (*lane.targets, *lane.substrates) if item.name == name]


def _envelope(claim: Claim, candidate: Sequence[Launch], lane: Lane, facts: Facts | None) -> ShapeStanding:
    """Where the claimed shape lies: that of the launch, or where it did not run at the claim's target, the target's."""
    if not candidate:
        return ShapeStanding("unknown", why="no receipt")
    launch = candidate[0].parsed
    bounds = target_bounds(claim, lane)
    if PATTERN in bounds and not meets(launch, {PATTERN: bounds[PATTERN]}):
        return ShapeStanding("unknown", why=f"the launch is no {bounds[PATTERN]}")
    return shape_standing(facts, launch, {} if meets(launch, bounds) else bounds)


def target_bounds(claim: Claim, lane: Lane) -> Mapping[str, Any]:
    """The leaves that the claim's target sets; empty where it names none that is known."""
    if isinstance(claim.target, str):
        named = _named(claim.target, lane)
        return named[0].bounds if named else {}
    return claim.target.bounds if claim.target is not None else {}


Missing = list[tuple[str, str]]


def gather(
    claim: Claim,
    rulebook: Rulebook,
    store: Store | None,
    folder: Path | None = None,
    *,
    replicates: bool = True,
    floors: Floors | None = None,
) -> ClaimEvidence:
    """Fetch the receipts that a claim names, with Facts about them.

    Files are looked for in ``folder``. Several claims may share their noise ``floors``. Without a store only files are
    found, and there are no Facts but what documents say of each other. Raises InputError where a file is no receipt.
    """
    missing: Missing = []
    sides_by_word = [_side(side, getattr(claim, side), store, folder, missing) for side in ("baseline", "candidate")]
    groups = [[item for _, group in side for item in group] for side in sides_by_word]
    named = {
        item.id
        for side in sides_by_word
        for word, group in side
        if is_file(word) or names_one(word, group)
        for item in group
    }
    # The status that it was last given, and which receipts of that day no longer stand.
    last = store.published.last_claim_verdict(claim.id) if store is not None else None
    earlier = last.status if last is not None else None
    lost: tuple[tuple[str, str, str], ...] = ()
    if store is not None and last is not None:
        fallen = store.fallen(receipt for _, receipt in last.receipts)
        gone = (fallen[receipt] for _, receipt in last.receipts if receipt in fallen)
        lost = tuple((item.receipt, item.successor or "", item.reason) for item in gone)
    if not any(groups):
        return ClaimEvidence((), (), None, tuple(missing), earlier, lost)
    comparisons = Comparisons(store, rulebook, floors=floors)
    of_shape = claim.kind == "ceiling"
    # A ceiling is no level that days move: every launch that reached the shape shows that it holds.
    join: Join = "all" if of_shape or claim.kind == "does-not-fit" else "session"
    labelled = {item.id for group in groups for item in group} - named
    asked = comparisons.asked(groups[0], groups[1], join if replicates else "only", labelled)
    try:
        # What does not fit is shown by launches that failed.
        own = None if claim.kind == "does-not-fit" else named
        sides = comparisons.sides(asked, claim.metric_name, own, of_shape=of_shape)
    except UsageError:  # a side of several configurations: the comparison says so
        sides = comparisons.sides(asked, claim.metric_name)
    facts = _with_target(claim, sides.b, sides.facts, rulebook, store)
    return ClaimEvidence(sides.a, sides.b, facts, tuple(missing), earlier, lost, sides.lost, frozenset(named))


def _with_target(
    claim: Claim, candidate: Sequence[Parsed], facts: Facts, rulebook: Rulebook, store: Store | None
) -> Facts:
    """The facts with what any layout sustained of this model, where the candidate did not run at the claim's target."""
    if store is None or not candidate:
        return facts
    launch = rulebook.launch(candidate[0])
    bounds = target_bounds(claim, launch.lane)
    if not bounds or meets(candidate[0], bounds):
        return facts
    every = store.query.reached_with(candidate[0].receipt.run.lane, launch.settings.shape.geometry)
    return replace(facts, shapes=tuple(dict.fromkeys((*facts.shapes, *every))))


def verdict_on(
    claim: Claim, rulebook: Rulebook, store: Store | None, folder: Path | None = None, **options: Any
) -> ClaimVerdict:
    """The present verdict on a claim; see `gather` for the options."""
    return judge(claim, gather(claim, rulebook, store, folder, **options), rulebook)


def stored(store: Store, *, standing: bool = True) -> ClaimFile:
    """The claims of a store, as a file of them: those that stand, unless told otherwise."""
    kept = store.published.claims(standing=standing)
    return ClaimFile(store.url, None, tuple(claim_from_json(item.body, f"claim {item.id}") for item in kept))


def _side(
    side: str, words: Sequence[str], store: Store | None, folder: Path | None, missing: Missing
) -> list[tuple[str, list[Parsed]]]:
    """The words of a side with the receipts that each names, and that none before it does."""
    named: list[tuple[str, list[Parsed]]] = []
    known: set[str] = set()
    for word in words:
        try:
            group = [item for item in _receipts_of_word(word, store, folder) if item.id not in known]
        except NotFound as error:
            missing.append((side, str(error)))
            continue
        known.update(item.id for item in group)
        named.append((word, group))
    return named


def is_file(word: str) -> bool:
    """Whether a word of a claim names a file beside it, rather than a receipt of the store."""
    return word.endswith(".json") or "/" in word


def _receipts_of_word(word: str, store: Store | None, folder: Path | None) -> list[Parsed]:
    """The receipts of one word. A word that looks like a file is one; raises NotFound."""
    if folder is not None and is_file(word):
        place = folder / word
        if not place.is_file():
            raise NotFound(f"there is no file {word} beside the claims")
        return [parse(read(place))]
    if store is None:
        raise NotFound(f"{word!r} is no file, and no store was asked")
    return [parse(Document(store.document(item), item[:12])) for item in store.resolve_all(word)]
