"""Submitters that are killed at any moment: nothing that they acknowledged is lost, and nothing is there in half."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from itertools import count
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import func, select

from benchmarks.submitting.documents import summary
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import open_store
from receipts.store.entries import unpack
from receipts.store.tables import documents, receipts, subjects, verdicts
from receipts.workflows.audit import audit
from receipts.workflows.submit import submit

_CHECKED = 100  # kills after which the whole store is read


class Killed(NamedTuple):
    """What a store held after kills: ``faults`` are receipts that were lost, half there, or damaged."""

    kills: int
    acknowledged: int
    stored: int
    faults: tuple[str, ...]
    seconds: float


def kill(url: str, folder: Path, kills: int, seed: int = 27) -> Killed:
    """Kill a submitter so many times, each at another moment of its work; every tenth while it writes a batch."""
    draw, begun, rulebook = random.Random(seed), time.monotonic(), Rulebook()
    faults: list[str] = []
    acknowledged: set[str] = set()
    rulebook.rules  # noqa: B018 — loaded once, before the forks
    with open_store(url):
        pass
    for number in range(kills):
        log = folder / f"{number}.log"
        child = os.fork()
        if child == 0:
            _submit(url, rulebook, log, number * 1000, 20 if number % 10 == 9 else 1)
        _wait(log, draw.choice((0, 0, 1, 1, 2, 3, 5, 8)))
        time.sleep(draw.uniform(0, 0.015))
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text = log.read_text() if log.exists() else ""
        acknowledged.update(line.strip() for line in text.splitlines(keepends=True) if line.endswith("\n"))
        if code != -signal.SIGKILL:
            faults.append(f"kill {number}: the submitter had ended with {code}: {text[-200:]}")
        if number % _CHECKED == _CHECKED - 1 or number == kills - 1:
            faults += _faults(url, acknowledged)
    with open_store(url, create=False) as store:
        faults += [f"{item.where}: {item.found}" for item in audit(store, rulebook).faults if item.kind != "gap"]
        stored = sum(1 for _ in store.find())
    return Killed(kills, len(acknowledged), stored, tuple(faults), time.monotonic() - begun)


def _wait(log: Path, lines: int) -> None:
    """Until a submitter has acknowledged so many; it opens the store first, and may be killed in that."""
    deadline = time.monotonic() + 10
    while lines and time.monotonic() < deadline and (not log.exists() or log.stat().st_size < 65 * lines):
        time.sleep(0.001)


def _submit(url: str, rulebook: Rulebook, log: Path, first: int, batch: int) -> None:
    try:
        with open_store(url) as store, log.open("w") as stream:
            for start in count(first, batch):
                new = [Document(summary(seed), str(seed)) for seed in range(start, start + batch)]
                for outcome in submit(new, store, rulebook):
                    stream.write(f"{outcome.submitted.id if outcome.submitted else outcome.error}\n")
                stream.flush()
    except BaseException as error:  # whatever ends it is a fault
        log.write_text(repr(error))
    finally:
        os._exit(1)


def _faults(url: str, acknowledged: set[str]) -> list[str]:
    """What is lost, or there in half."""
    with open_store(url, create=False) as store, store.database.reading() as connection:
        query = select(receipts.c.id, documents.c.codec, documents.c.body).outerjoin(documents)
        rows = connection.execute(query).all()
        counts = [
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (documents, verdicts, subjects)
        ]
    damaged = [row.id for row in rows if row.body is None or _id(row.codec, row.body) != row.id]
    lost = acknowledged - {row.id for row in rows}
    found = [f"{len(lost)} acknowledged receipts are lost: {sorted(lost)[:3]}"] if lost else []
    found += [f"{len(damaged)} documents are damaged: {damaged[:3]}"] if damaged else []
    if set(counts) != {len(rows)}:
        found.append(f"{len(rows)} receipts have {counts} documents, verdicts and subjects")
    return found


def _id(codec: str, body: bytes) -> str:
    return hashlib.sha256(unpack(codec, body, "")).hexdigest()
