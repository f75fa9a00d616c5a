"""Tokens: random, hashed, with a visible beginning; given and revoked by rows that are added."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final, NamedTuple

from sqlalchemy import Connection, insert, select

from receipts.base.errors import ConflictError, NotFound, UsageError
from receipts.store.database import By, Repository, writes
from receipts.store.tables.publication import tokens

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


def _revoke(connection: Connection, by: By, name: str) -> Token:
    """End a token now. Raises NotFound."""
    held = _standing(connection).get(name)
    if held is None:
        raise NotFound(f"no token is called {name!r}; see: receipts token list")
    _write(connection, held._replace(at=by.at), None)
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
            _write(connection, token, sha256(text.encode()).hexdigest())

        self.database.write(give)
        return token, text

    revoke = writes(_revoke)

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


def _write(connection: Connection, token: Token, digest: str | None) -> None:
    values = {**token._asdict(), "scopes": " ".join(token.scopes), "digest": digest}
    connection.execute(insert(tokens).values(**values))
