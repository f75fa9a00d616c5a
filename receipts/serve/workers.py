"""Processes that answer costly questions: one that takes too long is ended, and the server goes on."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context, parent_process
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from receipts.base.errors import ReceiptsError
from receipts.serve.limits import TooSlow

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

    from receipts.serve.server import Server, Settings

A = TypeVar("A")
# Each is a copy of one process that has read these, and threads of the server are none of its own.
_PROCESSES: Final = get_context("forkserver")
_PROCESSES.set_forkserver_preload(["receipts.serve.workers", "receipts.serve.operations", "receipts.api.store"])


class _Place(NamedTuple):
    """What a worker opens for itself."""

    store: str
    folders: tuple[Any, ...]
    bookkeeping: dict[str, Any]
    settings: Settings

    def server(self) -> Server:
        from receipts.judging.rulebook import Rulebook
        from receipts.serve.server import Server
        from receipts.store import open_store

        return Server(open_store(self.store, create=False), Rulebook(self.folders, self.bookkeeping), self.settings)


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
        self._place = _Place(url, rulebook.extra, dict(rulebook.bookkeeping), server.settings)
        self._seconds = server.settings.limits.seconds
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        # The first one takes a second or two, which the server need not wait for.
        Thread(target=self._start, args=(count,), daemon=True).start()

    def _start(self, count: int) -> None:
        for _ in range(count):
            self._idle.put(_Worker(self._place))

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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's, which then ends this
    Thread(target=_end_with_parent, daemon=True).start()
    server = place.server()
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


def _end_with_parent() -> None:
    import os

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)
