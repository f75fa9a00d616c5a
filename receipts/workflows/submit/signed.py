"""Signatures of receipts as they are submitted: checked before anything is written, and kept before the receipt is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from receipts.base.errors import ConflictError
from receipts.signing.envelope import RECEIPT, Envelope, Signature, encoded, signed
from receipts.store.documents import CODEC, unpack

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.signing.key import PrivateKey
    from receipts.store import Store
    from receipts.store.signing import TrustedKey
    from receipts.workflows.submit.submission import Submission


@dataclass(frozen=True)
class Signers:
    """Who signs the receipts of a submit: a key that is here, or the envelopes that they came in, by their ids."""

    key: PrivateKey | None = None
    envelopes: Mapping[str, Envelope] = field(default_factory=dict)

    def envelope(self, receipt: str, raw: Callable[[], bytes]) -> Envelope | None:
        """The envelope of a receipt with these bytes; None where nobody signs it."""
        return self.envelopes.get(receipt) if self.key is None else signed(RECEIPT, raw(), self.key)


def sign(batch: Sequence[Submission], store: Store, rulebook: Rulebook, by: Signers) -> list[Submission]:
    """Keep the signatures of a batch that is ready to be written.

    A receipt is refused if a signature of its envelope does not hold or its key does not count now, and if its lane
    asks for a signature and it has none.
    """
    ready = {item.prepared.row["id"]: item.prepared for item in batch if item.prepared is not None}
    asking = {lane for item in ready.values() if rulebook.lanes.of(lane := item.row["lane"]).signed}
    if by.key is None and not by.envelopes and not asking:
        return list(batch)
    keys = {item.key.fingerprint: item for item in store.signing.every_key()}
    kept: dict[str, Sequence[Signature]] = {}
    refused: dict[str, ConflictError] = {}
    for receipt, item in ready.items():
        envelope = by.envelope(receipt, partial(unpack, CODEC, item.body, item.source))
        lane, name = item.row["lane"], item.row["label"] or receipt[:12]
        if envelope is not None and (why := refusal(envelope, lane, keys, datetime.now(UTC))):
            refused[receipt] = ConflictError(f"{name}: the signature is refused: {why}")
        elif envelope is not None:
            kept[receipt] = envelope.signatures
        elif lane in asking and not store.signing.of(receipt):
            refused[receipt] = ConflictError(
                f"{name}: lane {lane} takes signed receipts alone; submit it with --sign KEY"
            )
    store.signing.add(kept)

    def settled(item: Submission) -> Submission:
        error = refused.get(item.prepared.row["id"]) if item.prepared is not None else None
        return item if error is None else replace(item, error=error, prepared=None, status=None)

    return [settled(item) for item in batch]


def refusal(envelope: Envelope, lane: str, keys: Mapping[str, TrustedKey], at: datetime) -> str:
    """Why the envelope of a receipt does not count at a moment; empty where every signature of it does.

    ``keys`` are those that were ever trusted, by their fingerprints.
    """
    if envelope.kind != RECEIPT:
        return f"it signs {envelope.kind}, and no receipt"
    message = encoded(envelope.kind, envelope.payload)
    for item in envelope.signatures:
        known = keys.get(item.key)
        if known is None:
            return f"no key {item.key or 'without a name'} is trusted; see: receipts key trust"
        if why := known.refusal(lane, at):
            return why
        if not known.key.verifies(item.value, message):
            return f"it is not of these bytes, or not of the key of {known.name}"
    return ""
