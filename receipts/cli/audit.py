"""``receipts audit``: whether the store is what it was when its rows were written."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from receipts.base.errors import UsageError
from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.signing.key import PrivateKey
    from receipts.store import Store
    from receipts.store.seals import Seal
    from receipts.workflows.audit import Audit, Fault


@verb("audit")
@click.option("--seal", "sealing", is_flag=True, help="Write a seal over all new rows, if nothing is wrong.")
@click.option(
    "--expect", multiple=True, metavar="ROOT", help="The root of a seal, kept elsewhere; the store must hold that seal."
)
@click.option(
    "--proof",
    metavar="ID",
    help="Print the Merkle proof from a receipt's id to the root of its seal (RFC 6962).",
)
@click.option(
    "--publish",
    metavar="PLACE",
    help="With --seal: append a signed checkpoint elsewhere: FILE, git+URL#FILE, or https://…",
)
@click.option("--sign", metavar="KEY", help="With --publish: the key, by its name or file.")
@click.option(
    "--against",
    metavar="PLACE",
    help="The store must continue these checkpoints: finds a deleted tail, an old backup, a second history.",
)
@click.option(
    "--key", "keys", multiple=True, metavar="FILE", help="Who signed them.  [default: the store's keys of all lanes]"
)
@click.option(
    "--consistency",
    metavar="SEALS",
    help="Print the proof that the log continues the one of its first SEALS (RFC 9162); 3:7 are any two.",
)
def command(
    session: Session,
    sealing: bool,
    expect: tuple[str, ...],
    proof: str | None,
    publish: str | None,
    sign: str | None,
    against: str | None,
    keys: tuple[str, ...],
    consistency: str | None,
) -> Answer | int:
    """Recompute every digest and verify every row against the seals.

    Finds a changed byte, an edited column, a receipt or verdict that was removed without a tombstone, a row inserted
    among sealed ones, and a dangling verdict or reference.

    Examples:
      receipts audit
      receipts audit --seal
      receipts audit --expect 5dc9da79a70659a9
      receipts audit --proof 3f9c
      receipts audit --seal --publish checkpoints.txt --sign ana
      receipts audit --seal --publish git+ssh://git@host/lab/log.git#checkpoints.txt --sign ana
      receipts audit --against checkpoints.txt --key ana.pub

    A seal is a Merkle root over all rows since the last one (docs/store.md). Whoever can change the database can also
    write new seals: keep the root that --seal prints somewhere else, and pass it with --expect.

    Exit codes: 0 everything is as it was written, 1 faults, each printed with what to do, 4 the store failed.
    """
    from receipts.publish.integrity import audited
    from receipts.signing.key import read_private
    from receipts.workflows.audit import audit

    if proof is not None and (sealing or expect or against):
        raise UsageError("--proof is asked for alone: receipts audit --proof ID")
    for root in expect:
        if len(root) < 8 or not set(root.lower()) <= set("0123456789abcdef"):
            raise UsageError(f"--expect {root}: write at least 8 digits of a root, as audit --seal printed it")
    if consistency is not None and (sealing or expect or against or proof):
        raise UsageError("--consistency is asked for alone: receipts audit --consistency SEALS")
    if (publish is None) is not (sign is None) or (publish is not None and not sealing):
        raise UsageError("a checkpoint is published with: receipts audit --seal --publish PLACE --sign KEY")
    if keys and against is None:
        raise UsageError("--key is of --against PLACE; leave it out")
    signer = None if sign is None else read_private(sign)
    store = session.store
    if proof is not None:
        return _prove(store, proof)
    if consistency is not None:
        return _continue(store, consistency)
    result = audit(store, session.rulebook, expect, session.progress.at)
    if against is not None:
        result = replace(result, faults=(*result.faults, *_against(store, against, keys)))
    seals = store.seal() if sealing and result.sealable else []
    notes = [_publish(store, publish, signer)] if publish is not None and signer and result.sealable else []
    head = next((item.root for item in reversed(seals) if item.what == "seals"), result.head)
    return Answer(
        lambda: _as_data(result, seals, head),
        lambda: audited(result, seals, head if sealing and result.sealable else None),
        result.exit_code,
        tuple(notes + _advice(result, head, sealing)),
    )


def _publish(store: Store, target: str, key: PrivateKey) -> str:
    from receipts.workflows.checkpoints import publish_checkpoint, without_secrets

    one, place = publish_checkpoint(store, target, key), without_secrets(target)
    if one is None:
        return f"{place}: no seal came since its last checkpoint"
    return f"{place}: a checkpoint of {counted(one.size, 'seal')}, root {one.root.hex()[:16]}"


def _against(store: Store, source: str, files: tuple[str, ...]) -> list[Fault]:
    from receipts.signing.key import read_public_file
    from receipts.workflows.checkpoints import faults_against

    now = datetime.now(UTC)
    known = [read_public_file(file) for file in files]
    known = known or [item.key for item in store.signing.every_key() if not item.lanes and not item.refusal("", now)]
    return list(faults_against(store, source, known))


def _as_data(audit: Audit, seals: list[Seal], head: str | None) -> dict[str, Any]:
    return {
        "store": audit.store,
        "counts": dict(audit.counts),
        "unsealed": 0 if seals else audit.unsealed,
        "head": head,
        "faults": [asdict(item) for item in audit.faults],
        "notes": list(audit.notes),
        "sealed": [item._asdict() for item in seals],
    }


def _advice(audit: Audit, head: str | None, sealing: bool) -> list[str]:
    """What to do about the seals."""
    if sealing and not audit.sealable:
        return ["nothing was sealed: a seal would say that all this is as it should be"]
    if sealing and head is not None:
        return [f"keep it somewhere else, and hold the store against it with: receipts audit --expect {head[:16]}"]
    if audit.unsealed and not audit.faults:
        return [f"{counted(audit.unsealed, 'row')} came since the last seal; seal them with: receipts audit --seal"]
    return []


def _prove(store: Store, word: str) -> Answer | int:
    from receipts.publish.integrity import proof as shown

    receipt = store.resolve(word)
    with store.inspect() as inspection:
        proof = inspection.proof(receipt)
    if proof is None:
        output.note(f"no seal holds {receipt[:12]}; write one with: receipts audit --seal")
        return 3
    one, steps = proof
    way = [{"left": step.left, "digest": step.digest.hex()} for step in steps]
    data = {"receipt": receipt, "content": ["receipts", receipt], "root": one.root, "seal": one.seq, "proof": way}
    return Answer(data, lambda: shown(receipt, one.root, steps))


def _continue(store: Store, seals: str) -> Answer:
    from receipts.publish.integrity import continued as shown
    from receipts.workflows.checkpoints import continued

    first, colon, second = seals.partition(":")
    if not first.isdecimal() or (colon and not second.isdecimal()):
        raise UsageError(f"--consistency {seals}: write a number of seals, or two: 3:7")
    proof = continued(store, int(first), int(second) if colon else None)
    return Answer({**proof._asdict(), "proof": list(proof.proof)}, lambda: shown(proof))
