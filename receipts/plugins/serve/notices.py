"""What a team hears of: a path left, a claim refuted or stale, the frontier taken. Sent after the commit.

A thread of its own looks and sends. A submit never waits for it, and no failure of a target reaches a submit. What a
target did not take is kept beside the spool, over a restart too, and tried again for a week.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from receipts.base import files
from receipts.base.errors import ReceiptsError, UsageError
from receipts.emit.secrets import redact
from receipts.workflows import spool

if TYPE_CHECKING:
    from receipts.plugins.serve.server import Server
    from receipts.workflows.submit import Submission

VARIABLE: Final = "RECEIPTS_WEBHOOK_SECRET"
PATIENCE: Final = 5.0  # seconds that a target may take
PAUSES: Final = (0.0, 1.0, 5.0)  # seconds before each try
GATHER: Final = 1.0  # seconds of submits that are looked at together
MOST: Final = 1000  # receipts that wait to be looked at, and notices that are kept; more are left out
AGAIN: Final = (60.0, 3600.0)  # seconds before what was kept is tried again: doubled from the first to the second
KEPT_FOR: Final = timedelta(days=7)
_PLACE: Final = ("lane", "model", "layout", "accelerator", "chips", "sequence_length")


class Notice(NamedTuple):
    """One thing that happened: its type as a webhook has it, a sentence, and its data.

    Its id is the same however often it is sent, so that a receiver can tell that it has it.
    """

    type: str
    text: str
    data: dict[str, Any]
    id: str = ""
    at: str = ""  # ISO 8601


class Webhook:
    """A URL that notices are posted to, signed as Standard Webhooks 1.0 says."""

    def __init__(self, url: str, secret: str) -> None:
        from standardwebhooks.webhooks import EmptyWebhookSecretError
        from standardwebhooks.webhooks import Webhook as Signer

        if not url.startswith(("https://", "http://")):
            raise UsageError(f"webhooks: {url.partition(':')[0][:20]}:… is no HTTP URL")
        try:
            self._signer = Signer(secret)
        except (ValueError, RuntimeError, EmptyWebhookSecretError) as error:
            raise UsageError(f"{VARIABLE}: {error}; set it to whsec_ and 24 random bytes in base64") from None
        self._url = url
        self.url = f"{url.partition('://')[0]}://{urlsplit(url).hostname}/…"  # what follows may be all that it asks for
        self.key = _key(url)

    def send(self, notice: Notice) -> None:
        """Post a notice. Raises OSError where the target refuses it or does not answer."""
        from urllib.error import HTTPError
        from urllib.request import Request, urlopen

        now = datetime.now(UTC)
        body = json.dumps({"type": notice.type, "timestamp": notice.at, "data": notice.data}, default=str)
        headers = {
            "Content-Type": "application/json",
            "webhook-id": notice.id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self._signer.sign(notice.id, now, body),
        }
        try:
            urlopen(Request(self._url, body.encode(), headers), timeout=PATIENCE).close()
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
        self.key = _key(url)
        if not self._target.add(url):
            raise UsageError(f"notify: {self.url}:// is no target of apprise, or lacks a part; see its documentation")

    def send(self, notice: Notice) -> None:
        """Send a notice. Raises OSError where it was not taken."""
        if not self._target.notify(body=notice.text, title=f"receipts: {notice.type}"):
            raise OSError("the message was not taken")


Target = Webhook | AppriseTarget


def _key(url: str) -> str:
    """What a target is called in the name of a file, without what its URL holds."""
    return sha256(url.encode()).hexdigest()[:16]


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
        self._kept = spool.place(server.opened.database.address.target) / "notices"
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
        return len(self._files())

    def _files(self) -> list[Path]:
        """Each is one notice for one target; the oldest first, by their names."""
        return sorted(self._kept.glob("*.json"))

    def _run(self) -> None:
        while True:
            batch = self._batch()
            after = self._standing(self._before) if batch else self._before
            for notice in (*paths_left(batch), *changes(self._before, after)):
                whole = notice._replace(id=f"msg_{uuid4().hex}", at=datetime.now(UTC).isoformat())
                for target in self._to:
                    if (error := _failure(target, whole, PAUSES)) is not None:
                        self._keep(target, whole, error)
            if None in batch:
                return
            self._before = after
            if time.monotonic() >= self._next:
                self._send_kept()

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

    def _keep(self, target: Target, notice: Notice, error: Exception) -> None:
        # What an error says beside the system's words may quote the URL.
        reason = str(error) if isinstance(error, OSError) else type(error).__name__
        what = "it is kept, and tried again"
        try:
            for oldest in self._files()[: 1 - MOST]:
                oldest.unlink(missing_ok=True)
            self._kept.mkdir(parents=True, exist_ok=True, mode=0o700)
            with files.staged(self._kept / f"{notice.at}.{notice.id}.{target.key}.json", mode=0o600) as part:
                part.write_text(json.dumps(notice, default=str), encoding="utf-8")
        except OSError as failed:
            what = f"it is lost, because {self._kept} cannot be written ({failed.strerror})"
        sys.stderr.write(redact(f"notices: {notice.type} was not delivered to {target.url}: {reason}; {what}\n"))

    def _send_kept(self) -> None:
        """Try each once, and no more of a target that fails; those of a target that is no longer named wait."""
        failed, oldest = set[str](), (datetime.now(UTC) - KEPT_FOR).isoformat()
        for file in self._files():
            target = next((item for item in self._to if file.name.endswith(f".{item.key}.json")), None)
            if file.name < oldest:
                file.unlink(missing_ok=True)
                sys.stderr.write(f"notices: one of {file.name[:10]} is given up\n")
            elif target is not None and target.key not in failed:
                try:
                    notice = Notice(*json.loads(files.read_small(file, 1 << 20)))
                except (OSError, ValueError, TypeError):
                    continue
                if _failure(target, notice, (0.0,)) is None:
                    file.unlink(missing_ok=True)
                else:
                    failed.add(target.key)
        self._pause = min(2 * self._pause, AGAIN[1]) if failed else AGAIN[0]
        self._next = time.monotonic() + self._pause

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


def _failure(target: Target, notice: Notice, pauses: Sequence[float]) -> Exception | None:
    """Send a notice, as often as there are pauses; None where it was taken, else what the last try came to."""
    error: Exception | None = None
    for pause in pauses:
        time.sleep(pause)
        try:
            target.send(notice)
        except Exception as failed:  # whatever a target does: nobody else may notice
            error = failed
        else:
            return None
    return error
