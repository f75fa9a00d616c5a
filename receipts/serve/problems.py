"""Errors as problem details (RFC 9457), with every problem of a document."""

from __future__ import annotations

import json
import sys
from typing import Any

from starlette.responses import Response

from receipts.base.errors import (
    ConflictError,
    InputError,
    NotFound,
    ReceiptsError,
    Several,
    StoreError,
    UsageError,
)
from receipts.emit.secrets import redact

MEDIA = "application/problem+json"
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
)


def status_of(error: ReceiptsError) -> int:
    """The status of a deliberate error; of several, that of the first."""
    first = error.errors[0] if isinstance(error, Several) else error
    return next((status for kind, status in STATUS if isinstance(first, kind)), 500)


def problem(status: int, detail: str = "", headers: dict[str, str] | None = None, **more: Any) -> Response:
    """A problem as a response."""
    document = {"type": "about:blank", "title": TITLES[status], "status": status, "detail": detail, **more}
    return Response(json.dumps(document, ensure_ascii=False), status, headers, media_type=MEDIA)


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
