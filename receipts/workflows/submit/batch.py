"""A batch of documents: read, known already or parsed and judged, and then taken in by one transaction."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from receipts.base.errors import ConflictError, InputError
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import ReceiptVerdict, Status
from receipts.metrics import Launch
from receipts.receipt import Document, Parsed, parse, read
from receipts.receipt.stream import Item
from receipts.workflows.submit.outcome import Outcome

if TYPE_CHECKING:
    from receipts.store import Held, Prepared, Store

# A transaction's cost is one wait for the disk; a hundred receipts share it.
BATCH: Final = 100
MOST_BYTES: Final = 16 * 1024 * 1024  # of the documents of a batch, which are held at once; a larger one stands alone


class Judged(NamedTuple):
    """A receipt that the store may take, or why no store can. It is light without `verdict` and `parsed`."""

    source: str
    name: str
    status: Status
    prepared: Prepared | InputError
    verdict: ReceiptVerdict | None = None
    parsed: Parsed | None = None


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


def judged(batch: Sequence[Item], store: Store, rulebook: Rulebook, *, resume: bool) -> list[Judged | Outcome]:
    """Every document of a batch judged; or what is to be told of it without that, known ones where it is resumed."""
    found: list[Document | Outcome | Parsed] = [_read(item) for item in batch]
    if resume:
        found = _without_known(found, store)
    found = [_parsed(item) if isinstance(item, Document) else item for item in found]
    receipts = [item for item in found if isinstance(item, Parsed)]
    facts = iter(store.facts_of_new(receipts) if receipts else ())
    return [_judged(item, next(facts), rulebook) if isinstance(item, Parsed) else cast(Outcome, item) for item in found]


def taken(found: Sequence[Judged | Outcome], store: Store) -> Iterator[Outcome]:
    """Store what was judged in one transaction, and tell what became of everything."""
    ready = [item for item in found if isinstance(item, Judged)]
    results = iter(store.take([item.prepared for item in ready]) if ready else ())
    for item in found:
        if isinstance(item, Outcome):
            yield item
            continue
        result = next(results)
        if isinstance(result, InputError | ConflictError):
            yield Outcome(item.source, parsed=item.parsed, error=result, name=item.name)
        else:
            yield Outcome(item.source, result, item.verdict, item.parsed, name=item.name, status=item.status)


def _read(item: Item) -> Document | Outcome:
    try:
        return read(item) if isinstance(item, str) else _given(item)
    except InputError as error:
        return Outcome(error.source, error=error)


def _given(item: Document | InputError) -> Document:
    if isinstance(item, InputError):
        raise item
    return item


def _without_known(found: Sequence[Document | Outcome | Parsed], store: Store) -> list[Document | Outcome | Parsed]:
    """Documents that the store holds, by their digests, become what is told of them."""
    ids = [item.id if isinstance(item, Document) else "" for item in found]
    known = store.held([name for name in ids if name])
    return [
        _again(item.source, known[name]) if isinstance(item, Document) and name in known else item
        for item, name in zip(found, ids, strict=True)
    ]


def _again(source: str, held: Held) -> Outcome:
    from receipts.store import Submitted

    submitted = Submitted(held.id, False, held.at, held.status, stands=held.said is None)
    return Outcome(source, submitted, name=held.name, status=cast(Status, held.status))


def _parsed(document: Document) -> Parsed | Outcome:
    try:
        return parse(document)
    except InputError as error:
        return Outcome(error.source, error=error)


def _judged(parsed: Parsed, facts: Facts, rulebook: Rulebook) -> Judged:
    from receipts.store import prepared

    launch = Launch(parsed, rulebook.lanes.of(parsed.receipt.run.lane))
    verdict = judge_receipt(parsed, launch.lane, rulebook.rules, facts, launch)
    return Judged(parsed.source, parsed.name, verdict.status, prepared(launch, verdict), verdict, parsed)
