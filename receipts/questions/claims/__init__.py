"""Claims: sentences about performance, and whether their receipts carry them."""

from __future__ import annotations

from receipts.judging.claims.claim import Claim, ClaimsDocument, Shape
from receipts.questions.claims.judge import ClaimEvidence, judge
from receipts.questions.claims.load import ClaimFile, from_json, parse, read, to_json

__all__ = [
    "Claim",
    "ClaimEvidence",
    "ClaimFile",
    "ClaimsDocument",
    "Shape",
    "from_json",
    "judge",
    "parse",
    "read",
    "to_json",
]
