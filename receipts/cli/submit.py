"""``receipts submit`` and ``flush``: check receipts and keep them, on this machine where a server does not answer.

A submit that cannot reach the server keeps what is left in the spool; ``flush`` stores it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from receipts.base.errors import DiskError, InputError, NoRoom, ReceiptsError, StoreError, Unreachable, UsageError
from receipts.cli import output
from receipts.cli.session import Answer, Session, verb
from receipts.publish.page import Page

if TYPE_CHECKING:
    from receipts.judging.verdict import Status
    from receipts.receipt import Document
    from receipts.receipt.load import Item
    from receipts.workflows.evidence import Amended
    from receipts.workflows.spool import Flushed, Pending
    from receipts.workflows.submit import Signers


SHOWN = 5


@dataclass
class Spooling:
    """The rest of a submit: the exit code, 0 if nothing had to be kept, and a row for each document.

    ``lost``: some could not be kept either.
    """

    items: Pending[Item]
    rows: list[dict[str, Any]]
    code: int = 0
    lost: bool = False


@contextmanager
def spooling(
    session: Session, documents: Iterable[Item], rows: list[dict[str, Any]], *, keeps: bool = True
) -> Iterator[Spooling]:
    """Around a submit: if the store cannot be reached or has no room, keep every document that it did not confirm.

    Without ``keeps`` they are not kept: a spool has no signatures, and would send them unsigned.
    Other faults of a store pass: a user who may not write is nothing that waiting mends.
    """
    from receipts.workflows.spool import Pending

    spooling = Spooling(Pending(documents), rows)
    try:
        yield spooling
    except (Unreachable, NoRoom, DiskError) as error:
        if not keeps:
            raise
        spooling.code = error.exit_code
        _keep_rest(session, spooling, error)
    else:
        for text in waiting(session):
            output.note(text)


def _keep_rest(session: Session, spooled: Spooling, error: ReceiptsError) -> None:
    from receipts.workflows import spool

    target = session.target
    output.refuse(error)
    kept, full = 0, not isinstance(error, Unreachable)
    rest = spooled.items.rest()
    lost: list[str] = []
    try:
        for item in spool.keep(rest, target):
            if isinstance(item, InputError):
                output.refuse(item)
                spooled.rows.append({"source": item.source, "error": str(item)})
            else:
                kept += 1
                spooled.rows.append({"source": item.source, "id": item.id, "spooled": True})
    except StoreError as failed:
        output.refuse(failed)
        spooled.lost = True
        lost = [item if isinstance(item, str) else item.source for item in rest]
        spooled.rows += ({"source": source, "error": f"not kept: {failed}"} for source in lost)
    if lost:
        shown = ", ".join(lost[:SHOWN]) + (f" and {len(lost) - SHOWN:,} more" if len(lost) > SHOWN else "")
        output.note(f"nor are the {len(lost):,} after it: {shown}")
    if kept:
        output.note(
            f"{'nothing is lost: ' if not spooled.lost else ''}{kept:,} kept in {spool.place(target)}\n"
            f"when the {'disk has room' if full else 'server is back'}, store them with: {_flush_call(session)}"
        )


def waiting(session: Session) -> list[str]:
    """That documents wait for this store, where some do."""
    from receipts.workflows import spool

    count = spool.count(session.target)
    return (
        [f"{count:,} kept earlier still wait for this store; store them with: {_flush_call(session)}"] if count else []
    )


def _flush_call(session: Session) -> str:
    """The command that drains the spool of the store that this command was given."""
    from receipts.store.address import address

    if not session.asks_store:
        return "receipts flush"
    named = session.server.url if session.server is not None else address(session.store_url)
    return f"receipts --store '{named}' flush"


@verb("flush")
@click.option("--again", is_flag=True, help="Also retry documents that the store refused before.")
def flush(session: Session, again: bool) -> Answer:
    """Store every document that was kept on this machine while its store was down or had no room.

    Examples:
      receipts flush
      receipts --store postgresql+psycopg://me@db/receipts flush
      receipts flush --again

    If a store's server does not answer, or its disk is full, receipts submit keeps the documents on this machine: in
    the user's data folder, or in the folder that RECEIPTS_SPOOL names. Flushing twice, or twice at the same time,
    stores each document once.

    Exit codes: 0 all are stored, 2 some were refused and stay here with the reason, 4 the store still does not answer.
    """
    from receipts.workflows import spool

    target = session.target
    total = spool.count(target)
    if not total and target.startswith("sqlite:") and not spool.waiting(target, refused=True):
        # The store is a file, for which nothing waits: say for which others something does.
        if others := spool.others():
            counts = ", ".join(f"{number} for {store}" for store, number in others.items())
            raise UsageError(
                f"documents wait for another store ({counts}); name it with --store, with user and password"
            )
        return Answer({"flushed": [], "waiting": 0, "refused": 0}, "nothing is waiting to be stored")
    done: list[Flushed] = []
    rows: list[dict[str, object]] = []
    progress = session.progress.of(total, answers=not session.as_json)
    for item in spool.flush(session.submit, target, again=again) if total or again else ():
        done.append(item)
        submitted = item.outcome.submitted
        ended: dict[str, object] = {"error": item.refused}
        if submitted is not None:
            ended = {"new": submitted.new, "status": submitted.status, "submitted_at": submitted.at.isoformat()}
        rows.append({"id": item.waiting.id, "source": item.waiting.source, "kept_at": item.waiting.at, **ended})
        progress.at(len(done))
        if not session.as_json:
            progress.clear()
            from receipts.publish.verdict import outcome

            if item.outcome.error is not None:
                output.refuse(item.outcome.error)
            elif submitted is not None:
                output.show(outcome(item.outcome))
    refused, torn = spool.waiting(target, refused=True), spool.damaged(target)
    data = {"flushed": rows, "waiting": spool.count(target), "refused": len(refused)}
    where = spool.place(target) / spool.REFUSED
    again_with = f"{len(refused)} refused: they are kept in {where}; try them again with: receipts flush --again"
    notes = [again_with] if refused else []
    notes += [f"{file}: it is damaged; look at it, then remove it" for file in torn]
    code = 2 if torn or any(item.refused for item in done) else 0
    return Answer(data, None if done else "nothing is waiting to be stored", code, tuple(notes))


MAX_LISTED = 100  # files from which on nobody reads a line for each


@verb("submit")
@click.argument("files", nargs=-1, required=True, metavar="FILE…|DIR|-")
@click.option("--require", type=click.Choice(["valid"]), help="Exit 1 or 3 if a receipt is stored but not valid.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    metavar="N",
    help="Processes that parse and judge, besides the one that writes; useful from a few hundred receipts.",
)
@click.option(
    "--evidence", multiple=True, metavar="FILE|FOLDER", help="Store the receipt with what these files of its run show."
)
@click.option("--set", "settings", multiple=True, metavar="PATH=VALUE", help="State a leaf of the receipt.")
@click.option("--supersede", metavar="REASON", help="It replaces the earlier receipt of its launch, for this reason.")
@click.option("--sign", metavar="KEY", help="Sign with this key: its name (receipts key new) or file.")
@click.option("--signed", is_flag=True, help="FILE is a DSSE envelope, which holds the receipt and its signature.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but errors.")
def submit(
    session: Session,
    files: tuple[str, ...],
    require: str | None,
    jobs: int,
    evidence: tuple[str, ...],
    settings: tuple[str, ...],
    supersede: str | None,
    sign: str | None,
    signed: bool,
    quiet: bool,
) -> Answer:
    """Check receipts and store them. `-` is standard input.

    A receipt that is invalid, or that records a failure, is stored too. Only a document that is not a receipt is
    refused, with all its errors. Submitting the same bytes again changes nothing.

    A folder means the .json and .jsonl files in it. A .jsonl file or stream holds one receipt per line. Receipts are
    written a hundred at a time; the last line sums them up, and is the only line for more than a hundred.
    After an interruption, run the same command again: it skips what is already stored. After more than one new receipt
    it writes a seal (receipts audit).

    A trace that the receipt names, as the recorder's does, is read where it lies beside it: what it shows of the path
    is added, and the store keeps it. One that is not here is noted; one with another digest is refused.

    With --evidence, submit reads the logs, profiles and reports of the same launch as receipts ingest does, and adds to
    the receipt what they show and it does not state: one receipt with one id. The store keeps the files (receipts
    evidence). With one receipt, the path of evidence begins in this folder or in that of the receipt; with several, in
    the folder of each. With --supersede the receipt replaces the one that the store holds of its launch; the reason is
    kept in it, and shown with both.

    With --sign the store keeps a DSSE envelope beside each receipt. It must trust the key (receipts key trust).

    Examples:
      receipts submit run.json
      receipts submit runs/*.json --require valid
      receipts submit runs/ --jobs 2
      receipts submit runs.jsonl
      receipts submit run.json --evidence trace/
      receipts submit run.json --evidence trace/ --supersede "the trace came later"
      receipts submit runs/*/run.json --evidence trace/
      ssh node cat run.json | receipts submit -
      receipts submit run.json --sign ana

    Exit codes: 0 stored, whatever its status, which is printed (with --require valid: 1 invalid, 3 open), 2 some
    document was refused (all others are stored), 4 the store failed. If the store's server does not answer or
    its disk is full, the documents are kept on this machine until receipts flush stores them (exit code 4).
    """
    from receipts.publish.verdict import SubmitSum, outcome, submission_json
    from receipts.receipt.load import documents, is_many
    from receipts.workflows.submit import exit_code, submit

    wanted: Status | None = "valid" if require else None
    many = len(files) > MAX_LISTED or any(is_many(word) for word in files)
    tally = SubmitSum()
    rows: list[dict[str, Any]] = []
    total = _total(files)
    progress = session.progress.of(total, answers=not (quiet or session.as_json or many))
    if not quiet and (folders := [word for word in files if os.path.isdir(word)]):
        number = f"{total:,}" if total is not None else "all"
        output.note(f"reading {number} .json and .jsonl files of {', '.join(folders)} and the folders in it")
    amending = bool(evidence or settings) or supersede is not None
    signers, opened = _signers(session, files, sign, signed=signed, amending=amending)
    whole = _amended(session, files, evidence, settings, supersede, quiet or session.as_json) if amending else []
    ready = [item.document for item in whole] or opened
    source = iter(ready) if amending or signed else documents(files, sys.stdin.buffer)
    server, stopped = session.server, ""
    with spooling(session, source, rows, keeps=not (sign or signed)) as kept:
        store = session.opened(create=True) if server is None else None
        if supersede is not None and store is not None:
            from receipts.workflows.evidence import refuse_unheld

            for one in whole:
                refuse_unheld(one.document, store)
        if store is not None and any(item.files for item in whole):
            from receipts.workflows.evidence import keep_evidence

            for one in whole:
                keep_evidence(store, one)
        if server is not None:
            for file in dict.fromkeys(file for one in whole for file in one.files):
                server.keep(file)
        several = many or len(files) > 1 or "-" in files
        resume = several and not (require or sign or signed)
        if store is not None:
            outcomes = submit(
                kept.items,
                store,
                session.rulebook,
                jobs=jobs,
                resume=resume,
                signers=signers,
                decides=supersede is not None,
                extracts={one.document.id: one.extracts for one in whole},
            )
        else:
            assert server is not None
            outcomes = server.submit(kept.items, signers, session.rulebook.lanes)
        for item in outcomes:
            kept.items.settle()
            tally.add(item)
            progress.at(tally.seen)
            if item.error is not None and (not many or tally.refused <= SHOWN):
                progress.clear()
                output.refuse(item.error)
            for note in item.notes if not quiet else ():
                output.note(note)
            if session.as_json:
                ended = {"error": str(item.error)} if item.submitted is None else submission_json(item.submitted)
                rows.append({"source": item.source, **ended})
            elif item.submitted is not None and not quiet and not many and tally.seen <= MAX_LISTED:
                output.show(outcome(item, alone=not several))
            if many and tally.refused >= MAX_LISTED and tally.refused > tally.seen - tally.refused:
                stopped = f"stopped after {tally.seen:,}: most of them are no receipts"
                break
        progress.clear()
        # A stream is known to be many only when it has been read.
        many = many or tally.seen > MAX_LISTED
        if tally.new.total() > 1 and store is not None:
            store.seal()
    notes = [f"{count:,} × {kind}" for kind, count in tally.kinds.most_common(SHOWN) if many and tally.refused > SHOWN]
    notes += [f"{stopped}; name those that are, such as {files[0].rstrip('/')}/*/run.json"] if stopped else []
    if many and store is not None and tally.span is not None and tally.new.total() > 1:
        some = next(item.submitted.id for item in tally.outcomes.values() if item.submitted is not None)
        actor = store.entries([some])[0].actor
        first, last = (at.isoformat() for at in tally.span)
        these = f"submitted>={first} submitted<={last} actor={actor}"
        notes.append(f"to withdraw them all: receipts retract '{these}' --reason …")
    shown = Page("Submit", (tally.sentence(),)) if (many or tally.seen > 1) and not quiet else None
    return Answer(rows, shown, kept.code or exit_code(tally.outcomes.values(), wanted), () if quiet else tuple(notes))


def _signers(
    session: Session, files: Sequence[str], sign: str | None, *, signed: bool, amending: bool
) -> tuple[Signers | None, list[Document]]:
    """Who signs, and the receipts of the files where these are envelopes."""
    if sign is None and not signed:
        return None, []
    from receipts.receipt import Document, read
    from receipts.receipt.load import is_many
    from receipts.signing.key import read_envelope, read_private
    from receipts.workflows.submit import Signers

    if sign is not None and signed:
        raise UsageError("--signed brings signatures, and --sign makes them; leave one out")
    if sign is not None:
        return Signers(read_private(sign)), []
    if amending or any(word == "-" or is_many(word) for word in files):
        raise UsageError("--signed takes files of one envelope each, without --evidence, --set and --supersede")
    envelopes = {word: read_envelope(read(word).raw, word) for word in files}
    opened = [Document(item.payload, word) for word, item in envelopes.items()]
    return Signers(None, {one.id: envelopes[one.source] for one in opened}), opened


def _amended(
    session: Session,
    files: Sequence[str],
    evidence: Sequence[str],
    settings: Sequence[str],
    reason: str | None,
    quiet: bool,
) -> list[Amended]:
    """The receipts of the call, made whole; prints what the evidence of each added and what contradicts it.

    Of one receipt, evidence is named from here, or from its folder; of several, from the folder of each.
    """
    from receipts.ingest.draft import Options
    from receipts.ingest.leaves import read_settings
    from receipts.publish.verdict import added
    from receipts.receipt.load import is_many
    from receipts.workflows.evidence import amended

    if any(is_many(word) for word in files):
        raise UsageError("--evidence, --set and --supersede take files of one receipt each, such as runs/*/run.json")
    if reason is not None and not reason.strip():
        raise UsageError('--supersede "…": say why the earlier receipt is withdrawn')
    lanes = session.rulebook.lanes
    options = Options(None, None, read_settings(settings), tuple(lanes.get(name) for name in lanes.names()))
    documents = []
    for word in files:
        beside = [os.path.join(os.path.dirname(word), item) for item in evidence]
        if len(files) == 1:
            pairs = zip(evidence, beside, strict=True)
            beside = [there if os.path.exists(there) and not os.path.exists(here) else here for here, there in pairs]
        document = amended(word, beside, reason, options, sys.stdin.buffer if word == "-" else None)
        documents.append(document)
        if document.ingested is not None and not quiet:
            output.show(added(word, document.ingested, alone=len(files) == 1))
    return documents


def _total(files: Sequence[str]) -> int | None:
    """How many documents there will be; None where only reading them tells."""
    from receipts.receipt.load import LINES
    from receipts.receipt.load import document_files as in_folder

    count = 0
    for word in files:
        places = in_folder(word) if os.path.isdir(word) else (word,)
        for place in places:
            if place == "-" or place.endswith(LINES):
                return None
            count += 1
    return count
