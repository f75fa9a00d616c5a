"""What a team hears of: a path left, a claim refuted or stale, the frontier taken. Sent after the commit.

A thread of its own looks and sends. A submit never waits for it, and no failure of a target reaches a submit.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from queue import Empty, Full, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from receipts.base.errors import ReceiptsError, UsageError
from receipts.emit.secrets import redact

if TYPE_CHECKING:
    from receipts.plugins.serve.server import Server
    from receipts.workflows.submit import Submission

VARIABLE: Final = "RECEIPTS_WEBHOOK_SECRET"
PATIENCE: Final = 5.0  # seconds that a target may take
PAUSES: Final = (0.0, 1.0, 5.0)  # seconds before each try
GATHER: Final = 1.0  # seconds of submits that are looked at together
MOST: Final = 1000  # receipts that wait to be looked at; more are left out
_PLACE: Final = ("lane", "model", "layout", "accelerator", "chips", "sequence_length")


class Notice(NamedTuple):
    """One thing that happened: its type as a webhook has it, a sentence, and its data."""

    type: str
    text: str
    data: dict[str, Any]


class Webhook:
    """A URL that notices are posted to, signed as Standard Webhooks 1.0 says."""

    def __init__(self, url: str, secret: str) -> None:
        from standardwebhooks.webhooks import EmptyWebhookSecretError
        from standardwebhooks.webhooks import Webhook as Signer

        if not url.startswith(("https://", "http://")):
            raise UsageError(f"webhooks: {url} is no HTTP URL")
        try:
            self._signer = Signer(secret)
        except (ValueError, RuntimeError, EmptyWebhookSecretError) as error:
            raise UsageError(f"{VARIABLE}: {error}; set it to whsec_ and 24 random bytes in base64") from None
        self.url = url

    def send(self, notice: Notice) -> None:
        """Post a notice. Raises OSError where the target refuses it or does not answer."""
        from urllib.error import HTTPError
        from urllib.request import Request, urlopen

        name, at = f"msg_{uuid4().hex}", datetime.now(UTC)
        body = json.dumps({"type": notice.type, "timestamp": at.isoformat(), "data": notice.data}, default=str)
        headers = {
            "Content-Type": "application/json",
            "webhook-id": name,
            "webhook-timestamp": str(int(at.timestamp())),
            "webhook-signature": self._signer.sign(name, at, body),
        }
        try:
            urlopen(Request(self.url, body.encode(), headers), timeout=PATIENCE).close()
        except HTTPError as refused:
            with refused:
                raise OSError(f"{refused.code} {refused.reason}") from None


class AppriseTarget:
    """A target of the library `apprise`: mail, a chat, a phone."""

    def __init__(self, url: str) -> None:
        from apprise import Apprise

        logging.getLogger("apprise").addHandler(logging.NullHandler())  # it logs URLs
        self._target = Apprise()
        self.url = url.partition("://")[0]  # what follows holds the target's secrets
        if not self._target.add(url):
            raise UsageError(f"notify: {self.url}:// is no target of apprise, or lacks a part; see its documentation")

    def send(self, notice: Notice) -> None:
        """Send a notice. Raises OSError where it was not taken."""
        if not self._target.notify(body=notice.text, title=f"receipts: {notice.type}"):
            raise OSError("the message was not taken")


Target = Webhook | AppriseTarget


def targets(webhooks: Sequence[str], notify: Sequence[str]) -> list[Target]:
    """The targets of a ``receipts.toml``. Raises UsageError for one that nothing can be sent to."""
    from receipts.base.environment import extra

    chosen: list[Target] = []
    if webhooks:
        extra("standardwebhooks", "serve")
        chosen += [Webhook(url, os.environ.get(VARIABLE, "")) for url in webhooks]
    if notify:
        extra("apprise", "serve")
        chosen += [AppriseTarget(url) for url in notify]
    return chosen


class Notices:
    """The thread that looks at what was stored, and sends."""

    def __init__(self, server: Server, to: Sequence[Target]) -> None:
        self._server = server
        self._to = to
        self._queue: Queue[Submission | None] = Queue(MOST)
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

    def _run(self) -> None:
        while True:
            batch = self._batch()
            after = self._standing(self._before)
            for notice in (*paths_left(batch), *changes(self._before, after)):
                for target in self._to:
                    _deliver(target, notice)
            if None in batch:
                return
            self._before = after

    def _batch(self) -> list[Submission | None]:
        """What was stored within a moment; None ends it all."""
        batch = [self._queue.get()]
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


def _deliver(target: Target, notice: Notice) -> None:
    error: Exception | None = None
    for pause in PAUSES:
        time.sleep(pause)
        try:
            target.send(notice)
        except Exception as failed:  # whatever a target does: nobody else may notice
            error = failed
        else:
            return
    sys.stderr.write(redact(f"notices: {notice.type} was not delivered to {target.url}: {error}\n"))
