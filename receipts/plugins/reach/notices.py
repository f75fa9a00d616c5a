"""Notices: what happened, sent to webhooks, to targets of apprise, and to issues of GitHub.

A notice is kept on disk, beside the spool, until its target took it: over a restart, and tried again for a week.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

from receipts.base import files
from receipts.base.errors import UsageError
from receipts.emit.secrets import redact
from receipts.plugins.reach.github import SCHEME, Repository, edit_issue, quoted
from receipts.workflows import spool

VARIABLE: Final = "RECEIPTS_WEBHOOK_SECRET"
PATIENCE: Final = 5.0  # seconds that a target may take
PAUSES: Final = (0.0, 1.0, 5.0)  # seconds before each try
MAX_KEPT: Final = 1000  # notices on disk; the oldest go first
KEPT_FOR: Final = timedelta(days=7)


class Notice(NamedTuple):
    """One thing that happened: its type as a webhook has it, a sentence, and its data.

    Its id is the same however often it is sent, so that a receiver can tell that it has it.
    """

    type: str
    text: str
    data: dict[str, Any]
    id: str = ""
    at: str = ""  # ISO 8601


class Target(Protocol):
    """Where notices go. ``url`` may be shown, and ``key`` names it in a file; neither holds a secret."""

    url: str
    key: str

    def send(self, notice: Notice) -> None:
        """Send a notice. Raises OSError where it was not taken."""


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


class IssueTarget:
    """Issues of a repository of GitHub: one for each line with an incident, edited as the incident goes on.

    Other notices are of one moment, and make no issue.
    """

    def __init__(self, url: str) -> None:
        self._repository = Repository(url.removeprefix(SCHEME), f"notify: {url}", PATIENCE)
        self.url = url
        self.key = _key(url)

    def send(self, notice: Notice) -> None:
        """Open the issue of a line, or edit it. Raises OSError where GitHub does not take it."""
        if (thread := notice.data.get("thread")) is not None:
            what = notice.type.removeprefix("incident.")
            line = f"- {notice.at[:16].replace('T', ' ')} UTC, {what}: {quoted(notice.text)}"
            title = notice.text if what != "closed" else ""
            edit_issue(self._repository, thread, title, line, notice.id, is_open=bool(notice.data["open"]))


def targets(webhooks: Sequence[str], notify: Sequence[str]) -> list[Target]:
    """The targets of a ``receipts.toml``. Raises UsageError for one that nothing can be sent to."""
    from receipts.base.environment import extra

    chosen: list[Target] = [IssueTarget(url) for url in notify if url.startswith(SCHEME)]
    others = [url for url in notify if not url.startswith(SCHEME)]
    if webhooks:
        extra("standardwebhooks", "serve")
        chosen += [Webhook(url, os.environ.get(VARIABLE, "")) for url in webhooks]
    if others:
        extra("apprise", "serve")
        chosen += [AppriseTarget(url) for url in others]
    return chosen


class Outbox:
    """Notices on their way to targets. ``store`` is what the spool calls the store that they are of."""

    def __init__(self, to: Sequence[Target], store: str) -> None:
        self._to = to
        self._folder = spool.place(store) / "notices"

    @property
    def kept(self) -> int:
        """How many notices wait for a target that did not take them."""
        return len(self._files())

    def send(self, notices: Iterable[tuple[str, str, dict[str, Any]]]) -> None:
        """Send notices, each a type, a sentence and data. One that a target does not take stays on disk."""
        for item in notices:
            whole = Notice(*item, id=f"msg_{uuid4().hex}", at=datetime.now(UTC).isoformat())
            for target in self._to:
                file = self._folder / f"{whole.at}.{whole.id}.{target.key}.json"
                lost = self._keep(file, whole)  # before it is sent: whatever ends this process, the next one sends it
                if (error := _failure(target, whole, PAUSES)) is None:
                    file.unlink(missing_ok=True)
                    continue
                # What an error says beside the system's words may quote the URL.
                reason = str(error) if isinstance(error, OSError) else type(error).__name__
                what = lost or "it is kept, and tried again"
                sys.stderr.write(redact(f"notices: {whole.type} was not delivered to {target.url}: {reason}; {what}\n"))

    def retry(self) -> bool:
        """Try each that was kept once, and no more of a target that fails; whether all were taken.

        Those of a target that is no longer named wait.
        """
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
        return not failed

    def _files(self) -> list[Path]:
        """Each is one notice for one target; the oldest first, by their names."""
        return sorted(self._folder.glob("*.json"))

    def _keep(self, file: Path, notice: Notice) -> str:
        """Write a notice to its file; why it would be lost where that fails."""
        try:
            for oldest in self._files()[: 1 - MAX_KEPT]:
                oldest.unlink(missing_ok=True)
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with files.staged(file, mode=0o600) as part:
                part.write_text(json.dumps(notice, default=str), encoding="utf-8")
        except OSError as failed:
            return f"it is lost, because {self._folder} cannot be written ({failed.strerror})"
        return ""


def _key(url: str) -> str:
    """What a target is called in the name of a file, without what its URL holds."""
    return sha256(url.encode()).hexdigest()[:16]


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
