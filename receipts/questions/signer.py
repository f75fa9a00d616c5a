"""By whom a stored receipt is signed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from receipts.base.errors import UsageError

if TYPE_CHECKING:
    from receipts.receipt import Parsed
    from receipts.store import Store

State = Literal["signed", "unsigned", "bad", "unchecked"]


class Signer(NamedTuple):
    """Whether a receipt is signed, by whom, and what is wrong where its state is ``bad`` or ``unchecked``."""

    state: State
    name: str = ""
    why: str = ""

    def __str__(self) -> str:
        if self.state == "signed":
            return f"signed by {self.name}" + (f" ({self.why})" if self.why else "")
        return {"unsigned": "unsigned", "bad": f"bad signature: {self.why}", "unchecked": f"signed, {self.why}"}[
            self.state
        ]


def signer(store: Store, parsed: Parsed) -> Signer | None:
    """By whom a receipt is signed; None where the store trusts no key and the receipt has no signature.

    A signature counts by what held of its key when it came: a later end or revocation is named and takes nothing away.
    """
    from receipts.signing.envelope import RECEIPT, encoded

    kept, keys = store.signing.of(parsed.id), {item.key.fingerprint: item for item in store.signing.every_key()}
    if not kept:
        return Signer("unsigned") if keys else None
    names, notes = [], []
    for item in kept:
        known = keys.get(item.signature.key)
        if known is None:
            return Signer("bad", why=f"no key {item.signature.key} was ever trusted")
        try:
            holds = known.key.verifies(item.signature.value, encoded(RECEIPT, parsed.raw))
        except UsageError as error:
            return Signer("unchecked", why=str(error))
        why = known.refusal(parsed.receipt.run.lane, item.at) if holds else f"it is not of the key of {known.name}"
        if why:
            return Signer("bad", why=why)
        names.append(known.name)
        notes += [f"revoked since: {known.revoked}"] if known.revoked is not None else []
    return Signer("signed", " and ".join(names), "; ".join(notes))
