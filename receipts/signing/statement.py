"""In-toto statements v1 (https://in-toto.io/Statement/v1): a verdict as a predicate on receipts by their SHA-256."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

TYPE: Final = "https://in-toto.io/Statement/v1"
# A name and no place to visit; its number changes with its meaning.
PREDICATE: Final = "https://frontier-receipts.invalid/verdict/v1"


def statement(kind: str, subjects: Mapping[str, str], rules: str, verdict: Mapping[str, Any]) -> bytes:
    """The statement's bytes: the same verdict on the same subjects gives the same bytes.

    ``subjects`` are names by the SHA-256 of what they name, in hex; that of a receipt is its id.
    """
    values = {
        "_type": TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for digest, name in sorted(subjects.items())],
        "predicateType": PREDICATE,
        "predicate": {"kind": kind, "rules": rules, "verdict": dict(verdict)},
    }
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode()
