"""Tokens of the server: who may do what over HTTP. The secret itself is nowhere."""

from __future__ import annotations

from sqlalchemy import Index, Table

from receipts.store.tables.columns import key, metadata, moment, words
from receipts.store.tables.rules import TableRules

tokens = Table(
    "tokens",
    metadata,
    key("Number in the order in which they were given; the last row of a name counts"),
    words("name", "Who holds it: the actor of every row that it causes", required=True),
    words("prefix", "The visible beginning of the token", required=True),
    words("digest", "SHA-256 of the token in hex; null in the row that revokes it"),
    words("scopes", "What it may do, by blanks: submit, submit:LANE, read, decide, admin", required=True),
    moment("expires", "When it ends; null for never", required=False),
    moment("at", "When it was given or revoked"),
    comment="Tokens for the server, by the digest of each",
    info=TableRules("owner").info,
)

Index("tokens_prefix", tokens.c.prefix)
