"""Checkpoints of a store's log, kept elsewhere: they show a tail that was deleted, an old backup, a second history.

The log is the list of the store's own seals, in order. A checkpoint says how many there are and what their Merkle root
is: a store that continues the checkpoint has the same root over as many seals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.base import files
from receipts.base.errors import ConflictError, UsageError
from receipts.base.units import counted
from receipts.signing.note import Checkpoint, read_checkpoints, signed_checkpoint
from receipts.store.integrity import merkle
from receipts.workflows.audit.fault import RESTORE, Fault

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


_ORIGIN: Final = "frontier-receipts/"


def publish(store: Store, target: Path, key: PrivateKey) -> Checkpoint | None:
    """Append a signed checkpoint of the store's log to a file; None where its last one says the same, or none is due.

    Raises ConflictError where the store does not continue what the file has of it.
    """
    text = _text(target) if target.exists() else ""
    origin, log = f"{_ORIGIN}{store.id}", _log(store)
    if not log:
        return None
    before = [item for item in read_checkpoints(text, str(target)) if item.origin == origin]
    for item in before:
        if why := difference(log, item):
            raise ConflictError(f"{target}: {why}; look into it with: receipts audit --against {target}")
    one = signed_checkpoint(origin, len(log), merkle.root(log), key)
    if before and before[-1].size == one.size:
        return None
    files.write(target, f"{text}{chr(10) if text else ''}{one.note}", over=True)
    return one


def against(store: Store, source: Path, keys: Iterable[PublicKey]) -> Iterator[Fault]:
    """What checkpoints of a file show against the store. Raises InputError for a file that holds anything else."""
    origin, log, known = f"{_ORIGIN}{store.id}", _log(store), list(keys)
    every = [item for item in read_checkpoints(_text(source), str(source)) if item.origin == origin]
    if not every:
        yield Fault("seal", str(source), f"it has no checkpoint of the store {store.id}", "take the store's own file")
    for item in every:
        where = f"checkpoint of {counted(item.size, 'seal')}"
        if not item.signers(known):
            do = "pass the public key that signed it: --key FILE.pub"
            yield Fault("seal", where, "no key that counts signed it", do)
        elif why := difference(log, item):
            yield Fault("seal", where, why, RESTORE)


def continued(store: Store, size: int) -> Continued:
    """The proof that the store's log continues the one of so many seals. Raises UsageError where it has fewer."""
    log = _log(store)
    if not 0 < size <= len(log):
        raise UsageError(f"the store has {counted(len(log), 'seal')}, and none is number {size}")
    roots = merkle.root(log[:size]).hex(), merkle.root(log).hex()
    return Continued(size, len(log), *roots, tuple(item.hex() for item in merkle.consistency(log, size)))


def difference(log: Sequence[bytes], checkpoint: Checkpoint) -> str:
    """Why a log does not continue a checkpoint; empty where it does."""
    if checkpoint.size > len(log):
        gone = counted(checkpoint.size - len(log), "seal")
        return f"{gone} that were published are not there: the tail was deleted, or this is an older backup"
    if merkle.root(log[: checkpoint.size]) != checkpoint.root:
        return "the store has another history than the one that was published"
    return ""


def _log(store: Store) -> list[bytes]:
    with store.inspect() as inspection:
        return inspection.log()


def _text(source: Path) -> str:
    try:
        return source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{source}: it cannot be read as text; give a file of audit --publish") from None
