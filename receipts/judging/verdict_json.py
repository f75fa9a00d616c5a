"""A verdict as JSON-able data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from receipts.judging.claim_verdict import ClaimVerdict
from receipts.judging.verdict import Comparison, ReceiptVerdict

SCHEMA_VERSION = "1.0"  # of a verdict as JSON


def to_json(verdict: ReceiptVerdict | Comparison | ClaimVerdict) -> dict[str, Any]:
    """The verdict as JSON-able data; its schema is ``schema/verdict-1.schema.json``."""
    document = asdict(verdict)
    if isinstance(verdict, Comparison):
        document["counted"] = list(verdict.counted)
        document["owed"] = verdict.owed
    if isinstance(verdict, ClaimVerdict):
        document["reasons"] = list(verdict.reasons)
        if verdict.comparison is not None:
            document["comparison"] = to_json(verdict.comparison)
    return {"schema_version": SCHEMA_VERSION, **document}
