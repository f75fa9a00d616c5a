"""Submitting: documents are parsed, judged, and stored with their bytes and verdict, each whole or not at all.

One at a time or by the million: a hundred share a transaction, what the store holds already is known by its digest,
and processes beside the one that writes can parse and judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from receipts.judging.rulebook import Rulebook
from receipts.receipt.load import Item
from receipts.workflows.submit.pipeline import BATCH, batches, judge, judge_to_send, write
from receipts.workflows.submit.signed import Signers, sign
from receipts.workflows.submit.submission import Submission, exit_code

if TYPE_CHECKING:
    from receipts.store import Store

__all__ = ["BATCH", "Signers", "Submission", "exit_code", "submit"]


def submit(
    documents: Iterable[Item],
    store: Store,
    rulebook: Rulebook,
    *,
    jobs: int = 1,
    resume: bool = False,
    signers: Signers | None = None,
    decides: bool = False,
) -> Iterator[Submission]:
    """Store every document that is a receipt, and tell of every other one why it is none; in their order.

    A text is the path of a file; an InputError takes the place of a document that could not be read.
    What is yielded as stored is on the disk. Raises StoreError and RuleError, which are no fault of a document; what
    was yielded before stays stored.

    With ``resume`` what the store holds already is neither parsed nor judged again. With ``jobs`` above 1 so many other
    processes parse and judge, some batches ahead: then a receipt's facts are those that the store held at that moment.
    ``signers`` say who signs; a receipt whose signature does not count is refused.
    Only an actor who ``decides`` replaces a receipt that another actor submitted.
    """
    by = signers or Signers()
    if jobs <= 1:
        for items in batches(documents):
            batch = judge(items, store, rulebook, resume=resume)
            yield from write(sign(batch, store, rulebook, by), store, decides=decides)
        return
    from receipts.workflows.workers import elsewhere

    work = partial(judge_to_send, resume=resume)
    with closing(elsewhere(work, batches(documents), store, rulebook, jobs)) as ready:
        for batch in ready:
            yield from write(sign(batch, store, rulebook, by), store, decides=decides)
