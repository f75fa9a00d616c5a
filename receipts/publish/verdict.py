"""Verdicts: the page of a check, the result of a submit, and the page of a claim.

A check shows the status and its reason, every finding, and what is missing by weight. A submit shows one line a
document, and what came of all together, with why some are invalid. A claim shows its status with the reason, what rules
found, what it would hold with, and its past. Decisions are a section wherever a receipt is quoted that one was made on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from receipts.axes.inputs import leaf as last_part
from receipts.base.errors import InputError
from receipts.judging.findings import grouped, reason
from receipts.judging.verdict import Finding, Level, ReceiptVerdict
from receipts.publish import offenses
from receipts.publish.offenses import entries, lacks_sentence, weighed_lacks
from receipts.publish.page import Cell, Facts, Mark, Page, Section, lines_of, marked, points_of, sections_of, table_of
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.ingest.assembly import Ingested
    from receipts.judging.verdict import ClaimVerdict
    from receipts.questions.claims.stored import ClaimHistory, Impact
    from receipts.store import Decision, Submitted
    from receipts.workflows.submit import Submission


say = words("receipt")
_NUMBER: Final = re.compile(r"\d+")


def offense(errors: Sequence[Sequence[Finding]]) -> Iterator[str]:
    """Why a receipt is invalid: the first error, and how many more there are."""
    first = errors[0][0]
    yield say("offense", name=first.name.replace("_", " "), code=first.code, reason=reason(first))
    if len(errors) > 1:
        yield say("more", n=len(errors) - 1)


def fallen(replaced: tuple[str, str] | None) -> Cell:
    """That a receipt no longer stands, and why, before anything else is said of it."""
    if replaced is None:
        return ()
    by, why = replaced
    text = say("replaced", id=by[:12], reason=why) if by else say("withdrawn", reason=why)
    return (Mark("no", say("superseded" if by else "retracted")), f"  {text}; ")


def page(
    verdict: ReceiptVerdict,
    source: str,
    *,
    missing: bool = False,
    undeclared: tuple[str, str] | None = None,
    replaced: tuple[str, str] | None = None,
) -> Page:
    """The whole page; with ``missing`` what is missing and what to do about it, in place of the findings.

    ``undeclared`` is the name of a lane that nobody declared, and which names are near it. ``replaced`` are the
    successor (empty where it was retracted) and the reason of a receipt that no longer stands.
    """
    groups = grouped(verdict.findings)
    name = verdict.label or verdict.receipt[:12]
    unknown = [say("undeclared", lane=undeclared[0], near=undeclared[1])] if undeclared else []
    reasons = [name]
    if errors := groups.at(Level.ERROR):
        reasons += offense(errors)
    elif verdict.status != "valid" and (lacking := offenses.weighed_lacks(groups)):
        reasons.append(offenses.lacks_sentence(lacking, source))
    by = [("", (say("path_by", ids=", ".join(item[:12] for item in verdict.witnesses)),))] if verdict.witnesses else []
    if missing:
        section = Section("missing", "", tables=(offenses.lacks_table(offenses.weighed_lacks(groups)),))
    else:
        section = Section("findings", "", entries=entries(verdict.findings))
    return Page(
        title=name,
        headline=(
            *fallen(replaced),
            marked(verdict.status, say(verdict.status)),
            f"  {'; '.join(reasons)}",
        ),
        facts=tuple(("", (text,)) for text in (say("checked", id=verdict.receipt[:12], lane=verdict.lane), *unknown)),
        sections=sections_of(section),
        foot=(*by, ("", (grade(verdict),)), ("", status(verdict))),
    )


def line(verdict: ReceiptVerdict, replaced: tuple[str, str] | None = None) -> Cell:
    """The verdict in one line, after the receipt's name."""
    return (f"{verdict.label or verdict.receipt[:12]}: ", *fallen(replaced), *status(verdict))


def grade(verdict: ReceiptVerdict) -> str:
    """What the receipt's word rests on."""
    why = f": {verdict.grade_why}" if verdict.grade_why else ""
    return say("grade", grade=verdict.grade, why=why)


def status(verdict: ReceiptVerdict) -> Cell:
    """The verdict in one line."""
    kinds = say("tainted", kinds=", ".join(verdict.tainted)) if verdict.tainted else ""
    return (say("verdict", status=verdict.status, path=verdict.path, tainted=kinds),)


say_submit = words("submit")

MAX_REASONS = 2
ORDER = ("valid", "invalid", "open")


def submission_json(stored: Submitted) -> dict[str, Any]:
    """The result of one stored document, as data."""
    return {
        "id": stored.id,
        "new": stored.new,
        "status": stored.status,
        "submitted_at": stored.at.isoformat(),
        "superseded": list(stored.superseded),
        "stands": stored.stands,
    }


@dataclass
class SubmitSum:
    """Counts of documents, without the documents: a submit may have millions."""

    known: int = 0
    refused: int = 0
    new: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    outcomes: dict[str, Submission] = field(default_factory=dict)  # one of each kind: what an exit code asks for
    kinds: Counter[str] = field(default_factory=Counter)  # what was wrong first with a document that was refused
    span: tuple[datetime, datetime] | None = None  # when the store took in the first and the last that is new
    _examples: dict[str, str] = field(default_factory=dict)

    @property
    def seen(self) -> int:
        """How many documents were counted."""
        return self.new.total() + self.known + self.refused

    def add(self, item: Submission) -> None:
        """Count one document."""
        if item.submitted is None:
            self.refused += 1
            first = item.error.problems[0] if isinstance(item.error, InputError) and item.error.problems else item.error
            self.kinds[_NUMBER.sub("…", str(first).partition("\n")[0])] += 1
        elif item.submitted.new:
            self.new[item.submitted.status] += 1
            at = item.submitted.at
            self.span = (min(at, self.span[0]), max(at, self.span[1])) if self.span else (at, at)
            groups = grouped(item.verdict.findings if item.verdict is not None else ())
            if errors := groups.at(Level.ERROR):
                first_error = errors[0][0]
                self.reasons[first_error.code] += 1
                self._examples.setdefault(first_error.code, reason(first_error))
            elif item.verdict and item.verdict.status == "open" and (missing := weighed_lacks(groups)):
                self.lacking[str(missing[0])] += 1
        else:
            self.known += 1
        kind = item.status if item.stored and item.status is not None else "refused"
        self.outcomes.setdefault(kind, item)

    def sentence(self) -> str:
        """``20 stored: 18 valid, 1 invalid (R302: sdpa_math ran, …), 1 open; 3 were stored before``."""
        lacking = self.lacking.most_common(1)  # what most open receipts lack first
        missing = say_submit("missing", n=lacking[0][1], lack=lacking[0][0]) if lacking else ""
        wrong = [
            say_submit("repeated" if count > 1 else "reason", n=f"{count:,}", code=code, reason=self._examples[code])
            for code, count in self.reasons.most_common(MAX_REASONS)
        ]
        wrong += ["…"] if len(self.reasons) > MAX_REASONS else []
        reasons = {"invalid": "; ".join(wrong), "open": missing}
        statuses = []
        for status in ORDER:
            if count := self.new[status]:
                why, values = reasons.get(status), {"n": f"{count:,}", "status": status}
                statuses.append(say_submit("reasons", reasons=why, **values) if why else say_submit("status", **values))
        parts = [say_submit("sum", n=f"{self.new.total():,}", statuses=", ".join(statuses))] if self.new else []
        parts += [say_submit("before", n=self.known)] if self.known else []
        parts += [say_submit("refused", n=self.refused)] if self.refused else []
        whole = "; ".join(parts) or say_submit("none")
        return say_submit("next", sum=whole) if self.new["open"] else whole


def outcome(item: Submission, *, alone: bool = False) -> Page:
    """One stored receipt: its status, what it replaced and, if it is the only one, what keeps it from being valid."""
    stored = item.submitted
    assert stored is not None  # nothing refused is shown
    lead = []
    if item.verdict is not None and stored.status == "open" and alone:
        lead.append(lacks_sentence(weighed_lacks(grouped(item.verdict.findings)), item.verdict.receipt[:12]))
    lead += [say_submit("supersedes", id=replaced[:12]) for replaced in stored.superseded]
    lead += [say_submit("stands", id=other[:12]) for other in stored.undecided]
    lead += [] if stored.stands else [say_submit("fell")]
    again = "" if stored.new else say_submit("again", at=stored.at)
    name = "" if stored.id.startswith(item.name) else f"  {item.name}"  # a receipt without a label is called by its id
    return Page(item.name, (f"{stored.id[:12]}  ", marked(stored.status), f"{name}{again}"), lead=tuple(lead))


def added(name: str, item: Ingested, *, alone: bool = True) -> Page:
    """What evidence adds to a receipt, and what contradicts it; of several receipts, what it adds is one line each."""
    leaves = [leaf for leaf in item.leaves if leaf.path != "evidence"]
    lead = [
        say_submit("added", leaf=leaf.path, value=str(leaf.value)[:60], where=leaf.where) for leaf in leaves if alone
    ]
    facts = ", ".join(f"{last_part(leaf.path)} {str(leaf.value)[:60]}" for leaf in leaves)
    headline = say_submit("added_to", name=name, facts=facts) if facts and not alone else name
    for other in item.contradictions:
        lead.append(
            say_submit("contradicts", leaf=other.path, what=other.what, stands=other.stands or say_submit("unstated"))
        )
    return Page(name, (headline,), lead=tuple(lead))


def decision_sentence(item: Decision) -> str:
    """One decision in a line."""
    who = f" by {item.actor}" if item.actor else ""
    return f"{item.decision} ({item.at:%Y-%m-%d}{who}): {item.reason}"


def decisions(items: Sequence[Decision]) -> Section:
    """The decisions, oldest first."""
    return Section(
        "decided", "Decided", points=points_of((item.receipt[:12], decision_sentence(item)) for item in items)
    )


say_claim = words("claim")

MAX_CLAIM_REASONS = 6
STATUSES = ("supported", "refuted", "unproven", "stale")


def claim_page(verdict: ClaimVerdict) -> Page:
    """One claim with its verdict and reasons."""
    quoted = {f"{item.code} {item.found}" for item in verdict.findings} | {item.found for item in verdict.findings}
    reasons = [item for item in verdict.reasons if item not in quoted]
    lines = reasons[:MAX_CLAIM_REASONS]
    lines += [say_claim("more", n=len(reasons) - MAX_CLAIM_REASONS)] if len(reasons) > MAX_CLAIM_REASONS else []
    lines += [say_claim("would_hold", effects=", ".join(verdict.would_hold))] if verdict.would_hold else []
    lines += [verdict.assessment.why] if verdict.status == "supported" else []
    sections = sections_of(
        Section("findings", "", entries=entries(verdict.findings)), Section("reasons", "", points=lines_of(lines))
    )
    facts: Facts = (("", (verdict.text,)),)
    return Page(verdict.claim, claim_headline(verdict, verdict.claim), facts=facts, sections=sections)


def claim_headline(verdict: ClaimVerdict, about: str) -> Cell:
    """The status and what the claim is about; of a stale one, what it would be."""
    other = f"; {say_claim('otherwise', status=verdict.otherwise)}" if verdict.otherwise != verdict.status else ""
    return (marked(verdict.status, say_claim(verdict.status)), f"  {about}{other}")


def together(verdicts: Sequence[ClaimVerdict]) -> list[Page]:
    """Several claims: how many came out how, then each."""
    return [Page("Claims", total(verdicts)), *map(claim_page, verdicts)]


def total(verdicts: Sequence[ClaimVerdict]) -> Cell:
    """How many claims came out how."""
    counts: Counter[str] = Counter(item.status for item in verdicts)
    parts: list[Mark | str] = []
    for status in STATUSES:
        if count := counts[status]:
            parts += [f"{', ' if parts else ''}{count} ", marked(status)]
    return (say_claim("total", n=len(verdicts)), *(parts or [say_claim("none")]))


def history(item: ClaimHistory) -> Page:
    """A stored claim: its verdict now, where it is from, its past, and the decisions on its receipts."""
    shown = claim_page(item.verdict)
    rows = ((f"{one.at:%Y-%m-%d %H:%M}", one.status, one.rules[:12]) for one in item.before)
    past = table_of(say_claim("judged"), f"{say_claim('when')} | status | rule set", rows, empty=say_claim("never"))
    lines = [say_claim("added", at=item.stored.at, origin=item.stored.origin, who=item.stored.actor or "not recorded")]
    if (gone := item.stored.superseded) is not None:
        given = {"reason": gone.reason, "who": gone.actor or "not recorded"}
        lines.append(
            say_claim("superseded", by=gone.successor, **given) if gone.successor else say_claim("withdrawn", **given)
        )
    if item.claim.quoted_in:
        lines.append(say_claim("quoted", places=", ".join(item.claim.quoted_in)))
    stored = Section("stored", "", points=lines_of(lines))
    sections = (
        *shown.sections,
        stored,
        Section("judged", say_claim("judged"), tables=(past,)),
        decisions(item.decisions),
    )
    return Page(shown.title, shown.headline, facts=shown.facts, sections=sections_of(*sections))


def impacted(item: Impact) -> Page:
    """What depends on a receipt: claims, documents, and the decisions on it."""
    name = item.receipt[:12]
    if item.superseded is None:
        headline = say_claim("stands", receipt=name)
    else:
        successor, reason = item.superseded
        how = say_claim("superseded_by", by=successor[:12]) if successor else say_claim("retracted")
        headline = say_claim("fell", receipt=name, how=how, reason=reason)
    rows = ((claim.id, claim.kind, claim.text) for _, claim in item.claims)
    claims = table_of("", "claim | kind | says", rows, empty=say_claim("no_claim"))
    quoted = {one.document: one.says or "" for one in item.quotes}
    places = ((place, quoted.get(place, "")) for place in item.documents)
    documents = table_of("", "document | says", places, empty=say_claim("no_document"))
    tables = (("claims", claims), ("documents", documents))
    parts = (Section(part, say_claim(part), tables=(table,)) for part, table in tables)
    return Page(name, (headline,), sections=sections_of(*parts, decisions(item.decisions)))
