"""Credentials: the keys whose signatures count, with the envelopes of receipts, and the server's tokens.

A token is random, hashed, with a visible beginning. Keys and tokens are given and revoked by rows that are added.
"""

from __future__ import annotations

import hmac
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, NamedTuple

from sqlalchemy import Connection, insert, select

from receipts.base.errors import ConflictError, NotFound, UsageError
from receipts.signing.key import RECEIPT, Envelope, PublicKey, Signature, read_public, refuse_other_name
from receipts.store.database import By, Repository, reads, writes
from receipts.store.tables.publication import envelopes, tokens, trusted_keys


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


def trust_key(
    connection: Connection, by: By, name: str, key: PublicKey, lanes: Iterable[str], ends: datetime | None
) -> None:
    """Let a key count. Raises UsageError for a name that cannot be one, ConflictError where the name or key is
    taken, or where the key was revoked: a key does not come back.
    """
    refuse_other_name(name)
    for known in every_key(connection):
        if known.key == key and known.revoked is not None:
            raise ConflictError(f"this key was revoked ({known.revoked}); make another: receipts key new NAME")
        if known.key == key or (known.name == name and known.revoked is None):
            raise ConflictError(f"{known.name} has a key; revoke it first: receipts key revoke {known.name}")
    _write_key(connection, TrustedKey(name, key, tuple(dict.fromkeys(lanes)), ends, None, by.at), by)


def revoke_key(connection: Connection, by: By, name: str, reason: str) -> TrustedKey:
    """Let the key of a name, or of a fingerprint, count no more: what came before keeps its signer.

    Raises NotFound.
    """
    for known in every_key(connection):
        if known.revoked is None and name in (known.name, known.key.fingerprint):
            revoked = known._replace(revoked=reason, at=by.at)
            _write_key(connection, revoked, by)
            return revoked
    raise NotFound(f"no trusted key is called {name!r}; see: receipts key list")


def every_key(connection: Connection) -> list[TrustedKey]:
    """Every key that was ever trusted, as it is now, in the order of their names."""
    rows = connection.execute(select(trusted_keys).order_by(trusted_keys.c.seq))
    last = {
        row.fingerprint: TrustedKey(
            row.name, read_public(row.key, row.name), tuple(row.lanes.split()), row.ends, row.revoked, row.at
        )
        for row in rows
    }
    return sorted(last.values(), key=lambda item: (item.name, item.at))


def _write_key(connection: Connection, item: TrustedKey, by: By) -> None:
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


def signatures_of(connection: Connection, *receipts: str) -> list[Kept]:
    """The signatures of receipts, in the order in which they came."""
    query = select(envelopes).where(envelopes.c.receipt.in_(receipts)).order_by(envelopes.c.seq)
    return [
        Kept(row.receipt, Signature(row.fingerprint, b64decode(row.signature)), row.at)
        for row in connection.execute(query)
    ]


def add_signatures(connection: Connection, by: By, signatures: Mapping[str, Sequence[Signature]]) -> None:
    """Keep the signatures of receipts, by id; those that are there already stay as they are."""
    there = {(item.receipt, item.signature.key) for item in signatures_of(connection, *signatures)}
    rows = [
        {"receipt": receipt, "fingerprint": item.key, "signature": b64encode(item.value).decode(), **by._asdict()}
        for receipt, items in signatures.items()
        for item in items
        if (receipt, item.key) not in there
    ]
    if rows:
        connection.execute(insert(envelopes), rows)


class Signing(Repository):
    """The keys and envelopes of a store."""

    trust = writes(trust_key)
    revoke = writes(revoke_key)
    every_key = reads(every_key)
    add = writes(add_signatures)
    of = reads(signatures_of)

    def envelope(self, receipt: str, raw: bytes) -> Envelope | None:
        """The envelope of a receipt with these bytes; None where it is not signed."""
        kept = self.of(receipt)
        return Envelope(RECEIPT, raw, tuple(item.signature for item in kept)) if kept else None


SCOPES: Final = ("submit", "read", "decide", "admin")
# What a scope includes beside itself.
INCLUDES: Final = {"admin": frozenset(SCOPES), "decide": frozenset({"decide", "read"})}
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,79}")
PREFIX: Final = 12  # characters of a secret that name its token: those before its second underscore
_TOKEN: Final = re.compile(r"rcp_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")


class Token(NamedTuple):
    """A token without its secret. ``expires`` None is never; times in UTC."""

    name: str
    prefix: str
    scopes: tuple[str, ...]
    expires: datetime | None
    at: datetime

    def may(self, scope: str, lane: str | None = None) -> bool:
        """Whether it may do what a scope names; with ``lane`` a scope of that lane alone is enough."""
        for own in self.scopes:
            kind, _, only = own.partition(":")
            if scope in INCLUDES.get(kind, {kind}) and only in ("", lane):
                return True
        return False

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes that it may submit to; empty for all."""
        kinds = [own.partition(":") for own in self.scopes]
        return () if self.may("submit") else tuple(lane for kind, _, lane in kinds if kind == "submit")


def revoke_token(connection: Connection, by: By, name: str) -> Token:
    """End a token now. Raises NotFound."""
    held = _standing(connection).get(name)
    if held is None:
        raise NotFound(f"no token is called {name!r}; see: receipts token list")
    _write_token(connection, held._replace(at=by.at), None)
    return held


class Tokens(Repository):
    """The tokens of a store."""

    def add(self, name: str, scopes: Iterable[str], expires: datetime | None) -> tuple[Token, str]:
        """Give a token; returns it with the secret, which can never be read again.

        Raises UsageError for a name or scope that cannot be one, ConflictError where the name has a token already.
        """
        named = checked(name, scopes)
        prefix = f"rcp_{secrets.token_hex(4)}"
        text = f"{prefix}_{secrets.token_urlsafe(32)}"
        token = Token(name, prefix, named, expires, datetime.now(UTC))

        def give(connection: Connection) -> None:
            if name in _standing(connection):
                raise ConflictError(f"{name} has a token; revoke it first: receipts token revoke {name}")
            _write_token(connection, token, sha256(text.encode()).hexdigest())

        self.database.write(give)
        return token, text

    revoke = writes(revoke_token)

    def all(self) -> list[Token]:
        """Every token that is not revoked, expired or not, by name."""
        with self.database.reading() as connection:
            return [item for _, item in sorted(_standing(connection).items())]

    def holder(self, text: str) -> Token | None:
        """The token of a secret, if it is valid now."""
        if not _TOKEN.fullmatch(text):
            return None
        query = select(tokens).where(tokens.c.prefix == text[:PREFIX]).order_by(tokens.c.seq.desc()).limit(1)
        with self.database.reading() as connection:
            row = connection.execute(query).first()
        digest = sha256(text.encode()).hexdigest()
        if row is None or row.digest is None or not hmac.compare_digest(row.digest, digest):
            return None
        token = _token(row)
        return token if token.expires is None or token.expires > datetime.now(UTC) else None


def checked(name: str, scopes: Iterable[str]) -> tuple[str, ...]:
    """The scopes of a new token. Raises UsageError for a name or a scope that cannot be one."""
    named = tuple(dict.fromkeys(scopes))
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a token; write a letter or digit, then letters, digits, . _ @ or -")
    for scope in named:
        kind, colon, lane = scope.partition(":")
        if kind not in SCOPES or (colon and (kind != "submit" or not lane or not lane.isprintable() or " " in lane)):
            raise UsageError(f"--scope {scope}: write submit, submit:LANE, read, decide or admin")
    if not named:
        raise UsageError("say what the token may do: --scope submit, submit:LANE, read, decide or admin")
    return named


def _standing(connection: Connection) -> dict[str, Token]:
    last = {row.name: row for row in connection.execute(select(tokens).order_by(tokens.c.seq))}
    return {name: _token(row) for name, row in last.items() if row.digest is not None}


def _token(row: object) -> Token:
    name, prefix, scopes, expires, at = (getattr(row, item) for item in Token._fields)
    return Token(name, prefix, tuple(scopes.split()), expires, at)


def _write_token(connection: Connection, token: Token, digest: str | None) -> None:
    values = {**token._asdict(), "scopes": " ".join(token.scopes), "digest": digest}
    connection.execute(insert(tokens).values(**values))
