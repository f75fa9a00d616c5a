"""The stages of a submit, each from a batch of submissions to the same batch: read, skip, parse, judge, write.

A submission that has ended passes through the stages that follow unchanged, so that a batch keeps its order.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from receipts.base.errors import ConflictError, InputError, Problem
from receipts.base.untrusted_text import may_hold_secret, secret_under
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import ReceiptVerdict, Status
from receipts.metrics import Launch
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.load import Item, document
from receipts.workflows.submit.submission import Submission

if TYPE_CHECKING:
    from receipts.store import Store, Submitted

# A transaction's cost is one wait for the disk; a hundred receipts share it.
BATCH: Final = 100
MOST_BYTES: Final = 16 * 1024 * 1024  # of a batch's documents, held at once; a larger one is its own batch

Batch = list[Submission]


def batches(documents: Iterable[Item]) -> Iterator[list[Item]]:
    """Documents in their order, so many at a time as share a transaction."""
    batch: list[Item] = []
    held = 0
    for item in documents:
        size = _size(item)
        if batch and (len(batch) == BATCH or held + size > MOST_BYTES):
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


def judge(items: Sequence[Item], store: Store, rulebook: Rulebook, *, resume: bool) -> Batch:
    """All stages before the write. With ``resume`` documents that the store holds are neither parsed nor judged."""
    batch = [_read(item) for item in items]
    if resume:
        batch = _skip_known(batch, store)
    return _judge([_parse(item) for item in batch], store, rulebook)


def judge_to_send(items: Sequence[Item], store: Store, rulebook: Rulebook, *, resume: bool) -> Batch:
    """`judge` in a worker process, without what the writer does not need."""
    judged = judge(items, store, rulebook, resume=resume)
    return [replace(item, document=None, parsed=None, verdict=None) for item in judged]


def write(batch: Batch, store: Store, *, decides: bool) -> Batch:
    """The last stage: every judged submission in one transaction; see `Store.write`."""
    ready = [item.prepared for item in batch if item.prepared is not None]
    results = iter(store.write(ready, decides=decides) if ready else ())
    return [item if item.prepared is None else _written(item, next(results)) for item in batch]


def _written(item: Submission, result: Submitted | ConflictError) -> Submission:
    if isinstance(result, ConflictError):
        return replace(item, error=result, status=None)
    return replace(item, submitted=result)


def _read(item: Item) -> Submission:
    try:
        received = document(item)
    except InputError as error:
        return Submission(error.source, error=error)
    return Submission(received.source, received)


def _skip_known(batch: Batch, store: Store) -> Batch:
    """End the way of documents that the store holds, by their digests."""
    from receipts.store import Submitted

    ids = [item.document.id for item in batch if item.document is not None]
    known = {entry.id: entry for entry in store.entries(ids)}

    def skip(item: Submission) -> Submission:
        held = known.get(item.document.id) if item.document is not None else None
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
    problems = [
        Problem(path, f"it holds what looks like a secret ({start})", "take it out: a store keeps what it was given")
        for path, value in parsed.stated.items()
        for item in (value if isinstance(value, list) else [value])
        if (start := secret_under(path, item))
    ]
    if problems:
        raise InputError(parsed.source, problems)


def judge_new(receipts: Sequence[Parsed], store: Store, rulebook: Rulebook) -> Iterator[tuple[Launch, ReceiptVerdict]]:
    """Receipts judged by the facts that the store holds of each, all asked for at once."""
    facts = store.query.facts_of_new(receipts, rulebook.session.settings) if receipts else []
    for launch, known in zip(map(rulebook.launch, receipts), facts, strict=True):
        yield launch, judge_receipt(launch.parsed, launch.lane, rulebook.rules, known, launch)


def _judge(batch: Batch, store: Store, rulebook: Rulebook) -> Batch:
    judged = judge_new([item.parsed for item in batch if item.parsed is not None], store, rulebook)
    return [item if item.parsed is None else _judged(item, *next(judged)) for item in batch]


def _judged(item: Submission, launch: Launch, verdict: ReceiptVerdict) -> Submission:
    from receipts.store import prepare

    try:
        return replace(item, verdict=verdict, prepared=prepare(launch, verdict), status=verdict.status)
    except InputError as error:
        return replace(item, error=error)
