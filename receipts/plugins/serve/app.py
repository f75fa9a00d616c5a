"""The server as an ASGI application: every operation is a route, guarded in one place."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from inspect import iscoroutinefunction
from io import BytesIO
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from receipts.base.errors import ReceiptsError
from receipts.plugins.serve import guard
from receipts.plugins.serve.guard import THREADS, WHO, AccessDenied, RequestRefused, Sites, problem, unpacked
from receipts.plugins.serve.operation import Call, Operation, Reply, values_of
from receipts.plugins.serve.server import Server
from receipts.store.credentials import Token

TOML = "application/toml"
COOKIE = "receipts"  # where a page keeps the token of its visitor
Endpoint = Callable[[Request], Awaitable[Response]]
Missing = Callable[[Request, str], Response]
# A page loads nothing from elsewhere and runs no script; nobody frames it.
SECURITY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-cache",
}


def application(server: Server, operations: Sequence[Operation], pages: Sequence[Route], missing: Missing) -> Starlette:
    """The application of a server, with its pages and the one of a path that is ``missing``. Closing it closes both."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield
        await to_thread.run_sync(server.close)

    by_path: dict[str, dict[str, Operation]] = {}
    for item in operations:
        by_path.setdefault(item.path, {})[item.method] = item
    routes = [Route(path, _endpoint(server, held), methods=list(held)) for path, held in by_path.items()]
    middleware = [Middleware(Sites, settings=server.settings)]
    if server.settings.origins:
        methods, headers = ["GET", "POST", "PUT", "DELETE"], ["Authorization", "Content-Type"]
        middleware.append(
            Middleware(
                CORSMiddleware, allow_origins=server.settings.origins, allow_methods=methods, allow_headers=headers
            )
        )

    async def bad_form(_request: Request, error: Any) -> Response:
        return problem(400, str(error.detail))

    async def not_found(request: Request, _error: Exception) -> Response:
        path = request.url.path
        if "text/html" in request.headers.get("accept", "") and not path.startswith("/v1/"):
            return missing(request, f"there is nothing at {path}")
        return problem(404, f"there is nothing at {path}; see /openapi.json")

    async def not_allowed(request: Request, error: Any) -> Response:
        return problem(405, f"{request.method} is not allowed at {request.url.path}", dict(error.headers or {}))

    handlers: dict[Any, Any] = {400: bad_form, 404: not_found, 405: not_allowed}
    return Starlette(routes=[*routes, *pages], middleware=middleware, lifespan=lifespan, exception_handlers=handlers)


def _endpoint(server: Server, operations: dict[str, Operation]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        started = time.perf_counter()
        item = operations["GET" if request.method == "HEAD" else request.method]
        response = await _answered(server, item, request)
        server.metrics.request(request.method, item.path, response.status_code, time.perf_counter() - started)
        return response

    return endpoint


async def _answered(server: Server, item: Operation, request: Request) -> Response:
    try:
        # What only reads is also a link of a page, whose visitor signed in.
        token = await admitted(server, request, item.scope, visitor=request.method in ("GET", "HEAD"))
        values = values_of(item.query, request.query_params)
        pieces = _body(server, item, request)
        if item.body is not None and item.body.streamed:
            call = Call(server, request, token, values, pieces=pieces)
        else:
            whole = BytesIO()
            async for piece in pieces:
                whole.write(piece)
            call = Call(server, request, token, values, whole.getvalue())
        answer: Any = item.answer
        reply: Reply
        if iscoroutinefunction(answer):
            reply = await answer(call)
        elif item.costly:
            reply = await to_thread.run_sync(call.costly, answer, limiter=server.queue)
        else:
            reply = await to_thread.run_sync(answer, call)
    except RequestRefused as error:
        if isinstance(error, AccessDenied):
            request.scope[WHO] = error.who
        return problem(error.status, error.why, error.headers)
    except ClientDisconnect:
        return problem(400, "the request ended before its body did")
    except ReceiptsError as error:
        return guard.of_error(error)
    return _response(request, reply)


async def admitted(server: Server, request: Request, scope: str | None, *, visitor: bool) -> Token | None:
    """The token of the header, or with ``visitor`` of the cookie, of a caller who may ask. Raises RequestRefused."""
    caller = request.client.host if request.client else "unknown"
    server.admit(caller)
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    given = secret.strip() if kind.lower() == "bearer" else ""
    asked = given or (request.cookies.get(COOKIE) if visitor else None)
    token = await to_thread.run_sync(server.authenticate, asked, scope, caller)
    request.scope[WHO] = token.name if token is not None else ""
    return token


async def _body(server: Server, item: Operation, request: Request) -> AsyncIterator[bytes]:
    if item.body is None:
        return
    # A page elsewhere can send a body without a type, and three types that nothing here takes, and is not asked first.
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (item.body.media, "application/octet-stream", *([TOML] if item.body.toml else [])):
        raise RequestRefused(415, f"Content-Type {kind[:80]!r}: send {item.body.media}")
    limits, encoding = server.settings.limits, request.headers.get("content-encoding", "").lower()
    most = limits.evidence if item.body.streamed else limits.toml if TOML in (kind, item.body.media) else limits.body
    async for piece in unpacked(request.stream(), encoding, most):
        yield piece


def _response(request: Request, reply: Reply) -> Response:
    body = reply.body.encode("utf-8", "backslashreplace") if isinstance(reply.body, str) else reply.body
    tag = f'"{reply.digest or sha256(body).hexdigest()}"'
    headers = {**SECURITY, **reply.headers}
    if reply.status == 200 and request.method in ("GET", "HEAD"):
        headers["ETag"] = tag
        if tag in [item.strip().removeprefix("W/") for item in request.headers.get("if-none-match", "").split(",")]:
            return Response(status_code=304, headers=headers)
    return Response(body, reply.status, headers, media_type=reply.media)
