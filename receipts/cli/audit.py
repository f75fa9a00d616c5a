"""``receipts audit``, ``verify``, ``evidence``, ``revalidate``: whether the store and its verdicts still hold.

``audit`` holds rows against digests and seals, ``verify`` reads the files of evidence again, ``evidence`` lists, gets
and collects the files that the store keeps, and ``revalidate`` judges stored verdicts again by the present rules.
"""

from __future__ import annotations

import fnmatch
import shutil
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from receipts.api.questions.check import evidence_list
from receipts.base.errors import NotFound, UsageError, near
from receipts.base.units import amount, counted, moment
from receipts.cli import output
from receipts.cli.asked import command
from receipts.cli.session import Answer, Session, group, verb

if TYPE_CHECKING:
    from receipts.signing.key import PrivateKey
    from receipts.store import Store
    from receipts.store.seals import Seal
    from receipts.workflows.audit import Audit, Fault
    from receipts.workflows.revalidate import Tally


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
def audit(
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
    from receipts.publish.tables import audited
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
        lambda: _audit_data(result, seals, head),
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


def _audit_data(audit: Audit, seals: list[Seal], head: str | None) -> dict[str, Any]:
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
    from receipts.publish.tables import proof as shown

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
    from receipts.publish.tables import continued as shown
    from receipts.workflows.checkpoints import continued

    first, colon, second = seals.partition(":")
    if not first.isdecimal() or (colon and not second.isdecimal()):
        raise UsageError(f"--consistency {seals}: write a number of seals, or two: 3:7")
    proof = continued(store, int(first), int(second) if colon else None)
    return Answer({**proof._asdict(), "proof": list(proof.proof)}, lambda: shown(proof))


@group("evidence")
def evidence() -> None:
    """The files of evidence that the store keeps, by their digests.

    Examples:
      receipts evidence list
      receipts evidence get 5d1c6f0a -o trace.json
      receipts evidence gc

    receipts submit run.json --evidence DIR keeps the files that it reads, packed, in STORE.evidence; RECEIPTS_EVIDENCE
    names another folder, or an object store (s3://bucket/prefix). RECEIPTS_EVIDENCE_LIMIT ("200 GiB") is the most that
    all of them may take, packed.
    """


evidence.add_command(command(evidence_list))


@verb("get", of=evidence)
@click.argument("digest")
@click.option("--output", "-o", "path", required=True, metavar="FILE", type=click.Path(path_type=Path), help="To here.")
def get(session: Session, digest: str, path: Path) -> Answer:
    """Write one kept file, checked against its digest.

    Examples:
      receipts evidence get 5d1c6f0a -o trace.json
    """
    from receipts.base.files import refuse_existing, staged, writable
    from receipts.store.evidence import kept_files

    refuse_existing(path)
    kept = kept_files(session.store.database.address)
    whole = [item.digest for item in kept.all() if item.digest.startswith(digest)] if kept is not None else []
    if kept is None or len(whole) != 1:
        raise UsageError(f"{digest}: {counted(len(whole), 'kept file')} of that digest; see: receipts evidence list")
    with kept.file(whole[0]) as plain, writable(path), staged(path) as beside:
        shutil.copyfile(plain, beside)
    return Answer({"digest": whole[0], "file": str(path)}, f"wrote {path}")


@verb("gc", of=evidence)
@click.option(
    "--older", type=click.IntRange(1, 36_500), metavar="DAYS", help="Also remove those of launches older than this."
)
@click.option("--dry-run", is_flag=True, help="Remove nothing.")
def gc(session: Session, older: int | None, dry_run: bool) -> Answer:
    """Remove the kept files that no receipt lists. Receipts whose files go are evidenced, and no longer kept.

    Examples:
      receipts evidence gc --dry-run
      receipts evidence gc --older 365
    """
    from receipts.store.evidence import collect

    since = datetime.now(UTC) - timedelta(days=older) if older is not None else None
    loose = collect(session.store, since=since, dry_run=dry_run)
    verb = "would be removed" if dry_run else "removed"
    total = f"{verb}: {counted(len(loose), 'file')}, {amount(sum(item.size for item in loose))}"
    return Answer([item._asdict() for item in loose], total)


@verb("revalidate")
@click.option("--since", metavar="WHEN", help="Only what was stored or judged since then: 2026-03-01, or 7d.")
@click.option("--lane", "lanes", multiple=True, metavar="GLOB", help="Only receipts of this lane; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Print what would flip, and write nothing.")
def revalidate(session: Session, since: str | None, lanes: tuple[str, ...], dry_run: bool) -> Answer:
    """Judge stored receipts, comparisons and claims again under the current rules, and list what flipped and why.

    A flip is a change of status. It is printed with the findings that appeared or vanished, and their rules.

    Examples:
      receipts revalidate --dry-run
      receipts revalidate
      receipts revalidate --since 2026-03-01 --lane 'gb200-*'

    Earlier verdicts are kept. What was already judged under the current rule set is skipped, so after an interruption,
    run the same command again. A verdict that no seal holds, or that contradicts the one before it under the same
    rules, is judged again even so, because anyone who can write to the database can add one. At the end everything is
    sealed.

    Exit codes: 0 all that was valid, accepted or supported still is, 1 something no longer is, 2 wrong call,
    4 the store failed.
    """
    from receipts.publish.tables import flipped, rejudged
    from receipts.store import Condition, Filters
    from receipts.workflows.revalidate import Revalidation, Tally

    begin = moment("--since", since) if since is not None else None
    tally = Tally()
    store = session.store
    names = session.rulebook.lanes.names()
    for lane in lanes:  # one that fits no declared lane and no receipt is a slip, and must not read as nothing to do
        of_lane = Filters((Condition("lane", "=", lane),), superseded=True, limit=1)
        if not fnmatch.filter(names, lane) and next(store.find(of_lane), None) is None:
            hint = near(lane, names)
            raise NotFound(
                f"--lane {lane}: no such lane is declared, and no receipt names it; see: receipts lanes{hint}"
            )
    work = Revalidation(store, session.rulebook, begin, lanes, dry_run)
    progress = session.progress.of(work.count())
    for done, item in enumerate(work.run(), 1):
        tally.add(item)
        progress.at(done)
        if item.flipped and not session.as_json:
            progress.clear()
            output.show(flipped(item))
    rules = session.rulebook.rules.digest
    return Answer(
        lambda: _tally_data(tally, rules, dry_run),
        lambda: rejudged(tally, dry_run=dry_run),
        tally.exit_code,
        ("what quotes them: receipts impact ID",) if tally.exit_code else (),
    )


def _tally_data(tally: Tally, rules: str, dry_run: bool) -> dict[str, Any]:
    return {
        "rules": rules,
        "dry_run": dry_run,
        "judged": tally.judged,
        "same": tally.same,
        "reworded": tally.reworded,
        "flipped": [
            {"receipts": row.pop("names"), **row, "fell": item.fell} for item in tally.flipped for row in [asdict(item)]
        ],
    }
