"""Tables of what people publish and trust: claims, decisions, documents that quote receipts, incidents, keys, seals.

An incident is a step of a line for the worse, with rows for when it was opened and closed. The secret of a token of the
server is stored nowhere.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, Integer, SmallInteger, Table, UniqueConstraint

from receipts.store.tables.columns import TableRules, actor, key, metadata, moment, number, packed, part_of, words

claims = Table(
    "claims",
    metadata,
    key("Number in the order in which claims were added"),
    words("id", "Name of the claim, given by its author", required=True),
    words("kind", "speedup, equivalence, ceiling, mfu, memory, does-not-fit, arithmetic", required=True),
    words("body", "The claim as JSON (schema/claims-1.schema.json)", required=True),
    words("origin", "File that it was added from", required=True),
    moment("at", "When it was added"),
    actor(),
    UniqueConstraint("id"),
    comment="Sentences about performance, never edited: one that changes is superseded by another",
    info=TableRules("decider", sealed=True).info,
)

claim_supersessions = Table(
    "claim_supersessions",
    metadata,
    key("Number in the order in which they were said"),
    words("claim", "Id of the claim that no longer stands", required=True, of="claims"),
    words("successor", "Id of the claim that replaces it; null where it was withdrawn", of="claims"),
    words("reason", "Why", required=True),
    moment("at", "When it was said"),
    actor(),
    comment="Claims that no longer stand",
    info=TableRules("decider", sealed=True).info,
)

claim_verdicts = Table(
    "claim_verdicts",
    metadata,
    key("Number in the order in which verdicts were given"),
    words("claim", "Id of the claim", required=True, of="claims"),
    words("status", "supported, refuted, unproven, stale", required=True),
    words("rules", "Digest of the rule set", required=True),
    words("judge", "Version of the judge", required=True),
    moment("at", "When it was judged"),
    *packed("The verdict as JSON"),
    comment="What was said of claims, and under which rule set; the last one of a claim counts",
    info=TableRules("decider", sealed=True).info,
    sqlite_autoincrement=True,  # the number of a row that a purge erased is not given again
)

claim_subjects = Table(
    "claim_subjects",
    metadata,
    part_of("verdict", "claim_verdicts", "The verdict", cascade=True),
    Column("position", SmallInteger, primary_key=True, autoincrement=False, comment="0, 1, 2 in the verdict's order"),
    words("side", "baseline, candidate", required=True),
    words("receipt", "Id of the receipt, stored or not", required=True),
    comment="Which receipts a claim stood on when it was judged",
    info=TableRules("decider").info,
    sqlite_with_rowid=False,
)

decisions = Table(
    "decisions",
    metadata,
    key("Number in the order in which they were made; the last one of a receipt counts"),
    words("receipt", "Id of the receipt", required=True, of="receipts"),
    words("decision", "ship, hold, drop", required=True),
    words("reason", "Why", required=True),
    moment("at", "When it was made"),
    actor(),
    comment="What was decided on a receipt, shown wherever it is quoted",
    info=TableRules("decider", sealed=True).info,
)

quotes = Table(
    "quotes",
    metadata,
    key("Number in the order in which they were found"),
    words("document", "Path or URL of the document that quotes it", required=True),
    words("receipt", "Id of the receipt; null where the document was read and quotes none"),
    words("says", "What the document says of it"),
    moment("at", "When the document was read; its last reading counts"),
    comment="Reports and other documents that quote receipts",
    info=TableRules("decider", sealed=True).info,
)

Index("claim_supersessions_claim", claim_supersessions.c.claim)
Index("claim_verdicts_claim", claim_verdicts.c.claim)
Index("claim_subjects_receipt", claim_subjects.c.receipt)
Index("decisions_receipt", decisions.c.receipt)
Index("quotes_document", quotes.c.document)
Index("quotes_receipt", quotes.c.receipt)


incidents = Table(
    "incidents",
    metadata,
    key("Number in the order in which events were recorded; the last one of an incident counts"),
    words("incident", "Id of the incident: 12 hex digits over line, kind, metric and first launch", required=True),
    words("event", "opened, closed", required=True),
    number("line", "Digest of the line: the configuration without code, wheels, image and driver", required=True),
    words("kind", "run.kind of the line's launches", required=True),
    words("metric", "The metric that stepped", required=True),
    words("body", "The change as JSON: size, interval, axes that moved, launches on both sides", required=True),
    words("owner", "Who looks after it; null where nobody was named"),
    actor(),
    words("reason", "Why it was opened or closed", required=True),
    moment("at", "When it was recorded"),
    comment="What watch opened and what closed, never edited: one incident a change point, however many runs see it",
    info=TableRules("decider", sealed=True).info,
)

Index("incidents_incident", incidents.c.incident)
Index("incidents_line", incidents.c.line)


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
