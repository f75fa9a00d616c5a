"""Runs rules over values: never stops at the first offense, and never turns a fault of a rule into a pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TypeVar

from receipts.axes.lane import Lane
from receipts.axes.replicates import configuration_key, stated_configuration
from receipts.base.errors import ReceiptsError, RuleError
from receipts.judging.facts import Facts
from receipts.judging.findings import proved
from receipts.judging.rule import Case, ClaimCase, Offense, PairCase, Rule, StatementCase
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import (
    NOTHING,
    STATE,
    Finding,
    Level,
    ReceiptVerdict,
    Subject,
    path_answer,
    receipt_status,
    tainted,
)
from receipts.metrics import Launch
from receipts.receipt import Parsed
from receipts.receipt.names import cause

VERSION = "1"
_CODE = attrgetter("code")
S = TypeVar("S")
T = TypeVar("T")


def judge_case(case: Case, rules: RuleSet) -> tuple[Finding, ...]:
    """Every finding of the rules on one receipt, in the order of their codes."""
    findings = _findings(case, rules.of_launch)
    of_configuration = _of_configuration(case, rules) if rules.of_configuration else ()
    if of_configuration:
        receipt = case.launch.parsed.id
        findings += [replace(item, receipt=receipt) for item in of_configuration]
        findings.sort(key=_CODE)
    # With the cause that evidence names for a leaf: the argument that changed, the operator, the line.
    causes = ("" if item.unjudged else cause(case.parsed, item.at) for item in findings)
    return tuple(
        replace(item, found=f"{item.found}: {why}") if why else item for item, why in zip(findings, causes, strict=True)
    )


def _findings(case: Case, rules: tuple[Rule, ...]) -> list[Finding]:
    return [one for item in rules for one in _guard(item, partial(_judge_one, item), case)]


def _of_configuration(case: Case, rules: RuleSet) -> tuple[Finding, ...]:
    """What the rules on the configuration find; once for all of its launches in which no witness has a part."""
    key = None if case.borrowed.any else configuration_key(case.parsed)
    if key is not None:
        lane, findings = rules.findings_of_configuration.get(key, (None, ()))
        if lane is case.lane:
            return findings
    shown = stated_configuration(case.parsed)
    alone = Case(Launch(shown, case.lane), case.lane)
    # What a cached property would look up again: the witnesses were asked already, for the whole receipt.
    vars(alone)["borrowed"] = replace(case.borrowed, parsed=shown)
    findings = tuple(_findings(alone, rules.of_configuration))
    if key is not None:
        rules.findings_of_configuration[key] = case.lane, findings
    return findings


def _judge_one(item: Rule, case: Case) -> list[Finding]:
    """A rule's findings. An offense counts whatever else is unstated; without one, a gap leaves the question open."""
    if not item.applies(case):
        return []
    receipt, heavy = case.launch.parsed.id, item.level is Level.ERROR
    if item.uses_facts and case.facts is None:
        do = "name a store with --store"
        return [_unjudged(item, "store", "no store was asked", do, "receipt", receipt)] if heavy else []
    findings = []
    for offense in item.judge(case):
        one = _finding(item, offense, "receipt", receipt)
        witness = case.borrowed.witness_of(offense.at)
        seen_by = "" if witness is None else f", as witness {witness[:12]} saw it"
        findings.append(replace(one, found=one.found + seen_by) if seen_by else one)
    if heavy and (missing := item.missing(case)):
        # Beside an offense the gaps are shown, so that all that is unstated is listed at once.
        level = Level.SHOWN if any(one.level is Level.ERROR for one in findings) else Level.OPEN
        for need in missing:
            paths = need.split("|")
            if why := case.excuse(*paths):
                do = "none can: what rests on it stays unattributed"
                gap = Offense(paths[0], "not stated", NOTHING + why, do, Level.SHOWN)
                findings.append(_finding(item, gap, "receipt", receipt))
            else:
                do = STATE + " or ".join(paths)
                findings.append(_unjudged(item, paths[0], "not stated", do, "receipt", receipt, level))
    return findings


def judge_pair(pair: PairCase, rules: RuleSet) -> tuple[Finding, ...]:
    """Every finding of the rules on a comparison, in the order of their codes."""
    findings: list[Finding] = []
    for item in rules.on("pair"):
        if not _guard(item, item.applies, pair):
            continue
        if item.uses_facts and pair.facts is None:
            if item.level is Level.ERROR:
                do = "name a store with --store"
                findings.append(_unjudged(item, "store", "no store was asked", do, "pair", None))
            continue
        for offense in _guard(item, _offenses(item), pair):
            side = offense.side
            receipt = {"a": pair.a, "b": pair.b}[side].launch.parsed.id if side else None
            findings.append(_finding(item, offense, side or "pair", receipt))
    return tuple(findings)


def judge_claim(case: ClaimCase | StatementCase, rules: RuleSet) -> tuple[Finding, ...]:
    """Every finding of the rules on a claim, or on a statement in prose, in the order of their codes.

    A rule on a claim that needs Facts is silent without.
    """
    if isinstance(case, ClaimCase):
        rules_asked = [item for item in rules.on("claim") if not item.uses_facts or case.facts is not None]
    else:
        rules_asked = list(rules.on("statement"))
    applying = (item for item in rules_asked if _guard(item, item.applies, case))
    return tuple(
        _finding(one, offense, "claim", None) for one in applying for offense in _guard(one, _offenses(one), case)
    )


def judge_receipt(
    parsed: Parsed,
    lane: Lane,
    rules: RuleSet,
    facts: Facts | None = None,
    launch: Launch | None = None,
    *,
    prove: bool = False,
) -> ReceiptVerdict:
    """The verdict on one receipt. A caller that needs the `Launch` too hands it over, and it is computed once.

    With ``prove`` its errors carry their proofs, which costs some tens of judgments.
    """
    case = Case(launch or Launch(parsed, lane), lane, facts)
    findings = judge_case(case, rules)
    findings = proved(case, findings, rules) if prove else findings
    return ReceiptVerdict(
        receipt=parsed.id,
        label=parsed.receipt.run.label,
        status=receipt_status(findings),
        path=path_answer(findings),
        tainted=tainted(findings),
        findings=findings,
        lane=f"{lane.name}@{lane.version}",
        rules=rules.digest,
        judge=VERSION,
        witnesses=case.borrowed.lenders,
        grade=case.graded.grade,
        grade_why=case.graded.why,
    )


def _offenses(item: Rule) -> Callable[[Case | PairCase | ClaimCase | StatementCase], tuple[Offense, ...]]:
    """The rule's judgment run to its end, so that a fault in its middle is caught where it is called."""
    return lambda subject: tuple(item.judge(subject))


def _guard(item: Rule, call: Callable[[S], T], subject: S) -> T:
    try:
        return call(subject)
    except ReceiptsError:
        raise
    except Exception as error:
        # Whatever a rule raises is a fault of that rule, named, and never a pass.
        raise RuleError(f"rule {item.code} {item.name} raised {type(error).__name__}: {error}") from error


def _finding(item: Rule, offense: Offense, subject: Subject, receipt: str | None) -> Finding:
    return Finding(
        code=item.code,
        name=item.name,
        level=offense.level or item.level,
        question=offense.question or item.question,
        taints=item.taints,
        at=offense.at,
        found=offense.found,
        expected=offense.expected,
        do=offense.do,
        subject=subject,
        receipt=receipt,
        unjudged=offense.unjudged,
    )


def _unjudged(
    item: Rule, at: str, what: str, do: str, subject: Subject, receipt: str | None, level: Level = Level.OPEN
) -> Finding:
    expected = f"what {item.code} {item.name} needs to judge"
    return _finding(item, Offense(at, what, expected, do, level, unjudged=True), subject, receipt)
