"""Verdicts: kept beside the receipts that they speak of, each under its rule set, none ever replaced.

The sides of a verdict are its receipts, in the order in which it has them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import Connection, insert, select

from receipts.base.errors import NotFound
from receipts.judging.verdict import VERDICT_VERSION, ClaimVerdict, Comparison, ReceiptVerdict, verdict_to_json
from receipts.store.database import By
from receipts.store.documents import CODEC, pack, unpack
from receipts.store.tables import claim_subjects, receipts, subjects, verdicts

Sides = Mapping[int, list[tuple[str, Any]]]
SidesOf = Callable[[Connection, Sequence[int]], Sides]


def sides_of(connection: Connection, verdicts: Sequence[int]) -> Sides:
    """Sides and ids by the numbers of verdicts, at most a few hundred; an id is None where the receipt is gone."""
    query = (
        select(subjects.c.verdict, subjects.c.side, receipts.c.id)
        .outerjoin(receipts, receipts.c.seq == subjects.c.receipt)
        .where(subjects.c.verdict.in_(verdicts))
        .order_by(subjects.c.verdict, subjects.c.position)
    )
    return _grouped(connection.execute(query))


def sides_of_claims(connection: Connection, verdicts: Sequence[int]) -> Sides:
    """The same of verdicts on claims."""
    table = claim_subjects
    query = select(table.c.verdict, table.c.side, table.c.receipt).where(table.c.verdict.in_(verdicts))
    return _grouped(connection.execute(query.order_by(table.c.verdict, table.c.position)))


SIDES: Final[Mapping[str, SidesOf]] = {"verdicts": sides_of, "claim_verdicts": sides_of_claims}


def _grouped(rows: Any) -> Sides:
    grouped: dict[int, list[tuple[str, Any]]] = defaultdict(list)
    for number, side, receipt in rows:
        grouped[number].append((side, receipt))
    return grouped


Verdict = ReceiptVerdict | Comparison
_NAMES: Final = tuple(field.name for field in fields(ReceiptVerdict))


class StoredVerdict(NamedTuple):
    """A verdict as it was given. `document` is its JSON (``schema/verdict-1.schema.json``), times are in UTC.

    `kind` is ``receipt`` or ``comparison``, `rules` the digest of the rule set, `judge` the judge's version.
    """

    seq: int
    kind: str
    status: str
    metric: str | None
    rules: str
    judge: str
    judged_at: datetime
    document: dict[str, Any]


def packed_verdict(verdict: Verdict | ClaimVerdict) -> bytes:
    """A verdict's JSON, packed."""
    try:
        if isinstance(verdict, ReceiptVerdict):  # orjson reads data classes by itself, ten times as fast as `to_json`
            plain = {"schema_version": VERDICT_VERSION, **{name: getattr(verdict, name) for name in _NAMES}}
            return pack(orjson.dumps(plain))
        return pack(orjson.dumps(verdict_to_json(verdict), default=_plain))
    except TypeError:
        # A feature may be an integer of more than 64 bits, which orjson refuses.
        return pack(json.dumps(verdict_to_json(verdict), default=_plain, separators=(",", ":")).encode())


def verdict_row(verdict: Verdict, at: datetime) -> dict[str, Any]:
    """The row of a verdict, but for its number."""
    return {
        "kind": "comparison" if isinstance(verdict, Comparison) else "receipt",
        "status": verdict.status,
        "metric": verdict.metric if isinstance(verdict, Comparison) else None,
        "rules": verdict.rules,
        "judge": verdict.judge,
        "judged_at": at,
        "codec": CODEC,
        "body": packed_verdict(verdict),
    }


def add_verdict(connection: Connection, verdict: Verdict, of: Sequence[tuple[str, int]], at: datetime) -> int:
    """Write a verdict on the receipts of these sides and numbers; gives the verdict's number."""
    key = connection.execute(insert(verdicts).values(**verdict_row(verdict, at))).inserted_primary_key
    assert key is not None
    seq: int = key[0]
    rows = [
        {"verdict": seq, "position": position, "side": side, "receipt": number}
        for position, (side, number) in enumerate(of)
    ]
    connection.execute(insert(subjects), rows)
    return seq


def _plain(value: Any) -> Any:
    """What orjson does not know: sets, and enumerations of other types."""
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def record(connection: Connection, by: By, verdict: Verdict) -> int:
    """Keep a verdict on stored receipts; gives its number. Raises NotFound where one of them is not stored."""
    if isinstance(verdict, Comparison):
        sides = [*(("a", item) for item in verdict.a), *(("b", item) for item in verdict.b)]
    else:
        sides = [("receipt", verdict.receipt)]
    query = select(receipts.c.id, receipts.c.seq).where(receipts.c.id.in_([item for _, item in sides]))
    numbers: dict[str, int] = {row.id: row.seq for row in connection.execute(query)}
    missing = sorted({item[:12] for _, item in sides if item not in numbers})
    if missing:
        raise NotFound(f"a verdict is kept for stored receipts only; submit {', '.join(missing)} first")
    return add_verdict(connection, verdict, [(side, numbers[item]) for side, item in sides], by.at)


def of(connection: Connection, receipt_id: str) -> list[StoredVerdict]:
    """Every verdict on a receipt, alone or in a comparison, oldest first."""
    numbers = (
        select(subjects.c.verdict)
        .join(receipts, receipts.c.seq == subjects.c.receipt)
        .where(receipts.c.id == receipt_id)
    )
    columns = (verdicts.c[name] for name in (*StoredVerdict._fields[:-1], "codec", "body"))
    query = select(*columns).where(verdicts.c.seq.in_(numbers)).order_by(verdicts.c.seq)
    return [
        StoredVerdict._make([*values, json.loads(unpack(codec, body, f"verdict {values[0]}"))])
        for *values, codec, body in connection.execute(query)
    ]
