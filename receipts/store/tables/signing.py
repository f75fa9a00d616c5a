"""Signing: whose keys count, and who signed which receipt."""

from __future__ import annotations

from sqlalchemy import Index, Table

from receipts.store.tables.columns import actor, key, metadata, moment, words
from receipts.store.tables.rules import TableRules

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
    info=TableRules("owner", sealed="here").info,
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
    info=TableRules("submitter", sealed="everywhere").info,
)

Index("envelopes_receipt", envelopes.c.receipt)
