"""The store: the only part that talks to a database. SQLite by default, PostgreSQL by URL, one code for both.

Receipts, documents and verdicts are append-only, held by triggers; what happens to a receipt later is a row that is
added. See `tables` for the schema, `schema` for making, upgrading and checking it.
"""

from __future__ import annotations

from receipts.store.entries import Entry
from receipts.store.history.claim_rows import NewClaim, StoredClaim, StoredClaimVerdict
from receipts.store.history.decisions import Decision, Quote
from receipts.store.history.pins import Pin
from receipts.store.history.verdicts import StoredVerdict
from receipts.store.history.withdrawals import Supersession
from receipts.store.query.lists import Condition, Filters, ListPlan, condition
from receipts.store.store import Store, open_store
from receipts.store.write.submission import Prepared, Submitted, prepare

__all__ = [
    "Condition",
    "Decision",
    "Entry",
    "Filters",
    "ListPlan",
    "NewClaim",
    "Pin",
    "Prepared",
    "Quote",
    "Store",
    "StoredClaim",
    "StoredClaimVerdict",
    "StoredVerdict",
    "Submitted",
    "Supersession",
    "condition",
    "open_store",
    "prepare",
]
