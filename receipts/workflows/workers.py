"""Processes that work on batches beside the one that reads or writes: a few ahead, handed back in their order."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from receipts.base.errors import StoreError
from receipts.judging.rulebook import Rulebook
from receipts.store import open_store

if TYPE_CHECKING:
    from receipts.store import Store

# Objects between two collections: a receipt is thousands of them and few are cycles, so that Python's 700 spend an
# eighth of a batch on looking.
MAX_UNCOLLECTED: Final = 100_000
AHEAD: Final = 2  # batches a worker: one in its hands, and one so that it never waits for the writer
Batch = TypeVar("Batch")
Result = TypeVar("Result")
Work = Callable[[Batch, "Store", Rulebook], Result]


class _Worker:
    """What a worker process keeps from one batch to the next. The store is opened by the first batch."""

    url: str
    store: Store | None = None
    rulebook: Rulebook


def elsewhere(
    work: Work[Batch, Result], batches: Iterable[Batch], store: Store, rulebook: Rulebook, jobs: int
) -> Generator[Result, None, None]:
    """What ``work`` gives for every batch, in their order, by so many processes; raises what it raises.

    It is a function of a module, or a `functools.partial` of one.
    """
    # Spawned and not forked: a child must not hold the writer's connections.
    begun = (store.database.full_url, rulebook.extra, dict(rulebook.bookkeeping), dict(rulebook.prices))
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=begun)
    waiting: deque[Future[Result]] = deque()
    try:
        for batch in batches:
            waiting.append(pool.submit(_call, work, batch))
            if len(waiting) > jobs * AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise StoreError(
            "a worker process was ended from outside, for want of memory perhaps; what was told is done: run it again "
            "to go on, with fewer --jobs"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(
    url: str, extra: tuple[Path, ...], bookkeeping: Mapping[str, tuple[str, ...]], prices: Mapping[str, float]
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the writer gets the signal, and ends the others
    threading.Thread(target=_end_with_the_writer, daemon=True).start()
    gc.freeze()
    gc.set_threshold(MAX_UNCOLLECTED)
    _Worker.url = url
    _Worker.rulebook = Rulebook(extra, bookkeeping, prices)


def _end_with_the_writer() -> None:
    """A writer that is killed tells nobody: who waits for its next batch would wait for ever, and hold its output."""
    writer = parent_process()
    if writer is not None:
        writer.join()
        os._exit(1)


def _call(work: Work[Batch, Result], batch: Batch) -> Result:
    if _Worker.store is None:
        # Not when the process begins: there an error is a traceback and a broken pool, here it is the batch's.
        _Worker.store = open_store(_Worker.url, create=False)
    return work(batch, _Worker.store, _Worker.rulebook)
