"""What the server refuses before an operation runs, and how it words an error.

Limits say how much one caller may ask. A request is for a site of this server, and a page elsewhere neither borrows its
name nor writes here. Errors are problem details (RFC 9457), with every problem of a document.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.responses import Response

from receipts.base.errors import (
    ConflictError,
    DiskError,
    InputError,
    NotFound,
    ReceiptsError,
    Several,
    StoreError,
    UsageError,
)
from receipts.emit.secrets import redact
from receipts.receipt.load import MAX_BYTES
from receipts.store.evidence import MAX_KEPT_BYTES

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from receipts.plugins.serve.server import Settings


PROBLEM_MEDIA = "application/problem+json"
TITLES = {
    400: "the request is wrong",
    401: "a token is needed",
    403: "the token may not do this",
    404: "nothing of that name",
    405: "the method is not allowed here",
    406: "there is no such form of it",
    409: "it contradicts what is stored",
    413: "the body is too large",
    415: "the body is of another type",
    421: "the server has another name",
    422: "the document is refused",
    429: "too many requests",
    431: "the head of the request is too large",
    500: "the server failed",
    503: "the store does not answer",
    504: "the question takes too long",
}
STATUS: tuple[tuple[type[ReceiptsError], int], ...] = (
    (InputError, 422),
    (UsageError, 400),
    (NotFound, 404),
    (ConflictError, 409),
    (StoreError, 503),
    (DiskError, 503),
)


def status_of(error: ReceiptsError) -> int:
    """The status of a deliberate error; of several, that of the first."""
    first = error.errors[0] if isinstance(error, Several) else error
    return next((status for kind, status in STATUS if isinstance(first, kind)), 500)


def problem(status: int, detail: str = "", headers: dict[str, str] | None = None, **more: Any) -> Response:
    """A problem as a response."""
    document = {"type": "about:blank", "title": TITLES[status], "status": status, "detail": detail, **more}
    return Response(json.dumps(document, ensure_ascii=False), status, headers, media_type=PROBLEM_MEDIA)


def of_error(error: ReceiptsError) -> Response:
    """A deliberate error as a response: where, what, what to do, for each problem of a document."""
    status = status_of(error)
    if isinstance(error, InputError):
        errors = [item._asdict() for item in error.problems]
        return problem(status, str(error), errors=errors)
    return problem(status, public_text(error, status), {"Retry-After": "5"} if status == 503 else None)


def public_text(error: ReceiptsError, status: int) -> str:
    """What an answer says of an error. Where the store failed its place, user and host are for the log alone."""
    if status != 503:
        return str(error)
    sys.stderr.write(redact(f"receipts: {error}\n"))
    return "the store cannot answer now; the server's log says why"


THREADS: Final = 8  # requests that work at once; the others wait
_WBITS: Final = 31  # gzip alone
PIECE: Final = 1 << 20  # bytes of a body that are unpacked at once


@dataclass(frozen=True)
class Limits:
    """``body`` and ``evidence`` (one file) in bytes, unpacked.

    ``rate`` and ``failures`` are written as the library `limits` writes them.
    """

    body: int = MAX_BYTES
    toml: int = 1 << 18  # its parser is slow
    evidence: int = MAX_KEPT_BYTES
    rate: str = "1000/second"
    failures: str = "20/minute"
    comparisons: int = 4  # at once
    queued: int = 64  # questions that wait for one of these or for the same answer, and hold up nothing else
    patience: float = 30.0  # seconds that each of them waits for its turn
    hops: int = 500  # that a bridge may judge
    seconds: float = 60.0
    swept: int = 12  # runs of one sweep
    shapes: int = 12  # models of an envelope


class RequestRefused(Exception):
    """A request is refused: with this status, for this reason."""

    def __init__(self, status: int, why: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, why, headers)  # all of it, since a process hands it on to another
        self.status, self.why, self.headers = status, why, headers


class AccessDenied(RequestRefused):
    """The caller may not do this: ``status`` 401 without a valid token, 403 with one of another scope, of ``who``."""

    def __init__(self, status: int, why: str, who: str = "") -> None:
        super().__init__(status, why, {"WWW-Authenticate": "Bearer"} if status == 401 else None)
        self.args, self.who = (status, why, who), who


class Busy(RequestRefused):
    """Too much is asked at once; ``seconds`` until it may be asked again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(429, f"ask again in {seconds} s", {"Retry-After": str(seconds)})
        self.args = (seconds,)


class TooSlow(RequestRefused):
    """A question took longer than so many seconds, and was ended."""

    def __init__(self, seconds: float) -> None:
        super().__init__(504, f"it took more than {seconds:g} s and was ended; ask for less")
        self.args = (seconds,)


async def unpacked(chunks: AsyncIterator[bytes], encoding: str, most: int) -> AsyncIterator[bytes]:
    """A request's body in pieces, unpacked if it is gzip: at most ``most`` bytes of it. Raises RequestRefused."""
    if encoding not in ("", "identity", "gzip"):
        raise RequestRefused(415, f"Content-Encoding {encoding!r}: send it as it is, or as gzip")
    unpack = zlib.decompressobj(_WBITS) if encoding == "gzip" else None
    held = 0
    async for chunk in chunks:
        for part in _pieces(unpack, chunk) if unpack is not None else (chunk,):
            held += len(part)
            if held > most:
                raise RequestRefused(413, f"send at most {most:,} bytes")
            yield part
    if unpack is not None and not unpack.eof:
        raise RequestRefused(415, "the gzip body is cut off")


def _pieces(unpack: zlib._Decompress, chunk: bytes) -> Iterator[bytes]:
    """What a chunk unpacks to, a thousand times as much where it was made for that, in pieces."""
    part = b""
    while chunk or len(part) == PIECE:
        try:
            part = unpack.decompress(chunk, PIECE)
        except zlib.error as error:
            raise RequestRefused(415, f"the body is no gzip: {error}") from None
        if unpack.unused_data:  # held in memory, and no part of what is counted
            raise RequestRefused(415, "more follows the end of the gzip body")
        chunk = unpack.unconsumed_tail
        yield part


class ComparisonSlots:
    """Lets so many comparisons run at once; the next ones wait so many seconds, and are refused then."""

    def __init__(self, most: int, patience: float) -> None:
        self._free = BoundedSemaphore(most)
        self._patience = patience
        self.running = 0

    def __enter__(self) -> None:
        if not self._free.acquire(timeout=self._patience):
            raise Busy(2)
        self.running += 1

    def __exit__(self, *_: object) -> None:
        self.running -= 1
        self._free.release()


WHO: Final = "receipts.token"  # in the scope of a request: the name of the token that it came with


class AccessLog:
    """A line a request: when, from where, whose token, what, what came of it, and how long it took.

    No query and no body, which may hold a secret, and of the path nothing that is shaped like one.
    """

    def __init__(self, app: ASGIApp, place: str) -> None:
        from logging.handlers import WatchedFileHandler  # follows what a rotation puts in its place

        self._app = app
        self._handler = logging.StreamHandler() if place == "-" else WatchedFileHandler(place, encoding="utf-8")
        setattr(self._handler, "handleError", lambda _record: None)  # noqa: B010  # a full disk stops no request

    def close(self) -> None:
        """Close its file."""
        self._handler.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status, size = time.perf_counter(), 0, 0

        async def counted(message: Message) -> None:
            nonlocal status, size
            status = message.get("status", status)
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            at, caller = datetime.now(UTC).isoformat(timespec="seconds"), (scope.get("client") or ("-",))[0]
            path = redact(quote(scope["path"], safe="/@=*,:~"))[:200]
            line = f"{at} {caller} {scope.get(WHO) or '-'} {scope['method']} {path} {status} {size} B"
            self._handler.emit(logging.makeLogRecord({"msg": f"{line} {1000 * (time.perf_counter() - begun):.0f} ms"}))


LOCAL: Final = ("127.0.0.1", "::1", "localhost")
MAX_HEAD: Final = 1 << 16  # bytes
_READS: Final = ("GET", "HEAD", "OPTIONS")
_OWN: Final = ("same-origin", "none")  # none: a person, by the address bar


class Sites:
    """Refuses a request for another host's name, one of another site that may change anything, and one for no name.

    A page elsewhere may have its name lead here, and a browser sends what a page asks for without being asked
    (https://w3c.github.io/webappsec-fetch-metadata/). Programs send neither Origin nor Sec-Fetch-Site.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._hosts = frozenset(settings.hosts)
        self._origins = frozenset(settings.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            host = headers.get(b"host", "")
            refused = None
            if sum(map(len, (scope["query_string"], *(part for item in scope["headers"] for part in item)))) > MAX_HEAD:
                refused = problem(431, f"a request's address and headers have at most {MAX_HEAD:,} bytes")
            elif "\0" in scope["path"] or b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
                refused = problem(400, "no name has a null character")  # PostgreSQL takes none
            elif "*" not in self._hosts and _name(host) not in self._hosts:
                refused = problem(421, f"no server here is called {_name(host)[:80]!r}; start it with --host NAME")
            elif scope["method"] not in _READS and self._foreign(headers, host):
                refused = problem(403, "another site may not change anything here; start the server with --origin URL")
            if refused is not None:
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _foreign(self, headers: Mapping[bytes, str], host: str) -> bool:
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        if origin in self._origins:
            return False
        if site is not None and site not in _OWN:
            return True
        if origin is None:
            return False
        # A proxy may hand on a host of its own; the server answers to the name that visitors see.
        named = origin.partition("://")[2].lower()
        return named != host.lower() and named not in self._hosts.difference(LOCAL)


def _name(host: str) -> str:
    bare = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return bare.strip("[]").lower()
