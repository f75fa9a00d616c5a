"""Claims for people: verdict first, then why, then what it stands on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts.cli import output
from receipts.publish.decisions import decisions
from receipts.publish.findings import entries

if TYPE_CHECKING:
    from receipts.judging.claim_verdict import ClaimVerdict
    from receipts.questions.claims.stored import ClaimHistory

MOST_REASONS = 6


def print_verdict(verdict: ClaimVerdict) -> None:
    """One claim with its verdict and reasons."""
    output.line(f"{output.paint(verdict.status, verdict.status)}  {output.paint(verdict.claim, 'head')}")
    output.wrapped(output.clean(verdict.text), 2, 2)
    if verdict.otherwise != verdict.status:
        output.wrapped(f"it would be {verdict.otherwise} if its receipts stood", 2, 4)
    if verdict.findings:
        output.entries(entries(verdict.findings))
    quoted = {f"{item.code} {item.found}" for item in verdict.findings} | {item.found for item in verdict.findings}
    reasons = [item for item in verdict.reasons if item not in quoted]
    for reason in reasons[:MOST_REASONS]:
        output.wrapped(output.clean(reason), 2, 4)
    if len(reasons) > MOST_REASONS:
        output.wrapped(f"and {len(reasons) - MOST_REASONS} more; see --json", 2, 4)
    if verdict.would_hold:
        output.wrapped(f"would hold: {', '.join(verdict.would_hold)}", 2, 4)
    if verdict.status == "supported":
        output.wrapped(output.clean(verdict.assessment.why), 2, 4)


def print_verdicts(verdicts: Sequence[ClaimVerdict]) -> None:
    """Every claim, and how many came out how."""
    for verdict in verdicts:
        print_verdict(verdict)
        output.line()
    counts = {
        name: sum(item.status == name for item in verdicts) for name in ("supported", "refuted", "unproven", "stale")
    }
    totals = ", ".join(f"{count} {output.paint(name, name)}" for name, count in counts.items() if count)
    output.line(f"{len(verdicts)} claim{'s' if len(verdicts) != 1 else ''}: {totals or 'none'}")


def print_history(history: ClaimHistory) -> None:
    """A stored claim: verdict now, then its past, then decisions on its receipts."""
    print_verdict(history.verdict)
    stored = history.stored
    output.line()
    output.wrapped(f"added {stored.at:%Y-%m-%d %H:%M} UTC from {output.clean(stored.origin)}")
    if stored.superseded is not None:
        successor, reason = stored.superseded
        how = f"superseded by {output.clean(successor)}" if successor else "withdrawn"
        output.wrapped(f"{how}: {output.clean(reason)}", 2, 4)
    if history.claim.quoted_in:
        output.wrapped(f"quoted in {output.clean(', '.join(history.claim.quoted_in))}", 2, 4)
    rows = [(f"{item.at:%Y-%m-%d %H:%M}", item.status, item.rules[:12]) for item in history.before]
    output.heading("Judged")
    output.table(("when, UTC", "status", "rule set"), rows, empty="never recorded; receipts claim check --all --record")
    output.sections(decisions(history.decisions))
