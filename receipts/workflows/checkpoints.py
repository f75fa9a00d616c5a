"""Checkpoints of a store's log, kept elsewhere: they show a tail that was deleted, an old backup, a second history.

The log is the list of the store's own seals, in order. A checkpoint says how many there are and what their Merkle root
is: a store that continues the checkpoint has the same root over as many seals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from receipts.base.errors import ConflictError, UsageError
from receipts.base.units import counted
from receipts.signing.note import Checkpoint, read_checkpoints, signed_checkpoint
from receipts.store import merkle
from receipts.workflows.audit.fault import RESTORE, Fault
from receipts.workflows.log_places import log_place, without_secrets

if TYPE_CHECKING:
    from receipts.signing.private import PrivateKey
    from receipts.signing.public import PublicKey
    from receipts.store import Store


class Continued(NamedTuple):
    """The proof that a log of ``second`` seals continues the one of its ``first``; roots and digests in hex."""

    first: int
    second: int
    first_root: str
    second_root: str
    proof: tuple[str, ...]


def publish(store: Store, target: str, key: PrivateKey) -> Checkpoint | None:
    """Append a signed checkpoint of the store's log to a place; None where its last one says the same, or none is due.

    Raises ConflictError where the store does not continue what the place has of it.
    """
    if not (log := _log(store)):
        return None
    with log_place(target) as there:
        text = there.read()
        before = _of(store, text, target)
        for item in before:
            if why := difference(log, item):
                raise ConflictError(f"{without_secrets(target)}: {why}; look into it with: receipts audit --against")
        if before and before[-1].size == len(log):
            return None
        one = signed_checkpoint(origin(store), len(log), merkle.root(log), key)
        there.write(f"{text}{chr(10) if text else ''}{one.note}")
    return one


def published(store: Store, source: str) -> list[Checkpoint]:
    """The checkpoints of a store that a place has. Raises UsageError where it is empty, InputError for other text."""
    with log_place(source) as there:
        text = there.read()
    if not text:
        raise UsageError(f"{without_secrets(source)}: nothing is there; give a place of audit --publish")
    return _of(store, text, source)


def against(store: Store, source: str, keys: Iterable[PublicKey]) -> Iterator[Fault]:
    """What the checkpoints of a place show against the store. Raises as `published` does."""
    log, known, every = _log(store), list(keys), published(store, source)
    if not every:
        none = f"it has no checkpoint of the store {store.id}"
        yield Fault("seal", without_secrets(source), none, "take the store's own place")
    for item in every:
        where = f"checkpoint of {counted(item.size, 'seal')}"
        if not item.signers(known):
            do = "pass the public key that signed it: --key FILE.pub"
            yield Fault("seal", where, "no key that counts signed it", do)
        elif why := difference(log, item):
            yield Fault("seal", where, why, RESTORE)


def continued(store: Store, first: int, second: int | None = None) -> Continued:
    """The proof that the log of so many seals (None: of all) continues the one of its first. Raises UsageError where
    the store does not have as many.
    """
    every = _log(store)
    log = every[: len(every) if second is None else second]
    if not 0 < first <= len(log) or (second or 0) > len(log):
        raise UsageError(f"the store has {counted(len(every), 'seal')}; write two numbers of them, the smaller first")
    roots = merkle.root(log[:first]).hex(), merkle.root(log).hex()
    return Continued(first, len(log), *roots, tuple(item.hex() for item in merkle.consistency(log, first)))


def difference(log: Sequence[bytes], checkpoint: Checkpoint) -> str:
    """Why a log does not continue a checkpoint; empty where it does."""
    if checkpoint.size > len(log):
        gone = counted(checkpoint.size - len(log), "seal")
        return f"{gone} that were published are not there: the tail was deleted, or this is an older backup"
    if merkle.root(log[: checkpoint.size]) != checkpoint.root:
        return "the store has another history than the one that was published"
    return ""


def origin(store: Store) -> str:
    """The name of the store's log."""
    return f"frontier-receipts/{store.id}"


def _of(store: Store, text: str, source: str) -> list[Checkpoint]:
    return [item for item in read_checkpoints(text, without_secrets(source)) if item.origin == origin(store)]


def _log(store: Store) -> list[bytes]:
    with store.inspect() as inspection:
        return inspection.log()
