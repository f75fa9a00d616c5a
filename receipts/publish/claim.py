"""The page of a claim, and the decisions on receipts.

A claim shows its status with the reason, what rules found, what it would hold with, and its past. Decisions are a
section wherever a receipt is quoted that one was made on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from receipts.publish.offenses import entries
from receipts.publish.page import Cell, Facts, Mark, Page, Section, lines_of, marked, points_of, sections_of, table_of
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.judging.verdict import ClaimVerdict
    from receipts.questions.claims.stored import ClaimHistory, Impact
    from receipts.store import Decision


DECIDED_TITLE = "Decided"


def decision_sentence(item: Decision) -> str:
    """One decision in a line."""
    who = f" by {item.actor}" if item.actor else ""
    return f"{item.decision} ({item.at:%Y-%m-%d}{who}): {item.reason}"


def decisions(items: Sequence[Decision]) -> Section:
    """The decisions, oldest first."""
    return Section(
        "decided", DECIDED_TITLE, points=points_of((item.receipt[:12], decision_sentence(item)) for item in items)
    )


say = words("claim")

MAX_REASONS = 6
STATUSES = ("supported", "refuted", "unproven", "stale")


def page(verdict: ClaimVerdict) -> Page:
    """One claim with its verdict and reasons."""
    sections = sections_of(
        Section("findings", "", entries=entries(verdict.findings)),
        Section("reasons", "", points=lines_of(_lines(verdict))),
    )
    facts: Facts = (("", (verdict.text,)),)
    return Page(verdict.claim, headline(verdict, verdict.claim), facts=facts, sections=sections)


def headline(verdict: ClaimVerdict, about: str) -> Cell:
    """The status and what the claim is about; of a stale one, what it would be."""
    other = f"; {say('otherwise', status=verdict.otherwise)}" if verdict.otherwise != verdict.status else ""
    return (marked(verdict.status, say(verdict.status)), f"  {about}{other}")


def _lines(verdict: ClaimVerdict) -> Iterator[str]:
    """Reasons that no finding repeats, what would hold, and why it is supported."""
    quoted = {f"{item.code} {item.found}" for item in verdict.findings} | {item.found for item in verdict.findings}
    reasons = [item for item in verdict.reasons if item not in quoted]
    yield from reasons[:MAX_REASONS]
    if len(reasons) > MAX_REASONS:
        yield say("more", n=len(reasons) - MAX_REASONS)
    if verdict.would_hold:
        yield say("would_hold", effects=", ".join(verdict.would_hold))
    if verdict.status == "supported":
        yield verdict.assessment.why


def together(verdicts: Sequence[ClaimVerdict]) -> list[Page]:
    """Several claims: how many came out how, then each."""
    return [Page("Claims", total(verdicts)), *map(page, verdicts)]


def total(verdicts: Sequence[ClaimVerdict]) -> Cell:
    """How many claims came out how."""
    counts: Counter[str] = Counter(item.status for item in verdicts)
    parts: list[Mark | str] = []
    for status in STATUSES:
        if count := counts[status]:
            parts += [f"{', ' if parts else ''}{count} ", marked(status)]
    return (say("total", n=len(verdicts)), *(parts or [say("none")]))


def history(item: ClaimHistory) -> Page:
    """A stored claim: its verdict now, where it is from, its past, and the decisions on its receipts."""
    shown = page(item.verdict)
    rows = ((f"{one.at:%Y-%m-%d %H:%M}", one.status, one.rules[:12]) for one in item.before)
    past = table_of(say("judged"), f"{say('when')} | status | rule set", rows, empty=say("never"))
    stored = Section("stored", "", points=lines_of(_stored(item)))
    sections = (*shown.sections, stored, Section("judged", say("judged"), tables=(past,)), decisions(item.decisions))
    return Page(shown.title, shown.headline, facts=shown.facts, sections=sections_of(*sections))


def _stored(item: ClaimHistory) -> Iterator[str]:
    yield say("added", at=item.stored.at, origin=item.stored.origin, who=item.stored.actor or "not recorded")
    gone = item.stored.superseded
    if gone is not None:
        given = {"reason": gone.reason, "who": gone.actor or "not recorded"}
        yield say("superseded", by=gone.successor, **given) if gone.successor else say("withdrawn", **given)
    if item.claim.quoted_in:
        yield say("quoted", places=", ".join(item.claim.quoted_in))


def impacted(item: Impact) -> Page:
    """What depends on a receipt: claims, documents, and the decisions on it."""
    name = item.receipt[:12]
    if item.superseded is None:
        headline = say("stands", receipt=name)
    else:
        successor, reason = item.superseded
        how = say("superseded_by", by=successor[:12]) if successor else say("retracted")
        headline = say("fell", receipt=name, how=how, reason=reason)
    rows = ((claim.id, claim.kind, claim.text) for _, claim in item.claims)
    claims = table_of("", "claim | kind | says", rows, empty=say("no_claim"))
    quoted = {one.document: one.says or "" for one in item.quotes}
    places = ((place, quoted.get(place, "")) for place in item.documents)
    documents = table_of("", "document | says", places, empty=say("no_document"))
    tables = (("claims", claims), ("documents", documents))
    parts = (Section(part, say(part), tables=(table,)) for part, table in tables)
    return Page(name, (headline,), sections=sections_of(*parts, decisions(item.decisions)))
