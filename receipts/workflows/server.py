"""A team's server as a store: the same documents and questions, over HTTP."""

from __future__ import annotations

import hashlib
import http.client
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from receipts import __version__
from receipts.base.errors import (
    ConflictError,
    InputError,
    NotFound,
    Problem,
    ReceiptsError,
    StoreError,
    Unreachable,
    UsageError,
)
from receipts.base.files import read_bounded
from receipts.base.untrusted_text import parse_json
from receipts.receipt import parse
from receipts.receipt.load import Item, document, named_traces
from receipts.signing.key import MEDIA as ENVELOPE
from receipts.workflows.submit import Submission

if TYPE_CHECKING:
    from receipts.axes.lane import Lanes
    from receipts.workflows.submit import Signers

_MAX_ANSWER: Final = 64 * 1024 * 1024  # bytes of an answer
TOKEN: Final = "RECEIPTS_TOKEN"
PATIENCE: Final = 30.0  # seconds for one answer
ATTEMPTS: Final = 4  # where the server asks to wait, or is not there
MAX_WAIT: Final = 5.0  # seconds
LOCAL: Final = ("127.0.0.1", "::1", "localhost")
Query = Sequence[tuple[str, str]]
Body = bytes | IO[bytes] | None


class ServerResponse(NamedTuple):
    """What the server answered; `code` is what the command ends with."""

    body: bytes
    headers: Mapping[str, str]

    @property
    def code(self) -> int:
        """The exit code of the command."""
        return int(self.headers.get("receipts-exit-code", "0"))

    @property
    def data(self) -> Any:
        """The body as JSON. Raises StoreError."""
        try:
            return parse_json(self.body)
        except ValueError:
            raise StoreError("this is no answer of a server of receipts; check the URL of --store") from None


class RemoteServer:
    """A server by its URL; the token is that of ``RECEIPTS_TOKEN``. One connection, which is opened when it is needed.

    Every method raises Unreachable where the server does not answer, StoreError where it fails, and UsageError where
    the token may not do this.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise UsageError(f"--store {url}: {error}; write https://HOST or https://HOST:PORT") from None
        self.url = url.rstrip("/")
        self._token = token or os.environ.get(TOKEN)
        if self._token and not (self._token.isascii() and self._token.isprintable()):
            raise UsageError(f"{TOKEN}: it holds what no token has; write it again, on one line")
        if not parts.hostname or parts.query or parts.fragment or parts.username:
            raise UsageError("--store: write https://HOST alone; the token is read from RECEIPTS_TOKEN")
        if parts.scheme.lower() == "http" and self._token and parts.hostname not in LOCAL:
            raise UsageError(f"--store {self.url}: the token would travel in the clear; write https://{parts.netloc}")
        kind = http.client.HTTPSConnection if parts.scheme.lower() == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, port, timeout=PATIENCE)
        self._base = parts.path.rstrip("/")

    def __repr__(self) -> str:
        return f"RemoteServer({self.url!r})"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def get(self, path: str, query: Query = ()) -> ServerResponse:
        """Ask for something."""
        return self.ask("GET", path, query)

    def ask(
        self, method: str, path: str, query: Query = (), body: Body = None, media: str = "application/json"
    ) -> ServerResponse:
        """Ask, and wait where the server says so. Raises the answer's error, besides what every method raises."""
        target = f"{self._base}{quote(path, safe='/@=*,')}" + (f"?{urlencode(query)}" if query else "")
        headers = {"User-Agent": f"receipts/{__version__}", "Accept": "*/*"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            headers["Content-Type"] = media
        if body is not None and not isinstance(body, bytes):
            headers["Content-Length"] = str(body.seek(0, os.SEEK_END))
        for attempt in range(ATTEMPTS):
            last = attempt == ATTEMPTS - 1
            try:
                if body is not None and not isinstance(body, bytes):
                    body.seek(0)
                self._connection.request(method, target, body, headers)
                response = self._connection.getresponse()
                raw = read_bounded(response, _MAX_ANSWER)
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                if last:
                    raise Unreachable(
                        f"{self.url}: the server cannot be reached ({error}); check that it runs"
                    ) from None
                time.sleep(0.2 * 2**attempt)
                continue
            answered = ServerResponse(raw, {name.lower(): value for name, value in response.getheaders()})
            if response.status < 300:
                return answered
            if response.status not in (429, 503) or last:
                raise self._error(response.status, answered)
            stated = answered.headers.get("retry-after", "")
            time.sleep(min(float(stated), MAX_WAIT) if stated.isdigit() else 1.0)
        raise AssertionError("unreachable")

    def _error(self, status: int, answered: ServerResponse) -> ReceiptsError:
        try:
            body = answered.data
            detail, errors = str(body["detail"]), body.get("errors", [])
            if status == 422:
                problems = [Problem(item["at"], item["what"], item["do"]) for item in errors]
                return InputError(detail.partition(": ")[0], problems)
        except (StoreError, AttributeError, KeyError, TypeError):
            return StoreError(f"{self.url}: this is no server of receipts (status {status}); check the URL")
        if status in (401, 403):
            return UsageError(f"{self.url}: {detail}; the token is read from {TOKEN}")
        if status in (429, 503):
            return Unreachable(f"{self.url}: {detail}")
        kinds: dict[int, type[ReceiptsError]] = {400: UsageError, 404: NotFound, 409: ConflictError, 413: UsageError}
        return kinds.get(status, StoreError)(detail)

    def keep(self, file: Path) -> None:
        """Have the server keep a file of evidence. Raises InputError if it changes meanwhile."""
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            self.ask("PUT", f"/v1/evidence/{digest}", body=stream, media="application/octet-stream")

    def submit(
        self, documents: Iterable[Item], signers: Signers | None = None, lanes: Lanes | None = None
    ) -> Iterator[Submission]:
        """Send documents in their order, each as its bytes or in its envelope; as `receipts.workflows.submit.submit`
        answers.

        What is no receipt is refused here, with every problem, and not sent. With ``lanes`` the traces that they name
        are read here, and kept by the server.
        """
        own = frozenset(signers.envelopes) if signers is not None else frozenset[str]()
        for item in documents:
            notes: tuple[str, ...] = ()
            try:
                received = document(item)
                if lanes is not None and received.id not in own and named_traces(received.raw):
                    from receipts.workflows.traces import read_traces

                    received, notes, _ = read_traces(received, lanes, _ServerFiles(self), local=True)
                parsed = parse(received)
            except InputError as error:
                yield Submission(error.source, error=error)
                continue
            yield self._sent(Submission(received.source, received, parsed, name=parsed.name, notes=notes), signers)

    def _sent(self, item: Submission, signers: Signers | None) -> Submission:
        from receipts.store import Submitted

        assert item.document is not None
        raw = item.document.raw
        envelope = signers.envelope(item.document.id, lambda: raw) if signers is not None else None
        try:
            if envelope is None:
                data = self.ask("POST", "/v1/receipts", body=raw).data
            else:
                data = self.ask("POST", "/v1/envelopes", body=envelope.to_json().encode(), media=ENVELOPE).data
        except InputError as error:
            return replace(item, error=InputError(item.source, error.problems))
        except ConflictError as error:
            return replace(item, error=error)
        at = datetime.fromisoformat(data["submitted_at"])
        stored = Submitted(
            data["id"], data["new"], at, data["status"], tuple(data["superseded"]), stands=data["stands"]
        )
        return replace(item, submitted=stored, status=data["status"])


class _ServerFiles(NamedTuple):
    """The files that a server keeps, as one who submits sees them: it takes some, and gives none."""

    server: RemoteServer

    def file(self, digest: str) -> AbstractContextManager[Path]:
        """None is given here. Raises NotFound."""
        raise NotFound(f"{digest[:12]} is asked of the server itself")

    def put(self, file: Path) -> None:
        """Have it keep one."""
        self.server.keep(file)
