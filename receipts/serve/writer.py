"""The one that writes: documents that wait at the same time share a transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.base.errors import StoreError
from receipts.receipt import Document
from receipts.workflows.submit import BATCH, Signers, Submission, submit

if TYPE_CHECKING:
    from receipts.api.store import Store
    from receipts.signing.envelope import Envelope
    from receipts.store.tokens import Token

SEALED: Final = 1000  # receipts after which a seal is written


class _Waiting(NamedTuple):
    document: Document
    token: Token | None
    envelope: Envelope | None
    future: Future[Submission]


class Writer:
    """A thread that stores documents, as many of one token at once as wait. What it answers is on the disk.

    ``stored`` is called with what was written, after the commit.
    """

    def __init__(
        self,
        store: Callable[[Token | None], Store],
        stored: Callable[[Sequence[Submission]], None] | None = None,
    ) -> None:
        self._store = store
        self._stored = stored
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()
        self._unsealed = 0

    def put(self, document: Document, token: Token | None, envelope: Envelope | None = None) -> Future[Submission]:
        """Store a document, and the signatures of its envelope. The future has its submission, or the StoreError for
        which nothing was stored.
        """
        future: Future[Submission] = Future()
        self._queue.put(_Waiting(document, token, envelope, future))
        return future

    def close(self) -> None:
        """Store what waits, then end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch, last = [first], False
            while len(batch) < BATCH and not last:
                try:
                    item = self._queue.get_nowait()
                except Empty:
                    break
                if item is None:
                    last = True
                else:
                    batch.append(item)
            # An envelope is written by itself: two in one batch may be of the same receipt.
            for (token, _), items in groupby(batch, key=lambda item: (item.token, item.envelope)):
                self._write(list(items), self._store(token), decides=token is not None and token.may("decide"))
            if last:
                return

    def _write(self, batch: Sequence[_Waiting], store: Store, *, decides: bool) -> None:
        try:
            documents = [item.document for item in batch]
            by = Signers(None, {item.document.id: item.envelope for item in batch if item.envelope is not None})
            outcomes = list(submit(documents, store.opened, store.rulebook, signers=by, decides=decides))
        except BaseException as error:  # the thread must go on: who waits is given the error
            for item in batch:
                item.future.set_exception(error)
            return
        for item, outcome in zip(batch, outcomes, strict=True):
            item.future.set_result(outcome)
        if self._stored is not None:
            self._stored(outcomes)
        self._seal(store, sum(outcome.submitted is not None and outcome.submitted.new for outcome in outcomes))

    def _seal(self, store: Store, new: int) -> None:
        self._unsealed += new
        if self._unsealed >= SEALED:
            self._unsealed = 0
            with suppress(StoreError):  # the next receipts are sealed with these
                store.opened.seal()
