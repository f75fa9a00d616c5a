"""Signatures in a store: the keys that count, and the envelopes of receipts."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, insert, select

from receipts.base.errors import ConflictError, NotFound
from receipts.signing.key import RECEIPT, Envelope, PublicKey, Signature, read_public, refuse_other_name
from receipts.store.database import By, Repository, reads, writes
from receipts.store.tables.publication import envelopes, trusted_keys


class TrustedKey(NamedTuple):
    """A public key whose signatures count: on receipts of its lanes (empty: all), until its end or its revocation.

    ``ends`` None is never. ``revoked`` is the reason, None while it is trusted; ``at`` is when the last of both was
    said. Times in UTC.
    """

    name: str
    key: PublicKey
    lanes: tuple[str, ...]
    ends: datetime | None
    revoked: str | None
    at: datetime

    def refusal(self, lane: str, at: datetime) -> str:
        """Why its signature on a receipt of a lane that came at a moment does not count; empty where it does."""
        if self.revoked is not None and at >= self.at:
            return f"the key of {self.name} was revoked {self.at:%Y-%m-%d %H:%M} UTC: {self.revoked}"
        if self.ends is not None and at >= self.ends:
            return f"the key of {self.name} ended {self.ends:%Y-%m-%d %H:%M} UTC"
        if self.lanes and lane not in self.lanes:
            return f"the key of {self.name} may sign receipts of {', '.join(self.lanes)}, and not of {lane}"
        return ""


class Kept(NamedTuple):
    """A signature that a store keeps of a receipt, and when it came, in UTC."""

    receipt: str
    signature: Signature
    at: datetime


def _trust(
    connection: Connection, by: By, name: str, key: PublicKey, lanes: Iterable[str], ends: datetime | None
) -> None:
    """Let a key count. Raises UsageError for a name that cannot be one, ConflictError where the name or key is
    taken, or where the key was revoked: a key does not come back.
    """
    refuse_other_name(name)
    for known in _last(connection):
        if known.key == key and known.revoked is not None:
            raise ConflictError(f"this key was revoked ({known.revoked}); make another: receipts key new NAME")
        if known.key == key or (known.name == name and known.revoked is None):
            raise ConflictError(f"{known.name} has a key; revoke it first: receipts key revoke {known.name}")
    _write(connection, TrustedKey(name, key, tuple(dict.fromkeys(lanes)), ends, None, by.at), by)


def _revoke(connection: Connection, by: By, name: str, reason: str) -> TrustedKey:
    """Let the key of a name, or of a fingerprint, count no more: what came before keeps its signer.

    Raises NotFound.
    """
    for known in _last(connection):
        if known.revoked is None and name in (known.name, known.key.fingerprint):
            revoked = known._replace(revoked=reason, at=by.at)
            _write(connection, revoked, by)
            return revoked
    raise NotFound(f"no trusted key is called {name!r}; see: receipts key list")


def _every_key(connection: Connection) -> list[TrustedKey]:
    """Every key that was ever trusted, as it is now, in the order of their names."""
    return sorted(_last(connection), key=lambda item: (item.name, item.at))


def _add(connection: Connection, by: By, signatures: Mapping[str, Sequence[Signature]]) -> None:
    there = {(item.receipt, item.signature.key) for item in _kept(connection, list(signatures))}
    rows = [
        {"receipt": receipt, "fingerprint": item.key, "signature": b64encode(item.value).decode(), **by._asdict()}
        for receipt, items in signatures.items()
        for item in items
        if (receipt, item.key) not in there
    ]
    if rows:
        connection.execute(insert(envelopes), rows)


def _last(connection: Connection) -> list[TrustedKey]:
    rows = connection.execute(select(trusted_keys).order_by(trusted_keys.c.seq))
    last = {
        row.fingerprint: TrustedKey(
            row.name, read_public(row.key, row.name), tuple(row.lanes.split()), row.ends, row.revoked, row.at
        )
        for row in rows
    }
    return list(last.values())


def _write(connection: Connection, item: TrustedKey, by: By) -> None:
    values = {
        "name": item.name,
        "fingerprint": item.key.fingerprint,
        "key": item.key.line,
        "lanes": " ".join(item.lanes),
        "ends": item.ends,
        "revoked": item.revoked,
        **by._asdict(),
    }
    connection.execute(insert(trusted_keys).values(**values))


def _kept(connection: Connection, receipts: Sequence[str]) -> list[Kept]:
    query = select(envelopes).where(envelopes.c.receipt.in_(receipts)).order_by(envelopes.c.seq)
    return [
        Kept(row.receipt, Signature(row.fingerprint, b64decode(row.signature)), row.at)
        for row in connection.execute(query)
    ]


class Signing(Repository):
    """The keys and envelopes of a store."""

    trust = writes(_trust)
    revoke = writes(_revoke)
    every_key = reads(_every_key)

    def add(self, signatures: Mapping[str, Sequence[Signature]]) -> None:
        """Keep the signatures of receipts, by id; those that are there already stay as they are."""
        if signatures:
            self.database.change(lambda connection, by: _add(connection, by, signatures))

    def of(self, receipt: str) -> list[Kept]:
        """The signatures of a receipt, in the order in which they came."""
        with self.database.reading() as connection:
            return _kept(connection, [receipt])

    def envelope(self, receipt: str, raw: bytes) -> Envelope | None:
        """The envelope of a receipt with these bytes; None where it is not signed."""
        kept = self.of(receipt)
        return Envelope(RECEIPT, raw, tuple(item.signature for item in kept)) if kept else None
