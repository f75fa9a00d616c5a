"""What a store holds of publications: claims, decisions, documents that quote receipts, incidents."""

from __future__ import annotations

from receipts.store.database import Repository, reads, writes
from receipts.store.history import claim_rows, events, incidents
from receipts.store.history import decisions as decided


class Published(Repository):
    """What people published and decided. Claims are kept as JSON and read by `receipts.questions.claims`, higher up."""

    add_claims = writes(claim_rows.add_claims)
    supersede_claim = writes(claim_rows.supersede)
    record_claims = writes(claim_rows.record)
    claims = reads(claim_rows.stored)
    claim = reads(claim_rows.one_claim)
    claim_verdicts = reads(claim_rows.verdicts_on)
    last_claim_verdict = reads(claim_rows.last_verdict)
    claims_on = reads(claim_rows.claims_on)
    decide = writes(decided.decide)
    decisions = reads(decided.decisions)
    quote = writes(decided.quote)
    quotes = reads(decided.quotes)
    record_incidents = writes(incidents.record)
    incidents = reads(incidents.incidents)
    events_between = reads(events.events_between)
