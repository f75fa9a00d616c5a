"""The page of one claim: what it says, whether its receipts carry it, how it was judged before, and who quotes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from receipts.judging.claim_verdict import ClaimVerdict
from receipts.judging.judge import judge_receipt
from receipts.judging.verdict import Level
from receipts.publish.claim import headline
from receipts.publish.page import Cell, Code, Page, Section, table_of
from receipts.publish.report import appendix, pair
from receipts.publish.report.data import Described
from receipts.publish.report.page import answered, links, rule
from receipts.publish.report.pair import PairData
from receipts.publish.report.ref import ref_of
from receipts.publish.report.sections import decisions, rules
from receipts.publish.report.sections.decisions import DecisionRow, decided_of
from receipts.publish.text import NOTE, number, plain
from receipts.questions.answers import AnsweredQuestion, answers
from receipts.questions.claims.footnote import footnote
from receipts.questions.claims.judge import judge

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook, RuleSet
    from receipts.judging.verdict import Finding
    from receipts.store import Store

SCHEMA = "1.0"
MOST_OF_NOTE = 1000  # characters of a sentence; report.json has the whole


@dataclass(frozen=True, slots=True)
class Past:
    """A verdict as it was recorded."""

    at: datetime
    status: str
    rules: str


@dataclass(frozen=True, slots=True)
class ClaimData:
    """One claim as of a moment. `comparison` is None where it compares nothing; `answers` are then its candidate's.

    `superseded` is the successor (None where it was withdrawn), the reason and the actor, where it no longer stands.
    """

    schema_version: str
    as_of: datetime
    verdict: ClaimVerdict
    origin: str
    added: datetime
    superseded: tuple[str | None, str, str | None] | None
    footnote: str
    answers: tuple[AnsweredQuestion, ...]
    comparison: PairData | None
    past: tuple[Past, ...]
    decisions: tuple[DecisionRow, ...]
    documents: tuple[str, ...]
    receipts: tuple[Described, ...]


def claim(store: Store, claim_id: str, rulebook: Rulebook, as_of: datetime) -> ClaimData:
    """The values of the page. Raises NotFound where the store has no such claim."""
    from receipts.questions.claims.gather import gather
    from receipts.questions.claims.load import from_json

    until = as_of + timedelta(microseconds=1)
    kept = store.published.claim(claim_id)
    stated = from_json(kept.body, f"claim {kept.id}")
    evidence = gather(stated, rulebook, store)
    verdict = judge(stated, evidence, rulebook)
    sides = (*evidence.baseline, *evidence.candidate)
    ids = [item.id for item in sides]
    decided = [item for item in store.published.decisions(ids) if item.at < until]
    refs = {item.id: ref_of(item) for item in sides}
    facts = evidence.facts
    compared = None
    if verdict.comparison is not None and facts is not None:
        compared = pair.pair(evidence.baseline, evidence.candidate, verdict.comparison, rulebook, facts, decided)
    judged = {
        item.id: judge_receipt(item, rulebook.lanes.of(item.receipt.run.lane), rulebook.rules, facts) for item in sides
    }
    rows: tuple[AnsweredQuestion, ...] = ()
    if evidence.candidate and compared is None:
        head = evidence.candidate[0]
        lane = rulebook.lanes.of(head.receipt.run.lane)
        rows = tuple(answers(head, lane, judged[head.id], facts, rulebook.rules))
    quoting = (item.document for item in store.published.quotes(*ids, until=until))
    gone = kept.superseded
    return ClaimData(
        schema_version=SCHEMA,
        as_of=as_of,
        verdict=verdict,
        origin=kept.origin,
        added=kept.at,
        superseded=(gone.successor, gone.reason, gone.actor) if gone else None,
        footnote=footnote(verdict, decided),
        answers=rows,
        comparison=compared,
        past=tuple(
            Past(item.at, item.status, item.rules)
            for item in store.published.claim_verdicts(claim_id)
            if item.at < until
        ),
        decisions=tuple(decided_of(item, refs.get(item.receipt)) for item in decided),
        documents=tuple(dict.fromkeys([*stated.quoted_in, *quoting])),
        receipts=tuple(appendix.read_again(item, rulebook, judged[item.id], facts) for item in sides),
    )


def page(data: ClaimData, rule_set: RuleSet) -> Page:
    """The whole page."""
    verdict = data.verdict
    sections = _sections(data, rule_set)
    facts: list[tuple[str, Cell]] = [
        ("kind", (f"{verdict.kind} on {verdict.metric}{f', {verdict.effect}' if verdict.effect else ''}",)),
        ("target", (plain(verdict.target) if verdict.target else "none is named",)),
        ("lane", (", ".join(map(plain, verdict.lanes)) or "unlisted",)),
        ("added", (f"{data.added:%Y-%m-%d %H:%M} UTC from {plain(data.origin)}",)),
        ("as of", (f"{data.as_of:%Y-%m-%d %H:%M:%S} UTC",)),
    ]
    if data.superseded is not None:
        successor, reason, actor = data.superseded
        how = f"superseded by {plain(successor)}" if successor else "withdrawn"
        who = f", recorded by {plain(actor)}" if actor else ""
        facts.insert(0, ("no longer stands", (f"{how}{who}: {plain(reason, NOTE)}",)))
    sections += [*rules.section(rule_set, sections), appendix.section(data.receipts)]
    return Page(
        f"Claim {plain(verdict.claim)}",
        headline=headline(verdict, plain(verdict.text, 2 * NOTE)),
        facts=tuple(facts),
        sections=tuple(sections),
        foot=(("rules", (Code(verdict.rules[:12]), f" judge {verdict.judge}")),),
    )


def _sections(data: ClaimData, rule_set: RuleSet) -> list[Section]:
    sections = [_why(data), _past(data.past)]
    if data.comparison is not None:
        sections += [_named(item) for item in pair.body(data.comparison, rule_set) if item.id != "decisions"]
    elif data.answers:
        sections.append(_stands_on(data))
    return [*sections, _decisions(data.decisions), _documents(data)]


def _named(item: Section) -> Section:
    """A section of the comparison by a name that the claim's own do not have."""
    return replace(item, title="What rules found of the comparison") if item.id == "findings" else item


def _why(data: ClaimData) -> Section:
    verdict = data.verdict
    weights = {Level.ERROR: "refutes", Level.OPEN: "leaves open", Level.SHOWN: "is shown"}
    rows = (
        (
            *(rule(item.code, item.name), weights[item.level], _place(item)),
            *(plain(item.expected, NOTE), plain(item.do, NOTE)),
        )
        for item in verdict.findings
    )
    intro = (
        f"What its receipts say of the number: {verdict.assessment.state}; {plain(verdict.assessment.why, 2 * NOTE)}."
    )
    table = table_of("What rules on claims found", "why | weight | found | expected | what to do", rows)
    note = Section(
        "footnote", "Footnote", sentences=tuple(plain(line, MOST_OF_NOTE) for line in data.footnote.splitlines())
    )
    return Section("why", "Why", sentences=(intro,), tables=(table,) if table.rows else (), sections=(note,))


def _place(item: Finding) -> Cell:
    """Where a finding is and what it is, which may begin with the place."""
    at, text = plain(item.at), plain(item.found, NOTE)
    return (text,) if text.startswith(at) else (Code(at), f" {text}")


def _past(past: Sequence[Past]) -> Section:
    rows = ((f"{item.at:%Y-%m-%d %H:%M}", item.status, Code(item.rules[:12])) for item in past)
    empty = "No verdict was recorded: receipts claim check --all --record."
    table = table_of("Verdicts that were recorded", "when, UTC | status | rule set", rows, empty=empty)
    return Section("past", "Judged before", tables=(table,))


def _stands_on(data: ClaimData) -> Section:
    refs = tuple(item.receipt for item in data.receipts)
    header = " | ".join(("#launches", "receipts", *(one.question for one in data.answers)))
    cells: tuple[str | Cell, ...] = (number(len(refs)), links(refs, 6), *map(answered, data.answers))
    table = table_of("Its launches; the first answers", header, [cells])
    return Section("sides", "What it stands on", tables=(table,))


def _decisions(decided: Sequence[DecisionRow]) -> Section:
    shown = decisions.table("Decisions on its receipts", decided, empty="Nothing was decided on its receipts.")
    return Section("decisions", "Decisions", tables=(shown,))


def _documents(data: ClaimData) -> Section:
    intro = ("The claim says so itself, or they quote a receipt that it stands on.",) if data.documents else ()
    rows = ((Code(plain(name)),) for name in data.documents)
    table = table_of("Documents that quote it", "document", rows, empty="No document is known that quotes it.")
    return Section("documents", "Quoted in", sentences=intro, tables=(table,))
