"""What a store holds of publications: claims, decisions, documents that quote receipts, incidents."""

from __future__ import annotations

from receipts.store.database import Part, asks, changes
from receipts.store.history import claim_rows, events, incidents
from receipts.store.history import decisions as decided


class Published(Part):
    """What people published and decided. Claims are kept as JSON and read by `receipts.questions.claims`, higher up."""

    add_claims = changes(claim_rows.add_claims)
    supersede_claim = changes(claim_rows.supersede)
    record_claims = changes(claim_rows.record)
    claims = asks(claim_rows.stored)
    claim = asks(claim_rows.one_claim)
    claim_verdicts = asks(claim_rows.verdicts_on)
    last_claim_verdict = asks(claim_rows.last_verdict)
    claims_on = asks(claim_rows.claims_on)
    decide = changes(decided.decide)
    decisions = asks(decided.decisions)
    quote = changes(decided.quote)
    quotes = asks(decided.quotes)
    record_incidents = changes(incidents.record)
    incidents = asks(incidents.incidents)
    chronicle = asks(events.chronicle)
