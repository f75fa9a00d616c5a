"""Verdicts of receipts, kept beside what they speak of, and claims as rows: added, judged and superseded.

A verdict stands under its rule set, and none is ever replaced. Its sides are its receipts, in the order in which it has
them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson
from sqlalchemy import Connection, Select, Table, func, insert, select

from receipts.base.errors import ConflictError, NotFound, UsageError
from receipts.judging.verdict import VERDICT_VERSION, ClaimVerdict, Comparison, ReceiptVerdict, verdict_to_json
from receipts.store.database import By
from receipts.store.entries import CODEC, pack, unpack
from receipts.store.tables import (
    claim_subjects,
    claim_supersessions,
    claim_verdicts,
    claims,
    receipts,
    subjects,
    verdicts,
)

Row = Mapping[str, Any]
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


def _common(verdict: Verdict | ClaimVerdict) -> dict[str, Any]:
    """What the rows of all verdicts have."""
    names = ("status", "rules", "judge")
    return {**{name: getattr(verdict, name) for name in names}, "codec": CODEC, "body": packed_verdict(verdict)}


def verdict_row(verdict: Verdict, at: datetime) -> dict[str, Any]:
    """The row of a verdict, but for its number."""
    kind, metric = ("comparison", verdict.metric) if isinstance(verdict, Comparison) else ("receipt", None)
    return {"kind": kind, "metric": metric, "judged_at": at, **_common(verdict)}


def add_verdict(connection: Connection, verdict: Verdict, of: Sequence[tuple[str, int]], at: datetime) -> int:
    """Write a verdict on the receipts of these sides and numbers; gives the verdict's number."""
    (seq,) = insert_verdicts(connection, verdicts, subjects, [(verdict_row(verdict, at), of)])
    return seq


def insert_verdicts(
    connection: Connection, table: Table, sides: Table, new: Sequence[tuple[Row, Sequence[tuple[str, Any]]]]
) -> list[int]:
    """Write verdicts, each with the sides and receipts that it is on, in this order; gives their numbers."""
    if not new:
        return []
    numbered = insert(table).returning(table.c.seq, sort_by_parameter_order=True)
    numbers = list(connection.execute(numbered, [row for row, _ in new]).scalars())
    about = [
        {"verdict": seq, "position": position, "side": side, "receipt": receipt}
        for seq, (_, of) in zip(numbers, new, strict=True)
        for position, (side, receipt) in enumerate(of)
    ]
    if about:
        connection.execute(insert(sides), about)
    return numbers


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


def record_claim(connection: Connection, by: By, verdicts: Sequence[ClaimVerdict]) -> list[int]:
    """Keep verdicts on claims with the receipts that they stood on, all or none; gives their numbers."""
    new = [
        (
            {"claim": item.claim, "at": by.at, **_common(item)},
            [(side, receipt) for side in ("baseline", "candidate") for receipt in getattr(item, side)],
        )
        for item in verdicts
    ]
    return insert_verdicts(connection, claim_verdicts, claim_subjects, new)


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
