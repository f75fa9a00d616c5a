"""Processes that parse and judge for one that writes: a batch each, a few ahead, handed back in their order."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Final

from receipts.base.errors import StoreError
from receipts.judging.rulebook import Rulebook
from receipts.receipt.stream import Item
from receipts.store import open_store
from receipts.workflows.submit.pipeline import Batch, judge

if TYPE_CHECKING:
    from receipts.store import Store

AHEAD: Final = 2  # batches a worker: one in its hands, and one so that it never waits for the writer


class _Worker:
    """What a worker process keeps from one batch to the next. The store is opened by the first batch."""

    url: str
    store: Store | None = None
    rulebook: Rulebook


def judged_elsewhere(
    batches: Iterable[Sequence[Item]], store: Store, rulebook: Rulebook, jobs: int, *, resume: bool
) -> Generator[Batch, None, None]:
    """`judge` of every batch, in their order, by so many processes. Raises as `judge` does."""
    # Spawned and not forked: a child must not hold the writer's connections.
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(store.full_url, rulebook.extra)
    )
    waiting: deque[Future[Batch]] = deque()
    try:
        for batch in batches:
            waiting.append(pool.submit(_judge, batch, resume))
            if len(waiting) > jobs * AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise StoreError(
            "a process that judged for this one was ended from outside, for want of memory perhaps; what was told is "
            "stored: run it again to go on, with fewer --jobs"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(url: str, extra: tuple[Path, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the writer is told, and ends the others
    threading.Thread(target=_end_with_the_writer, daemon=True).start()
    _Worker.url = url
    _Worker.rulebook = Rulebook(extra)


def _end_with_the_writer() -> None:
    """A writer that is killed tells nobody: who waits for its next batch would wait for ever, and hold its output."""
    writer = parent_process()
    if writer is not None:
        writer.join()
        os._exit(1)


def _judge(batch: Sequence[Item], resume: bool) -> Batch:
    if _Worker.store is None:
        # Not when the process begins: there an error is a traceback and a broken pool, here it is the batch's.
        _Worker.store = open_store(_Worker.url, create=False)
    judged = judge(batch, _Worker.store, _Worker.rulebook, resume=resume)
    # What the writer does not need does not travel.
    return [replace(item, document=None, parsed=None, verdict=None) for item in judged]
