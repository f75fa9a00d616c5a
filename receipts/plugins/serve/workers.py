"""Those that work for the server: the one thread that writes, processes that answer costly questions, and notices.

Documents that wait at the same time share a transaction. A question that takes too long is ended, and the server goes
on. What a team hears of (a path left, a claim refuted or stale, the frontier taken) is sent after the commit, by a
thread of its own: a submit never waits for it, and no failure of a target reaches a submit. What is sent, where, and
what becomes of what a target did not take is the service ``notices``.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import groupby
from multiprocessing import get_context, parent_process
from queue import Empty, Full, Queue, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from receipts.base.errors import ReceiptsError, StoreError
from receipts.base.plugins import service
from receipts.emit.secrets import redact
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


SERVE: Final = "receipts serve with webhooks or notify"
PATIENCE: Final = 5.0  # seconds that the end of a server waits for a place in the queue; and twice that for the thread
GATHER: Final = 1.0  # seconds of submits that are looked at together
MAX_WAITING: Final = 1000  # receipts that wait to be looked at; more are left out
AGAIN: Final = (60.0, 3600.0)  # seconds before what was kept is tried again: doubled from the first to the second
_PLACE: Final = ("lane", "model", "layout", "accelerator", "chips", "sequence_length")


class Notice(NamedTuple):
    """One thing that happened: its type as a webhook has it, a sentence, and its data."""

    type: str
    text: str
    data: dict[str, Any]


class Notices:
    """The thread that looks at what was stored, and sends."""

    def __init__(self, server: Server, to: Sequence[Any]) -> None:
        self._server = server
        self._outbox = service("notices", SERVE).Outbox(to, server.opened.database.address.target)
        self._queue: Queue[Submission | None] = Queue(MAX_WAITING)
        self._pause, self._next = AGAIN[0], 0.0  # what an earlier server kept is sent at once
        self._before = self._standing(Standing({}, {}))
        self._thread = Thread(target=self._run, name="notices", daemon=True)
        self._thread.start()

    def stored(self, outcomes: Iterable[Submission]) -> None:
        """Have what was stored looked at. Returns at once."""
        for item in outcomes:
            if item.submitted is not None and item.submitted.new:
                with suppress(Full):
                    self._queue.put_nowait(item)

    def close(self) -> None:
        """Send what waits, for a few seconds at most."""
        with suppress(Full):
            self._queue.put(None, timeout=PATIENCE)
            self._thread.join(2 * PATIENCE)

    @property
    def kept(self) -> int:
        """How many notices wait for a target that did not take them."""
        return int(self._outbox.kept)

    def _run(self) -> None:
        while True:
            batch = self._batch()
            after = self._standing(self._before) if batch else self._before
            self._outbox.send((*paths_left(batch), *changes(self._before, after)))
            if None in batch:
                return
            self._before = after
            if time.monotonic() >= self._next:
                self._pause = AGAIN[0] if self._outbox.retry() else min(2 * self._pause, AGAIN[1])
                self._next = time.monotonic() + self._pause

    def _batch(self) -> list[Submission | None]:
        """What was stored within a moment; None ends it all. Nothing where it is time to send what was kept."""
        try:
            batch = [self._queue.get(timeout=max(0.0, self._next - time.monotonic()))]
        except Empty:
            return []
        time.sleep(GATHER)
        with suppress(Empty):
            while True:
                batch.append(self._queue.get_nowait())
        return batch

    def _standing(self, before: Standing) -> Standing:
        try:
            best = {tuple(row[name] for name in _PLACE): row for row in self._server.frontier() if row["proven"]}
            return Standing({item["claim"]: item for item in self._server.store().claims().to_dict()}, best)
        except ReceiptsError as error:
            sys.stderr.write(redact(f"notices: {error}\n"))
            return before


class Standing(NamedTuple):
    """What the store holds true: its claims by id, and the best proven result of each shape."""

    claims: dict[str, dict[str, Any]]
    best: dict[tuple[Any, ...], dict[str, Any]]


def paths_left(stored: Iterable[Submission | None]) -> Iterator[Notice]:
    """A notice for each new receipt whose launch left the path of its lane."""
    for item in stored:
        if item is not None and (verdict := item.verdict) is not None and verdict.path == "left":
            reasons = [f"{one.code} {one.found}" for one in verdict.findings if one.level == "E"]
            text = f"{item.name or verdict.receipt[:12]} left the path of {verdict.lane}: {'; '.join(reasons)}"
            data = {"receipt": verdict.receipt, "label": verdict.label, "lane": verdict.lane, "reasons": reasons}
            yield Notice("path.left", text, data)


def changes(before: Standing, after: Standing) -> Iterator[Notice]:
    """A notice for each claim that became refuted or stale, and for each new best result of a shape."""
    for name, item in after.claims.items():
        was = before.claims.get(name, {}).get("status")
        if item["status"] in ("refuted", "stale") and item["status"] != was:
            data = {"claim": name, "was": was, "status": item["status"], "text": item["text"]}
            yield Notice(f"claim.{item['status']}", f"{name} is {item['status']}: {item['text']}", data)
    for place, row in after.best.items():
        held = before.best.get(place)
        if held is None or _led_by(held) != _led_by(row):
            data = {"was": held["receipt"] if held else None, **row}
            yield Notice(
                "frontier.taken", f"{row['label']} is the best proven result of its shape in {row['lane']}", data
            )


def _led_by(row: Mapping[str, Any]) -> Any:
    """What leads a shape: another launch of the same configuration takes nothing."""
    return row.get("configuration") or row["receipt"]
