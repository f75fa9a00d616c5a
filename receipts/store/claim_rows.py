"""Claims as rows: added, judged and superseded, each in its own table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, func, insert, select

from receipts.base.errors import ConflictError, NotFound, UsageError
from receipts.judging.verdict import ClaimVerdict
from receipts.store.database import By
from receipts.store.documents import CODEC, unpack
from receipts.store.tables import claim_subjects, claim_supersessions, claim_verdicts, claims
from receipts.store.verdicts import packed_verdict, sides_of_claims


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


def add_claims(connection: Connection, by: By, new: Sequence[NewClaim]) -> list[str]:
    """Add claims, all or none; gives the ids of those that were not there yet.

    The same claim again is harmless. Raises ConflictError where another of that id is there, or what one replaces was
    replaced already, and NotFound where that is not there.
    """
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
            supersede(connection, by, item.supersedes, item.id, item.reason or "")
    return added


def supersede(connection: Connection, by: By, claim: str, successor: str | None, reason: str) -> None:
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


def stored(connection: Connection, *, standing: bool = True) -> list[StoredClaim]:
    """Claims in the order in which they were added; those alone that stand, unless told otherwise."""
    gone = superseded(connection)
    rows = connection.execute(select(claims).order_by(claims.c.seq))
    return [_as_stored(row, gone.get(row.id)) for row in rows if not (standing and row.id in gone)]


def one_claim(connection: Connection, claim: str) -> StoredClaim:
    """The claim of an id. Raises NotFound."""
    row = connection.execute(select(claims).where(claims.c.id == claim)).first()
    if row is None:
        raise NotFound(f"there is no claim {claim!r}; see: receipts claim list")
    return _as_stored(row, superseded(connection, [claim]).get(claim))


def _as_stored(row: Any, gone: Replaced | None) -> StoredClaim:
    return StoredClaim(row.id, row.kind, row.body, row.origin, row.at, gone, row.actor)


def superseded(connection: Connection, of: Sequence[str] | None = None) -> dict[str, Replaced]:
    """What became of some claims, or of all, by id: those that stand are left out."""
    query = select(claim_supersessions).order_by(claim_supersessions.c.seq)
    if of is not None:
        query = query.where(claim_supersessions.c.claim.in_(of))
    rows = connection.execute(query)
    return {row.claim: Replaced(row.claim, row.successor, row.reason, row.at, row.actor) for row in rows}


def record(connection: Connection, by: By, verdicts: Sequence[ClaimVerdict]) -> list[int]:
    """Keep verdicts on claims with the receipts that they stood on, all or none; gives their numbers."""
    return [_record(connection, item, by.at) for item in verdicts]


def _record(connection: Connection, verdict: ClaimVerdict, at: datetime) -> int:
    values = {
        "claim": verdict.claim,
        "status": verdict.status,
        "rules": verdict.rules,
        "judge": verdict.judge,
        "at": at,
        "codec": CODEC,
        "body": packed_verdict(verdict),
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


def verdicts_on(connection: Connection, claim: str) -> list[StoredClaimVerdict]:
    """Every verdict on a claim, oldest first."""
    query = select(claim_verdicts).where(claim_verdicts.c.claim == claim)
    return _verdicts(connection, query.order_by(claim_verdicts.c.seq))


def last_verdict(connection: Connection, claim: str) -> StoredClaimVerdict | None:
    """The last verdict on a claim, or None."""
    query = select(claim_verdicts).where(claim_verdicts.c.claim == claim).order_by(claim_verdicts.c.seq.desc())
    return next(iter(_verdicts(connection, query.limit(1))), None)


def claims_on(connection: Connection, receipt_id: str) -> list[str]:
    """Ids of claims whose last verdict stood on a receipt."""
    last = select(func.max(claim_verdicts.c.seq)).group_by(claim_verdicts.c.claim)
    query = (
        select(claim_verdicts.c.claim)
        .join(claim_subjects, claim_subjects.c.verdict == claim_verdicts.c.seq)
        .where(claim_subjects.c.receipt == receipt_id, claim_verdicts.c.seq.in_(last))
        .order_by(claim_verdicts.c.seq)
    )
    return list(dict.fromkeys(connection.execute(query).scalars()))


def _verdicts(connection: Connection, query: Select[Any]) -> list[StoredClaimVerdict]:
    rows = connection.execute(query).all()
    sides = sides_of_claims(connection, [row.seq for row in rows])

    def document(row: Any) -> Any:
        return json.loads(unpack(row.codec, row.body, f"verdict {row.seq} on claim {row.claim}"))

    return [
        StoredClaimVerdict(
            *(row.seq, row.claim, row.status, row.rules, row.judge, row.at), tuple(sides[row.seq]), document(row)
        )
        for row in rows
    ]
