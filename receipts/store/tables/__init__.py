"""The tables, each with what it is for and each column with what it holds.

They hold what happened and nothing that can change: a receipt is superseded, withdrawn, pinned or purged by a row
that is added. Receipts are numbered in the order that the store took them in (`seq`), and parts of one receipt refer
to that number; what has to outlive a purge, or to mean the same in another store, refers to the receipt's id.
"""

from __future__ import annotations

from typing import Final

from receipts.store.tables.columns import Number, Utc, Words, content_columns, metadata, rules_of
from receipts.store.tables.publication import (
    claim_subjects,
    claim_supersessions,
    claim_verdicts,
    claims,
    decisions,
    envelopes,
    erased,
    incidents,
    quotes,
    seals,
    tokens,
    trusted_keys,
)
from receipts.store.tables.receipt import (
    axes,
    axis_values,
    configurations,
    documents,
    extracts,
    pins,
    placements,
    purges,
    receipts,
    signatures,
    stores,
    subjects,
    supersessions,
    verdicts,
    version,
)

HEAD: Final = "0002"
EARLIER: Final = frozenset({"0001"})  # those that the migrations start from
# Rebuilt from the documents at any time; a table that refers to another comes before it.
REBUILT: Final = tuple(table for table in reversed(metadata.tables.values()) if rules_of(table).rebuilt)

__all__ = [
    "EARLIER",
    "HEAD",
    "REBUILT",
    "Number",
    "Utc",
    "Words",
    "axes",
    "axis_values",
    "claim_subjects",
    "claim_supersessions",
    "claim_verdicts",
    "claims",
    "configurations",
    "content_columns",
    "decisions",
    "documents",
    "envelopes",
    "erased",
    "extracts",
    "incidents",
    "metadata",
    "pins",
    "placements",
    "purges",
    "quotes",
    "receipts",
    "rules_of",
    "seals",
    "signatures",
    "stores",
    "subjects",
    "supersessions",
    "tokens",
    "trusted_keys",
    "verdicts",
    "version",
]
