"""Those that work for the server: the one thread that writes, and processes that answer costly questions.

Documents that wait at the same time share a transaction. A question that takes too long is ended, and the server goes
on.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import groupby
from multiprocessing import get_context, parent_process
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from receipts.base.errors import ReceiptsError, StoreError
from receipts.plugins.serve.guard import TooSlow
from receipts.receipt import Document
from receipts.workflows.submit import BATCH, Signers, Submission, submit

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

    from receipts.api.store import Store
    from receipts.plugins.serve.server import Server, Settings
    from receipts.signing.key import Envelope
    from receipts.store.credentials import Token

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

    @property
    def waiting(self) -> int:
        """How many documents wait to be stored."""
        return self._queue.qsize()

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
            outcomes = list(submit(documents, store.opened, store.rulebook, signers=by, decides=decides, local=False))
        except BaseException as error:  # the thread must go on: who waits is given the error
            for item in batch:
                item.future.set_exception(error)
            return
        for item, outcome in zip(batch, outcomes, strict=True):
            item.future.set_result(outcome)
        if self._stored is not None:
            self._stored(outcomes)
        self._unsealed += sum(outcome.submitted is not None and outcome.submitted.new for outcome in outcomes)
        if self._unsealed >= SEALED:
            self._unsealed = 0
            with suppress(StoreError):  # the next receipts are sealed with these
                store.opened.seal()


A = TypeVar("A")
# Each is a copy of one process that has read these, and threads of the server are none of its own.
_PROCESSES: Final = get_context("forkserver")
_PROCESSES.set_forkserver_preload(
    ["receipts.plugins.serve.workers", "receipts.plugins.serve.operations", "receipts.api.store"]
)


class _Place(NamedTuple):
    """What a worker opens for itself."""

    store: str
    folders: tuple[Any, ...]
    bookkeeping: dict[str, Any]
    prices: dict[str, float]
    settings: Settings


class _Worker:
    """One process, and the way to it."""

    def __init__(self, place: _Place) -> None:
        self._ours, its = _PROCESSES.Pipe()
        self._process: ForkServerProcess = _PROCESSES.Process(target=_work, args=(its, place), daemon=True)
        self._process.start()
        its.close()

    def ask(self, question: Any, seconds: float) -> Any:
        """What a question comes to. Raises what it raises, TooSlow, and EOFError where the process is gone."""
        self._ours.send(question)
        if not self._ours.poll(seconds):
            raise TooSlow(seconds)
        answer, error = self._ours.recv()
        if error is not None:
            raise error
        return answer

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.join()
        self._ours.close()


class Workers:
    """Started processes, as many as questions may run at once. Every method may be called from any thread."""

    def __init__(self, server: Server, count: int) -> None:
        address, rulebook = server.opened.database.address, server.rulebook
        url = str(address.file) if address.file is not None else address.url.render_as_string(hide_password=False)
        added = dict(rulebook.bookkeeping), dict(rulebook.prices)
        self._place = _Place(url, rulebook.extra, *added, server.settings)
        self._seconds = server.settings.limits.seconds
        self._idle: SimpleQueue[_Worker] = SimpleQueue()

        def start() -> None:
            for _ in range(count):
                self._idle.put(_Worker(self._place))

        # The first one takes a second or two, which the server need not wait for.
        Thread(target=start, daemon=True).start()

    def ask(self, answer: Callable[..., A], *given: Any) -> A:
        """``answer(server, *given)`` in a worker: both are sent to it. Raises what it raises, and TooSlow."""
        worker = self._idle.get()
        try:
            answered: A = worker.ask((answer, given), self._seconds)
        except (TooSlow, EOFError, OSError) as error:
            worker.end()
            worker = _Worker(self._place)
            if isinstance(error, TooSlow):
                raise
            raise ReceiptsError("the process that answered is gone; ask again") from None
        finally:
            self._idle.put(worker)
        return answered

    def close(self) -> None:
        """End those that wait; one that still answers ends with this process."""
        with suppress(Empty):
            while True:
                self._idle.get_nowait().end()


def _work(asked: Connection, place: _Place) -> None:
    from receipts.judging.rulebook import Rulebook
    from receipts.plugins.serve.server import Server
    from receipts.store import open_store

    def end_with_parent() -> None:
        if (parent := parent_process()) is not None:
            parent.join()
            os._exit(0)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's, which then ends this
    Thread(target=end_with_parent, daemon=True).start()
    rulebook = Rulebook(place.folders, place.bookkeeping, place.prices)
    server = Server(open_store(place.store, create=False), rulebook, place.settings)
    while True:
        try:
            answer, given = asked.recv()
        except EOFError:
            return
        reply: tuple[Any, Exception | None]
        try:
            reply = answer(server, *given), None
        except Exception as error:
            reply = None, error
        try:
            asked.send(reply)
        except (TypeError, AttributeError, ValueError) as error:  # what cannot be sent
            asked.send((None, ReceiptsError(f"{type(error).__name__}: {error}")))
