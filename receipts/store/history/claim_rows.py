"""Claims as rows: added, judged and superseded, each in its own table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, insert, select

from receipts.base.errors import ConflictError, NotFound, UsageError
from receipts.judging.claim_verdict import ClaimVerdict
from receipts.judging.verdict_json import to_json
from receipts.store.database import By
from receipts.store.history.sides import sides_of_claims
from receipts.store.packing import CODEC, pack, unpack
from receipts.store.tables import claim_subjects, claim_supersessions, claim_verdicts, claims


class NewClaim(NamedTuple):
    """A claim to be added: `body` is its JSON. `supersedes` names the claim that it replaces, for `reason`."""

    id: str
    kind: str
    body: str
    origin: str
    supersedes: str | None = None
    reason: str | None = None


class Replaced(NamedTuple):
    """A claim, or a receipt, that was superseded; `successor` is None where it was withdrawn. Time in UTC."""

    id: str
    successor: str | None
    reason: str
    at: datetime
    actor: str | None


class StoredClaim(NamedTuple):
    """A claim as it was added; `superseded` is None where it stands."""

    id: str
    kind: str
    body: str
    origin: str
    at: datetime
    superseded: Replaced | None
    actor: str | None = None


class StoredClaimVerdict(NamedTuple):
    """A verdict on a claim as it was given. `receipts` are those that it stood on, as side and id."""

    seq: int
    claim: str
    status: str
    rules: str
    judge: str
    at: datetime
    receipts: tuple[tuple[str, str], ...]
    document: dict[str, Any]


def add_claims(connection: Connection, new: Sequence[NewClaim], by: By) -> list[str]:
    """Add claims, all or none; see `Published.add_claims`."""
    added = []
    for item in new:
        there = connection.execute(select(claims).where(claims.c.id == item.id)).first()
        if there is not None and json.loads(there.body) == json.loads(item.body):
            continue
        if there is not None:
            raise ConflictError(
                f"{item.origin}: a claim {item.id} was added on {there.at:%Y-%m-%d} and says something else; claims "
                f'are never edited: give this one another id, with supersedes = "{item.id}" and a reason'
            )
        row = {"id": item.id, "kind": item.kind, "body": item.body, "origin": item.origin, **by._asdict()}
        connection.execute(insert(claims).values(**row))
        added.append(item.id)
    # When all are there, so that the order in a file does not matter.
    for item in new:
        if item.id in added and item.supersedes is not None:
            supersede(connection, item.supersedes, item.id, item.reason or "", by)
    return added


def supersede(connection: Connection, claim: str, successor: str | None, reason: str, by: By) -> None:
    """Say that a claim no longer stands. Raises NotFound, UsageError, ConflictError where that was said already."""
    if not reason.strip():
        raise UsageError(f'say why {claim} no longer stands: --reason "…", or reason = "…" in claims.toml')
    if successor == claim:
        raise UsageError(f"{claim} cannot supersede itself")
    for name in (claim, *([successor] if successor else [])):
        one_claim(connection, name)
    gone = superseded(connection, [claim]).get(claim)
    if gone is not None:
        how = f"superseded by {gone.successor}" if gone.successor else "withdrawn"
        raise ConflictError(f"claim {claim} was {how} already: {gone.reason}")
    row = {"claim": claim, "successor": successor, "reason": reason, **by._asdict()}
    connection.execute(insert(claim_supersessions).values(**row))


def as_stored(row: Any, gone: Replaced | None) -> StoredClaim:
    """A row of `claims`, with what became of it."""
    return StoredClaim(row.id, row.kind, row.body, row.origin, row.at, gone, row.actor)


def one_claim(connection: Connection, claim: str) -> StoredClaim:
    """The claim of an id. Raises NotFound."""
    row = connection.execute(select(claims).where(claims.c.id == claim)).first()
    if row is None:
        raise NotFound(f"there is no claim {claim!r}; see: receipts claim list")
    return as_stored(row, superseded(connection, [claim]).get(claim))


def superseded(connection: Connection, of: Sequence[str] | None = None) -> dict[str, Replaced]:
    """What became of some claims, or of all, by id: those that stand are left out."""
    query = select(claim_supersessions).order_by(claim_supersessions.c.seq)
    if of is not None:
        query = query.where(claim_supersessions.c.claim.in_(of))
    rows = connection.execute(query)
    return {row.claim: Replaced(row.claim, row.successor, row.reason, row.at, row.actor) for row in rows}


def record(connection: Connection, verdict: ClaimVerdict, at: datetime) -> int:
    """Keep a verdict on a claim with the receipts that it stood on; gives its number."""
    values = {
        "claim": verdict.claim,
        "status": verdict.status,
        "rules": verdict.rules,
        "judge": verdict.judge,
        "at": at,
        "codec": CODEC,
        "body": pack(_json(verdict)),
    }
    key = connection.execute(insert(claim_verdicts).values(**values)).inserted_primary_key
    assert key is not None
    seq: int = key[0]
    sides = [*(("baseline", item) for item in verdict.baseline), *(("candidate", item) for item in verdict.candidate)]
    rows = [
        {"verdict": seq, "position": index, "side": side, "receipt": receipt}
        for index, (side, receipt) in enumerate(sides)
    ]
    if rows:
        connection.execute(insert(claim_subjects), rows)
    return seq


def _json(verdict: ClaimVerdict) -> bytes:
    document = to_json(verdict)
    try:
        return orjson.dumps(document, default=str)
    except TypeError:
        # A feature may be an integer of more than 64 bits, which orjson refuses.
        return json.dumps(document, default=str, separators=(",", ":")).encode()


def as_verdicts(connection: Connection, rows: Sequence[Any]) -> list[StoredClaimVerdict]:
    """Rows of `claim_verdicts`, with the receipts that each stood on."""
    sides = sides_of_claims(connection, [row.seq for row in rows])

    def document(row: Any) -> Any:
        return json.loads(unpack(row.codec, row.body, f"verdict {row.seq} on claim {row.claim}"))

    return [
        StoredClaimVerdict(
            *(row.seq, row.claim, row.status, row.rules, row.judge, row.at), tuple(sides[row.seq]), document(row)
        )
        for row in rows
    ]
