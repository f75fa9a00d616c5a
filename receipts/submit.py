"""Submitting: documents are parsed, judged, and stored with their bytes and verdict, each whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from receipts.errors import ConflictError, InputError, ReceiptsError
from receipts.judge import judge_receipt
from receipts.metrics import Launch
from receipts.receipt import Document, Parsed, parse, read
from receipts.rule import Facts
from receipts.rulebook import Rulebook
from receipts.verdict import EXIT, ReceiptVerdict, Status

if TYPE_CHECKING:
    from receipts.store import Store, Submitted

# A transaction's cost is one wait for the disk; a hundred receipts share it.
BATCH = 100


@dataclass(frozen=True)
class Outcome:
    """What became of one document.

    A stored one has `submitted` and `verdict`; where the same bytes were stored before, `verdict` is how they are
    judged now and `submitted.status` how they were then. A refused one has `error`, with every problem in it.
    """

    source: str
    submitted: Submitted | None = None
    verdict: ReceiptVerdict | None = None
    parsed: Parsed | None = None
    error: InputError | ConflictError | None = None

    @property
    def stored(self) -> bool:
        """Whether the store holds the document."""
        return self.submitted is not None


def submit(documents: Iterable[Document | str], store: Store, rulebook: Rulebook) -> Iterator[Outcome]:
    """Store every document that is a receipt, and tell of every other one why it is none; in their order.

    A text is the path of a file. What is yielded as stored is on the disk. Raises StoreError and RuleError, which
    are no fault of a document; what was yielded before stays stored.
    """
    waiting = iter(documents)
    while batch := list(islice(waiting, BATCH)):
        yield from _batch([_parsed(item) for item in batch], store, rulebook)


def _parsed(item: Document | str) -> Parsed | Outcome:
    try:
        return parse(read(item) if isinstance(item, str) else item)
    except InputError as error:
        return Outcome(error.source, error=error)


def _batch(items: Sequence[Parsed | Outcome], store: Store, rulebook: Rulebook) -> Iterator[Outcome]:
    receipts = [item for item in items if isinstance(item, Parsed)]
    known = store.facts_of_new(receipts) if receipts else []
    judged = [_judged(item, facts, rulebook) for item, facts in zip(receipts, known, strict=True)]
    results = iter(zip(judged, store.submit_many(judged), strict=True) if judged else ())
    for item in items:
        if isinstance(item, Outcome):
            yield item
            continue
        (launch, verdict), result = next(results)
        if isinstance(result, ReceiptsError):
            yield Outcome(item.source, parsed=launch.parsed, error=result)
        else:
            yield Outcome(item.source, result, verdict, launch.parsed)


def _judged(parsed: Parsed, facts: Facts, rulebook: Rulebook) -> tuple[Launch, ReceiptVerdict]:
    launch = Launch(parsed, rulebook.lanes.of(parsed.receipt.run.lane))
    return launch, judge_receipt(parsed, launch.lane, rulebook.rules, facts, launch)


def exit_code(outcomes: Iterable[Outcome], require: Status | None = None) -> int:
    """2 where a document was refused, else 0; with ``require`` the code of the worst status that falls short of it.

    ``valid`` asks for valid, ``unwitnessed`` for anything but invalid.
    """
    found = list(outcomes)
    if any(not item.stored for item in found):
        return 2
    statuses = {item.verdict.status for item in found if item.verdict is not None}
    if require is None or require == "invalid":
        return 0
    if "invalid" in statuses:
        return EXIT["invalid"]
    return EXIT["unwitnessed"] if require == "valid" and "unwitnessed" in statuses else 0
