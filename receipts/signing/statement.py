"""In-toto statements v1 (https://in-toto.io/Statement/v1): a verdict as a predicate on receipts by their SHA-256."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

TYPE: Final = "https://in-toto.io/Statement/v1"
# A name and no place to visit; its number changes with its meaning.
PREDICATE: Final = "https://frontier-receipts.invalid/verdict/v1"


class Subject(NamedTuple):
    """What a statement is about: its name and the SHA-256 of its bytes, in hex. A receipt's SHA-256 is its id."""

    name: str
    digest: str


def statement(kind: str, subjects: Iterable[Subject], rules: str, verdict: Mapping[str, Any]) -> bytes:
    """The statement's bytes: the same verdict on the same subjects gives the same bytes."""
    ordered = sorted(set(subjects), key=lambda item: (item.digest, item.name))
    values = {
        "_type": TYPE,
        "subject": [{"name": item.name, "digest": {"sha256": item.digest}} for item in ordered],
        "predicateType": PREDICATE,
        "predicate": {"kind": kind, "rules": rules, "verdict": dict(verdict)},
    }
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode()
