"""The result of a submit: of one document, and of all together, with why some are invalid."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from receipts.judging.verdict import Level
from receipts.publish.findings import grouped, reason
from receipts.publish.lacks import sentence, weighed
from receipts.publish.page import Page, marked
from receipts.publish.readings import leaf as last_part
from receipts.publish.words import words

if TYPE_CHECKING:
    from receipts.ingest import Ingested
    from receipts.judging.verdict import Finding, ReceiptVerdict
    from receipts.store import Submitted
    from receipts.workflows.submit import Submission

say = words("submit")

MOST_REASONS = 2
ORDER = ("valid", "invalid", "open")


def as_data(stored: Submitted) -> dict[str, Any]:
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
    _examples: dict[str, str] = field(default_factory=dict)

    @property
    def seen(self) -> int:
        """How many documents were counted."""
        return self.new.total() + self.known + self.refused

    def add(self, item: Submission) -> None:
        """Count one document."""
        if item.submitted is None:
            self.refused += 1
        elif item.submitted.new:
            self.new[item.submitted.status] += 1
            if item.verdict is not None:
                self._explain(item.verdict)
        else:
            self.known += 1
        kind = item.status if item.stored and item.status is not None else "refused"
        self.outcomes.setdefault(kind, item)

    def _explain(self, verdict: ReceiptVerdict) -> None:
        groups = grouped(verdict.findings)
        errors = groups.at(Level.ERROR)
        if errors:
            first: Finding = errors[0][0]
            self.reasons[first.code] += 1
            self._examples.setdefault(first.code, reason(first))
        elif verdict.status == "open" and (missing := weighed(groups)):
            self.lacking[str(missing[0])] += 1

    def sentence(self) -> str:
        """``20 stored: 18 valid, 1 invalid (R302: sdpa_math ran, …), 1 open; 3 were stored before``."""
        parts = [say("sum", n=f"{self.new.total():,}", statuses=self._statuses())] if self.new else []
        parts += [say("before", n=self.known)] if self.known else []
        parts += [say("refused", n=self.refused)] if self.refused else []
        whole = "; ".join(parts) or say("none")
        return say("next", sum=whole) if self.new["open"] else whole

    def _statuses(self) -> str:
        parts = []
        for status in ORDER:
            if count := self.new[status]:
                why = {"invalid": self._why, "open": self._missing}.get(status, str)()
                values = {"n": f"{count:,}", "status": status}
                parts.append(say("reasons", reasons=why, **values) if why else say("status", **values))
        return ", ".join(parts)

    def _why(self) -> str:
        common = self.reasons.most_common(MOST_REASONS)
        texts = [
            say("repeated" if count > 1 else "reason", n=f"{count:,}", code=code, reason=self._examples[code])
            for code, count in common
        ]
        return "; ".join([*texts, "…"] if len(self.reasons) > MOST_REASONS else texts)

    def _missing(self) -> str:
        """What most open receipts lack first."""
        common = self.lacking.most_common(1)
        return say("missing", n=common[0][1], lack=common[0][0]) if common else ""


def outcome(item: Submission, *, alone: bool = False) -> Page:
    """One stored receipt: its status, what it replaced and, if it is the only one, what keeps it from being valid."""
    stored = item.submitted
    assert stored is not None  # nothing refused is shown
    lead = []
    if item.verdict is not None and stored.status == "open" and alone:
        lead.append(sentence(weighed(grouped(item.verdict.findings)), item.verdict.receipt[:12]))
    lead += [say("supersedes", id=replaced[:12]) for replaced in stored.superseded]
    lead += [say("stands", id=other[:12]) for other in stored.undecided]
    lead += [] if stored.stands else [say("fell")]
    again = "" if stored.new else say("again", at=stored.at)
    return Page(item.name, (f"{stored.id[:12]}  ", marked(stored.status), f"  {item.name}{again}"), lead=tuple(lead))


def added(name: str, item: Ingested, *, alone: bool = True) -> Page:
    """What evidence adds to a receipt, and what contradicts it; of several receipts, what it adds is one line each."""
    leaves = [leaf for leaf in item.leaves if leaf.path != "evidence"]
    lead = [say("added", leaf=leaf.path, value=str(leaf.value)[:60], where=leaf.where) for leaf in leaves if alone]
    facts = ", ".join(f"{last_part(leaf.path)} {str(leaf.value)[:60]}" for leaf in leaves)
    headline = say("added_to", name=name, facts=facts) if facts and not alone else name
    for other in item.contradictions:
        lead.append(say("contradicts", leaf=other.path, what=other.what, stands=other.stands or say("unstated")))
    return Page(name, (headline,), lead=tuple(lead))
