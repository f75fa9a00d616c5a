"""The page of one claim: what it says, whether its receipts carry it, how it was judged before, and who quotes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from receipts.judging.judge import judge_receipt
from receipts.judging.verdict import ClaimVerdict
from receipts.publish.claim import headline
from receipts.publish.page import Page
from receipts.publish.report import appendix, pair
from receipts.publish.report.data import Described
from receipts.publish.report.pair import PairData
from receipts.publish.report.template import page as written
from receipts.publish.text import NOTE, plain
from receipts.questions.answers import AnsweredQuestion, answers
from receipts.questions.claims.judgment import judge
from receipts.questions.claims.wording import footnote
from receipts.questions.week.events import DecisionRow, decided_of
from receipts.questions.week.ref import ref_of

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook, RuleSet
    from receipts.store import Store

SCHEMA = "1.0"


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
    from receipts.judging.claim import claim_from_json
    from receipts.questions.claims.judgment import gather

    until = as_of + timedelta(microseconds=1)
    kept = store.published.claim(claim_id)
    stated = claim_from_json(kept.body, f"claim {kept.id}")
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


def page(data: ClaimData, rule_set: RuleSet, folders: Sequence[Path] = ()) -> Page:
    """The whole page."""
    given, values = pair.body(data.comparison, rule_set) if data.comparison is not None else ([], {"pair": None})
    # Its own findings are above those of the comparison.
    given = [replace(one, title="What rules found of the comparison") if one.id == "findings" else one for one in given]
    values |= {"data": data, "own": False, "headline": headline(data.verdict, plain(data.verdict.text, 2 * NOTE))}
    shown = written("claim/page.j2", values, folders, sections=given)
    sections = (
        *shown.sections,
        *appendix.rules_section(rule_set, shown.sections),
        appendix.receipts_section(data.receipts),
    )
    return replace(shown, sections=sections)
