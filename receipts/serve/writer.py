"""The one that writes: documents that wait at the same time share a transaction."""

from __future__ import annotations

from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Final

from receipts.receipt import Document
from receipts.workflows.submit import BATCH, Submission, submit

if TYPE_CHECKING:
    from receipts.api.store import Store

_Waiting = tuple[Document, "Future[Submission]"]
SEALED: Final = 1000  # receipts after which a seal is written


class Writer:
    """A thread that stores documents, as many at once as wait. What it answers is on the disk."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()
        self._unsealed = 0

    def __repr__(self) -> str:
        return f"Writer({self._store!r})"

    def put(self, document: Document) -> Future[Submission]:
        """Store a document; the future has its submission, or the StoreError for which nothing was stored."""
        future: Future[Submission] = Future()
        self._queue.put((document, future))
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
            self._write(batch)
            if last:
                return

    def _write(self, batch: list[_Waiting]) -> None:
        try:
            outcomes = list(submit([document for document, _ in batch], self._store.opened, self._store.rulebook))
        except BaseException as error:  # the thread must go on: who waits is given the error
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), outcome in zip(batch, outcomes, strict=True):
            future.set_result(outcome)
        self._seal(sum(outcome.submitted is not None and outcome.submitted.new for outcome in outcomes))

    def _seal(self, new: int) -> None:
        self._unsealed += new
        if self._unsealed >= SEALED:
            self._unsealed = 0
            self._store.opened.seal()
