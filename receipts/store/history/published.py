"""What people published and decided: claims with their verdicts, decisions on receipts, documents that quote them.

Each is a row that is added, as in `history`. Claims are kept as JSON and read by `receipts.questions.claims`, higher
up.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import Connection, func, insert, select

from receipts.base.errors import ConflictError, NotFound, UsageError
from receipts.judging.claim_verdict import ClaimVerdict
from receipts.judging.verdict_json import to_json
from receipts.store.database import By
from receipts.store.packing import CODEC, pack, unpack
from receipts.store.tables import claim_subjects, claim_supersessions, claim_verdicts, claims, decisions, quotes

DECISIONS: Final = ("ship", "hold", "drop")


class NewClaim(NamedTuple):
    """A claim to be added: `body` is its JSON. `supersedes` names the claim that it replaces, for `reason`."""

    id: str
    kind: str
    body: str
    origin: str
    supersedes: str | None = None
    reason: str | None = None


class StoredClaim(NamedTuple):
    """A claim as it was added; `superseded` is the successor (None where it was withdrawn) and the reason."""

    id: str
    kind: str
    body: str
    origin: str
    at: datetime
    superseded: tuple[str | None, str] | None
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


class Decision(NamedTuple):
    """What was decided on a receipt, and why. Time in UTC."""

    receipt: str
    decision: str
    reason: str
    at: datetime
    actor: str | None = None


class Quote(NamedTuple):
    """A place where a document quotes a receipt."""

    document: str
    receipt: str
    says: str | None
    at: datetime


def add_claims(connection: Connection, new: Sequence[NewClaim], by: By) -> list[str]:
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
            supersede_claim(connection, item.supersedes, item.id, item.reason or "", by)
    return added


def supersede_claim(connection: Connection, claim: str, successor: str | None, reason: str, by: By) -> None:
    """Say that a claim no longer stands. Raises NotFound, UsageError without a reason, ConflictError if it was said."""
    if not reason.strip():
        raise UsageError(f'say why {claim} no longer stands: --reason "…", or reason = "…" in claims.toml')
    if successor == claim:
        raise UsageError(f"{claim} cannot supersede itself")
    for name in (claim, *([successor] if successor else [])):
        one_claim(connection, name)
    said = _superseded(connection, [claim]).get(claim)
    if said is not None:
        how = f"superseded by {said[0]}" if said[0] else "withdrawn"
        raise ConflictError(f"claim {claim} was {how} already: {said[1]}")
    row = {"claim": claim, "successor": successor, "reason": reason, **by._asdict()}
    connection.execute(insert(claim_supersessions).values(**row))


def all_claims(connection: Connection, *, standing: bool) -> Iterator[StoredClaim]:
    """Claims in the order in which they were added; with ``standing`` those alone that nothing has replaced."""
    said = _superseded(connection)
    for row in connection.execute(select(claims).order_by(claims.c.seq)):
        if not (standing and row.id in said):
            yield StoredClaim(row.id, row.kind, row.body, row.origin, row.at, said.get(row.id), row.actor)


def one_claim(connection: Connection, claim: str) -> StoredClaim:
    """The claim of that id. Raises NotFound."""
    row = connection.execute(select(claims).where(claims.c.id == claim)).first()
    if row is None:
        raise NotFound(f"there is no claim {claim!r}; see: receipts claim list")
    said = _superseded(connection, [claim])
    return StoredClaim(row.id, row.kind, row.body, row.origin, row.at, said.get(claim), row.actor)


def _superseded(connection: Connection, of: Sequence[str] | None = None) -> dict[str, tuple[str | None, str]]:
    query = select(claim_supersessions).order_by(claim_supersessions.c.seq)
    if of is not None:
        query = query.where(claim_supersessions.c.claim.in_(of))
    return {row.claim: (row.successor, row.reason) for row in connection.execute(query)}


def record_claim(connection: Connection, verdict: ClaimVerdict, at: datetime) -> int:
    """Keep a verdict on a claim, with the receipts that it stood on; gives its number."""
    values = {
        "claim": verdict.claim,
        "status": verdict.status,
        "rules": verdict.rules,
        "judge": verdict.judge,
        "at": at,
        "codec": CODEC,
        "body": pack(_json(verdict)),
    }
    made = connection.execute(insert(claim_verdicts).values(**values)).inserted_primary_key
    assert made is not None
    seq: int = made[0]
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


def claim_verdicts_of(connection: Connection, claim: str) -> Iterator[StoredClaimVerdict]:
    """Every verdict on a claim, oldest first."""
    query = select(claim_verdicts).where(claim_verdicts.c.claim == claim).order_by(claim_verdicts.c.seq)
    for row in connection.execute(query).all():
        yield _stored(connection, row)


def last_claim_verdict(connection: Connection, claim: str) -> StoredClaimVerdict | None:
    """The last verdict on a claim."""
    query = select(claim_verdicts).where(claim_verdicts.c.claim == claim).order_by(claim_verdicts.c.seq.desc()).limit(1)
    row = connection.execute(query).first()
    return None if row is None else _stored(connection, row)


def _stored(connection: Connection, row: Any) -> StoredClaimVerdict:
    query = select(claim_subjects).where(claim_subjects.c.verdict == row.seq).order_by(claim_subjects.c.position)
    sides = tuple((item.side, item.receipt) for item in connection.execute(query))
    document = json.loads(unpack(row.codec, row.body, f"verdict {row.seq} on claim {row.claim}"))
    return StoredClaimVerdict(row.seq, row.claim, row.status, row.rules, row.judge, row.at, sides, document)


def claims_on(connection: Connection, receipt: str) -> list[str]:
    """Ids of claims whose last verdict stood on a receipt."""
    last = select(func.max(claim_verdicts.c.seq)).group_by(claim_verdicts.c.claim)
    query = (
        select(claim_verdicts.c.claim)
        .join(claim_subjects, claim_subjects.c.verdict == claim_verdicts.c.seq)
        .where(claim_subjects.c.receipt == receipt, claim_verdicts.c.seq.in_(last))
        .order_by(claim_verdicts.c.seq)
    )
    return list(dict.fromkeys(connection.execute(query).scalars()))


def decide(connection: Connection, receipt: str, decision: str, reason: str, by: By) -> Decision:
    """Write down what was decided on a receipt. Raises UsageError for another word than ship, hold or drop."""
    if decision not in DECISIONS:
        raise UsageError(f"there is no decision {decision!r}; it is one of {', '.join(DECISIONS)}")
    if not reason.strip():
        raise UsageError('say why: receipts decide ID ship|hold|drop --reason "…"')
    row = {"receipt": receipt, "decision": decision, "reason": reason, **by._asdict()}
    connection.execute(insert(decisions).values(**row))
    return Decision(receipt, decision, reason, by.at, by.actor)


def decisions_on(connection: Connection, receipts: Sequence[str] | None) -> Iterator[Decision]:
    """Decisions on these receipts, or on all, oldest first."""
    query = select(decisions).order_by(decisions.c.seq)
    if receipts is not None:
        query = query.where(decisions.c.receipt.in_(receipts))
    for row in connection.execute(query):
        yield Decision(row.receipt, row.decision, row.reason, row.at, row.actor)


def quote(connection: Connection, document: str, found: Iterable[tuple[str, str | None]], at: datetime) -> None:
    """Write down which receipts a document quotes now, each as id and what it says; an earlier reading is history."""
    rows = [{"document": document, "receipt": receipt, "says": says, "at": at} for receipt, says in found]
    nothing = [{"document": document, "receipt": None, "says": None, "at": at}]
    connection.execute(insert(quotes), rows or nothing)


def quotes_of(connection: Connection, receipt: str) -> Iterator[Quote]:
    """Where documents quote a receipt, by the last reading of each."""
    # By number and not by time: a clock may go back.
    newest = select(func.max(quotes.c.seq)).group_by(quotes.c.document)
    last = select(quotes.c.document, quotes.c.at).where(quotes.c.seq.in_(newest)).subquery()
    query = (
        select(quotes)
        .join(last, (last.c.document == quotes.c.document) & (last.c.at == quotes.c.at))
        .where(quotes.c.receipt == receipt)
        .order_by(quotes.c.seq)
    )
    for row in connection.execute(query):
        yield Quote(row.document, row.receipt, row.says, row.at)
