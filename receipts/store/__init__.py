"""The store: the only part that talks to a database. SQLite by default, PostgreSQL by URL, one code for both.

Receipts, documents and verdicts are append-only, held by triggers; what happens to a receipt later is a row that is
added. See `tables` for the schema, `schema` for making, upgrading and checking it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from receipts import lazy

if TYPE_CHECKING:
    from receipts.store.decisions import Decision, Pin, Quote, Supersession
    from receipts.store.entry import Entry
    from receipts.store.query import Condition, condition
    from receipts.store.query.lists import Filters, ListPlan
    from receipts.store.store import Store, open_store
    from receipts.store.submission import Prepared, Submitted, prepare
    from receipts.store.verdicts import NewClaim, StoredClaim, StoredClaimVerdict, StoredVerdict
else:
    # SQLAlchemy takes half the time of a command that needs no store.
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "receipts.store.decisions": "Decision Pin Quote Supersession",
            "receipts.store.entry": "Entry",
            "receipts.store.query": "Condition condition",
            "receipts.store.query.lists": "Filters ListPlan",
            "receipts.store.store": "Store open_store",
            "receipts.store.submission": "Prepared Submitted prepare",
            "receipts.store.verdicts": "NewClaim StoredClaim StoredClaimVerdict StoredVerdict",
        },
    )

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
