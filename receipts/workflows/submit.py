"""Submitting: documents are parsed, judged, and stored with their bytes and verdict, each whole or not at all.

One at a time or by the million: a hundred share a transaction, what the store holds already is known by its digest,
and processes beside the one that writes can parse and judge.

Each stage maps a batch of submissions to the same batch: read (with the trace that a receipt names), skip, parse,
judge, sign, write. A submission that has ended passes through the stages that follow unchanged, so that a batch keeps
its order. Signatures are checked before anything is written, and kept before the receipt is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from receipts.base.errors import ConflictError, InputError, Problem
from receipts.base.untrusted_text import may_hold_secret, secret_under
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import EXIT, ReceiptVerdict, Status
from receipts.metrics import Launch
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.load import Item, document, named_traces
from receipts.store.entries import CODEC, unpack

if TYPE_CHECKING:
    from receipts.signing.key import Envelope, PrivateKey, Signature
    from receipts.store import Prepared, Store, Submitted
    from receipts.store.credentials import TrustedKey
    from receipts.store.entries import Extract


@dataclass(frozen=True, slots=True)
class Submission:
    """One document. Each stage of the pipeline fills in one field more.

    The way ends with `submitted`, or with `error`, which has every problem of the document. `verdict` is how the
    document is judged now; where the same bytes were stored before, `submitted.status` is how they were judged then.
    A document that another process judged comes back without `parsed` and `verdict`. `notes` say what was read of a
    trace that it names.
    """

    source: str
    document: Document | None = None
    parsed: Parsed | None = None
    verdict: ReceiptVerdict | None = None
    prepared: Prepared | None = None
    submitted: Submitted | None = None
    error: InputError | ConflictError | None = None
    name: str = ""
    status: Status | None = None
    notes: tuple[str, ...] = ()
    extracts: tuple[Extract, ...] = ()  # what plugins made of that trace

    @property
    def stored(self) -> bool:
        """Whether the store holds the document."""
        return self.submitted is not None

    @property
    def ended(self) -> bool:
        """Whether no stage has anything left to do."""
        return self.submitted is not None or self.error is not None


def exit_code(submissions: Iterable[Submission], require: Status | None = None) -> int:
    """2 where a document was refused, else 0; with ``require`` the code of the worst status that falls short of it.

    ``valid`` asks for valid, ``open`` for anything but invalid.
    """
    refused, statuses = False, set[Status]()
    for item in submissions:
        refused = refused or not item.stored
        if item.status is not None:
            statuses.add(item.status)
    if refused:
        return 2
    if require is None or require == "invalid":
        return 0
    if "invalid" in statuses:
        return EXIT["invalid"]
    return EXIT["open"] if require == "valid" and "open" in statuses else 0


@dataclass(frozen=True)
class Signers:
    """Who signs the receipts of a submit: a key that is here, or the envelopes that they came in, by their ids."""

    key: PrivateKey | None = None
    envelopes: Mapping[str, Envelope] = field(default_factory=dict)

    def envelope(self, receipt: str, raw: Callable[[], bytes]) -> Envelope | None:
        """The envelope of a receipt with these bytes; None where nobody signs it."""
        if self.key is None:
            return self.envelopes.get(receipt)
        from receipts.signing.key import RECEIPT, signed

        return signed(RECEIPT, raw(), self.key)


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
    if kept:
        store.signing.add(kept)

    def settled(item: Submission) -> Submission:
        error = refused.get(item.prepared.row["id"]) if item.prepared is not None else None
        return item if error is None else replace(item, error=error, prepared=None, status=None)

    return [settled(item) for item in batch]


def refusal(envelope: Envelope, lane: str, keys: Mapping[str, TrustedKey], at: datetime) -> str:
    """Why the envelope of a receipt does not count at a moment; empty where every signature of it does.

    ``keys`` are those that were ever trusted, by their fingerprints.
    """
    from receipts.signing.key import RECEIPT, encoded

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


# A transaction's cost is one wait for the disk; a hundred receipts share it.
BATCH: Final = 100
MAX_BYTES: Final = 16 * 1024 * 1024  # of a batch's documents, held at once; a larger one is its own batch

Batch = list[Submission]


def batches(documents: Iterable[Item]) -> Iterator[list[Item]]:
    """Documents in their order, so many at a time as share a transaction."""
    batch: list[Item] = []
    held = 0
    for item in documents:
        size = _size(item)
        if batch and (len(batch) == BATCH or held + size > MAX_BYTES):
            yield batch
            batch, held = [], 0
        batch.append(item)
        held += size
    if batch:
        yield batch


def _size(item: Item) -> int:
    if isinstance(item, Document):
        return len(item.raw)
    try:
        return os.path.getsize(item) if isinstance(item, str) else 0
    except (OSError, ValueError):
        return 0  # reading it says what is wrong


def judge(
    items: Sequence[Item],
    store: Store,
    rulebook: Rulebook,
    *,
    resume: bool,
    signed: Collection[str] = (),
    local: bool = True,
    sent: bool = False,
) -> Batch:
    """All stages before the write. With ``resume`` documents that the store holds are neither parsed nor judged.

    In a worker process, ``sent`` leaves out what the writer does not need.
    """
    batch = [_received(item, store, rulebook, signed, local=local) for item in items]
    if resume:
        batch = _skip_known(batch, store)
    batch = [_parse(item) for item in batch]
    judged = judge_new([item.parsed for item in batch if item.parsed is not None], store, rulebook)
    batch = [item if item.parsed is None else _judged(item, *next(judged)) for item in batch]
    return [replace(item, document=None, parsed=None, verdict=None) for item in batch] if sent else batch


def write(batch: Batch, store: Store, extracts: Mapping[str, Sequence[Extract]], *, decides: bool) -> Batch:
    """The last stage: every judged submission in one transaction (`Store.write`), then what plugins made of traces."""
    ready = [item.prepared for item in batch if item.prepared is not None]
    results = iter(store.write(ready, decides=decides) if ready else ())
    written = []
    for item in batch:
        result = next(results) if item.prepared is not None else item.submitted
        if isinstance(result, ConflictError):
            written.append(replace(item, error=result, status=None))
            continue
        written.append(replace(item, submitted=result))
        if result is not None and (kept := item.extracts or extracts.get(result.id)):
            store.keep_extracts(result.id, kept)
    return written


def _received(item: Item, store: Store, rulebook: Rulebook, signed: Collection[str], *, local: bool) -> Submission:
    """A document with what the trace shows that it names; one that is signed, or stored as it is, stays so."""
    try:
        received = document(item)
    except InputError as error:
        return Submission(error.source, error=error)
    read = Submission(received.source, received)
    if received.id in signed or not named_traces(received.raw):
        return read
    from receipts.store.evidence import kept_files
    from receipts.workflows.traces import read_traces

    if store.entries([received.id]):
        return read
    try:
        kept = kept_files(store.database.address)
        traced = read_traces(received, rulebook.lanes, kept, local=local)
    except InputError as error:
        return replace(read, error=error)
    return replace(read, document=traced.document, notes=traced.notes, extracts=traced.extracts)


def _skip_known(batch: Batch, store: Store) -> Batch:
    """End the way of documents that the store holds, by their digests."""
    from receipts.store import Submitted

    ids = [item.document.id for item in batch if item.document is not None]
    known = {entry.id: entry for entry in store.entries(ids)}

    def skip(item: Submission) -> Submission:
        held = known.get(item.document.id) if item.document is not None and not item.ended else None
        if held is None:
            return item
        stored = Submitted(held.id, False, held.submitted_at, held.status, stands=held.stands)
        return replace(item, submitted=stored, name=held.name, status=cast(Status, held.status))

    return [skip(item) for item in batch]


def _parse(item: Submission) -> Submission:
    if item.ended or item.document is None:
        return item
    try:
        parsed = parse(item.document)
        _refuse_secrets(parsed)
    except InputError as error:
        return replace(item, source=error.source, error=error)
    return replace(item, parsed=parsed, name=parsed.name)


def _refuse_secrets(parsed: Parsed) -> None:
    """Refuse what a store would keep for ever: an issued token, a password by its name or in an address."""
    if not may_hold_secret(parsed.raw.decode("utf-8", "replace")):
        return
    items = {path: value if isinstance(value, list) else [value] for path, value in parsed.stated.items()}
    # Mostly it was an escaped character: all leaves at once, read without escapes, show that it was no more.
    if not may_hold_secret("\n".join("\n".join([f"{path}\0", *map(str, of)]) for path, of in items.items())):
        return
    problems = [
        Problem(path, f"it holds what looks like a secret ({start})", "take it out: a store keeps what it was given")
        for path, of in items.items()
        for item in of
        if (start := secret_under(path, item))
    ]
    if problems:
        raise InputError(parsed.source, problems)


def judge_new(receipts: Sequence[Parsed], store: Store, rulebook: Rulebook) -> Iterator[tuple[Launch, ReceiptVerdict]]:
    """Receipts judged by the facts that the store holds of each, all asked for at once."""
    facts = store.query.facts_of_new(receipts, rulebook.session.settings) if receipts else []
    for launch, known in zip(map(rulebook.launch, receipts), facts, strict=True):
        yield launch, judge_receipt(launch.parsed, launch.lane, rulebook.rules, known, launch)


def _judged(item: Submission, launch: Launch, verdict: ReceiptVerdict) -> Submission:
    from receipts.store import prepare

    try:
        return replace(item, verdict=verdict, prepared=prepare(launch, verdict), status=verdict.status)
    except InputError as error:
        return replace(item, error=error)


def submit(
    documents: Iterable[Item],
    store: Store,
    rulebook: Rulebook,
    *,
    jobs: int = 1,
    resume: bool = False,
    signers: Signers | None = None,
    decides: bool = False,
    local: bool = True,
    extracts: Mapping[str, Sequence[Extract]] = MappingProxyType({}),
) -> Iterator[Submission]:
    """Store every document that is a receipt, and tell of every other one why it is none; in their order.

    A text is the path of a file; an InputError takes the place of a document that could not be read.
    What is yielded as stored is on the disk. Raises StoreError and RuleError, which are no fault of a document; what
    was yielded before stays stored.

    With ``resume`` what the store holds already is neither parsed nor judged again. With ``jobs`` above 1 so many other
    processes parse and judge, some batches ahead: then a receipt's facts are those that the store held at that moment.
    ``signers`` say who signs; a receipt whose signature does not count is refused.
    Only an actor who ``decides`` replaces a receipt that another actor submitted. ``local``: the documents are of this
    machine, and so may the traces be that they name; of others the store's kept files alone are read. ``extracts`` are
    what plugins made of the evidence that was read for a document before, by its id.
    """
    by = signers or Signers()
    signed = frozenset(by.envelopes)
    work = partial(judge, resume=resume, signed=signed, local=local)
    if jobs <= 1:
        judged = (work(items, store, rulebook) for items in batches(documents))
    else:
        from receipts.workflows.workers import elsewhere

        judged = elsewhere(partial(work, sent=True), batches(documents), store, rulebook, jobs)
    with closing(judged) as ready:
        for batch in ready:
            yield from write(sign(batch, store, rulebook, by), store, extracts, decides=decides)
