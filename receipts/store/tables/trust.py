"""Tables of trust: seals and erased rows; trusted keys and envelopes; tokens of the server.

The secret of a token is stored nowhere.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, Table, UniqueConstraint

from receipts.store.tables.columns import TableRules, actor, key, metadata, moment, number, words

seals = Table(
    "seals",
    metadata,
    key("Number in the order in which seals were written"),
    words("store", "Id of this store, which the seal binds", required=True),
    words("what", "Table of the rows: receipts, verdicts, supersessions, …", required=True),
    number("first", "Number of the first row", required=True),
    number("last", "Number of the last row", required=True),
    Column("held", Integer, nullable=False, comment="How many rows it holds"),
    words("root", "Merkle root over the rows' digests, SHA-256 in hex", required=True),
    moment("at", "When it was sealed"),
    UniqueConstraint("store", "what", "first", "root"),
    comment="Merkle roots: a row that was changed or taken away since is found",
    info=TableRules("submitter", sealed=True).info,
)

erased = Table(
    "erased",
    metadata,
    key("Number in the order in which rows were erased"),
    words("what", "Table of the row: receipts, verdicts, supersessions, …", required=True),
    number("number", "Its number", required=True),
    words("receipt", "Id of the receipt with whose tombstone it went", required=True, of="purges"),
    words("leaf", "Digest of the row as the seal holds it, SHA-256 in hex; empty if none did", required=True),
    words("seal", "Root of the seal that holds it; empty if none did", required=True),
    comment="What a purge erased: the digest of a sealed row stays, so that the seal still holds",
    info=TableRules("owner", sealed=True).info,
)


trusted_keys = Table(
    "trusted_keys",
    metadata,
    key("Number in the order in which keys were trusted or revoked; the last row of a key counts"),
    words("name", "Who holds the key", required=True),
    words("fingerprint", "SHA-256 of the key as OpenSSH prints it", required=True),
    words("key", "The public Ed25519 key in OpenSSH's form", required=True),
    words("lanes", "Lanes whose receipts it may sign, by blanks; empty for all", required=True),
    moment("ends", "When it ends; null for never", required=False),
    words("revoked", "Why the row revokes the key; null where it trusts it"),
    moment("at", "When it was trusted or revoked"),
    actor(),
    comment="Public keys whose signatures count",
    info=TableRules("owner", sealed=True).info,
)

# Receipts are named by their ids: an envelope is written before its receipt, and outlives its purge.
envelopes = Table(
    "envelopes",
    metadata,
    key("Number in the order in which envelopes came"),
    words("receipt", "Id of the receipt that is signed: its bytes are the payload", required=True),
    words("fingerprint", "The key that it says it is signed by", required=True),
    words("signature", "Ed25519 signature over DSSE's encoding of the receipt, in base64", required=True),
    moment("at", "When it came"),
    actor(),
    comment="Signatures on receipts: with a receipt's bytes each is a DSSE envelope",
    info=TableRules("submitter", sealed=True).info,
)

Index("envelopes_receipt", envelopes.c.receipt)


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
