"""What a team hears of: a path left, a claim refuted or stale, the frontier taken. Sent after the commit.

A thread of its own looks and sends. A submit never waits for it, and no failure of a target reaches a submit. What is
sent, where, and what becomes of what a target did not take is the service ``notices``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.base.errors import ReceiptsError
from receipts.base.plugins import service
from receipts.emit.secrets import redact

if TYPE_CHECKING:
    from receipts.plugins.serve.server import Server
    from receipts.workflows.submit import Submission

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
