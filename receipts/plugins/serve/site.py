"""Pages as routes: a login that keeps the token in a cookie, forms against forgery, errors as pages."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qsl, quote

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from receipts.api.lists import frontier_page
from receipts.base.errors import ReceiptsError
from receipts.plugins.serve import guard, inbox, runs
from receipts.plugins.serve.app import SECURITY, bearer
from receipts.plugins.serve.guard import Busy, TooSlow
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.server import AccessDenied, Server
from receipts.plugins.serve.view import NAV, View, lead
from receipts.publish.page import Page

COOKIE: Final = "receipts"
VISIT: Final = "receipts-visit"  # what a form's proof is bound to before there is a token
DAYS: Final = 30
FORM: Final = "application/x-www-form-urlencoded"
FORM_BYTES: Final = 1 << 16
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
Handler = Callable[[Call], View]


def frontier(call: Call) -> View:
    """A card a lane: proven beside reported results of its newest 26 weeks, and what to do next."""
    return View(frontier_page(call.server.frontier()))


VIEWS: Final[tuple[tuple[str, Handler], ...]] = (
    ("/", frontier),
    ("/runs", runs.runs),
    ("/runs/{id}", runs.one_run),
    ("/compare", runs.comparison),
    ("/failures", inbox.failures),
    ("/inbox", inbox.inbox),
)


def routes(server: Server) -> list[Route]:
    """Every page."""
    site = _Site(server)
    shown = [Route(path, partial(site.page, path, handler), methods=["GET"]) for path, handler in VIEWS]
    return [
        *shown,
        Route("/runs/{id}", site.change, methods=["POST"]),
        Route("/login", site.login, methods=["GET", "POST"]),
        Route("/logout", site.logout, methods=["POST"]),
    ]


def _again(request: Request) -> tuple[str, Mapping[str, Any]]:
    """The form that a question came from, filled in as it was; so a wrong word is corrected where it stands."""
    given = request.query_params
    if request.url.path == "/compare":
        return "compare", {name: ", ".join(given.getlist(name)) for name in ("a", "b")}
    if request.url.path == "/runs":
        return "runs", {"query": given.get("q", ""), "clear": True, "filters": (), "folds": ()}
    return "site", NOTHING


async def _form(request: Request) -> Mapping[str, str]:
    """The fields of a posted form. Raises HTTPException 400 for one that is too long, or of another type."""
    raw = bytearray()
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in (FORM, ""):
        raise HTTPException(400, f"send the form as {FORM}")
    async for piece in request.stream():
        raw += piece
        if len(raw) > FORM_BYTES:
            raise HTTPException(400, f"a form has at most {FORM_BYTES:,} bytes")
    try:
        return dict(parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise HTTPException(400, "a form has at most 20 fields") from None


class _Site:
    """The pages of a server. Its key lives as long as it does: a form of an earlier start is refused."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._key = secrets.token_bytes(32)

    async def page(self, path: str, handler: Handler, request: Request) -> Response:
        """A view, or the way to the login, or the error as a page."""
        started = time.perf_counter()
        response = await self._guarded(request, partial(self._shown, handler, request), scope="read")
        self._server.metrics.request("GET", path, response.status_code, time.perf_counter() - started)
        return response

    async def change(self, request: Request) -> Response:
        """A pin or a decision, from a form of this site alone."""
        form = await _form(request)
        return await self._guarded(request, partial(self._changed, request, form), scope="decide")

    async def login(self, request: Request) -> Response:
        """Ask for a token, and keep it in a cookie that no script reads and no other site sends."""
        target = request.query_params.get("next", "/")
        target = target if target.startswith("/") and not target.startswith(("//", "/\\")) else "/"
        if request.method == "GET":
            return self._rendered(request, View(Page("Sign in"), "login", {"next": target}))
        form = await _form(request)
        secret = str(form.get("token", "")).strip()
        caller = request.client.host if request.client else "unknown"
        try:
            self._prove(request, form)
            token = await to_thread.run_sync(self._server.authenticate, secret, "read", caller)
        except (AccessDenied, Busy) as error:
            why = error.why if isinstance(error, AccessDenied) else "too many attempts; wait a minute"
            view = View(Page("Sign in", (why,)), "login", {"next": target}, getattr(error, "status", 429))
            return self._rendered(request, view)
        response = RedirectResponse(target, 303, SECURITY)
        if token is not None:  # a server that asks for none keeps nothing of what was typed
            _keep(request, response, COOKIE, secret)
        return response

    async def logout(self, request: Request) -> Response:
        """Forget the token."""
        try:
            self._prove(request, await _form(request))
        except AccessDenied as error:
            return self._failed(request, error.status, error.why)
        response = RedirectResponse("/login", 303, SECURITY)
        response.delete_cookie(COOKIE, path="/")
        return response

    async def _guarded(self, request: Request, work: Callable[[Any], Response], *, scope: str) -> Response:
        caller = request.client.host if request.client else "unknown"
        secret = bearer(request) or request.cookies.get(COOKIE)
        try:
            self._server.admit(caller)
            token = await to_thread.run_sync(self._server.authenticate, secret, scope, caller)
            return await to_thread.run_sync(work, token)
        except AccessDenied as error:
            if error.status == 401 and request.method == "GET":
                return RedirectResponse(f"/login?next={quote(request.url.path)}", 303, SECURITY)
            return self._failed(request, error.status, error.why)
        except Busy as error:
            response = self._failed(request, 429, f"ask again in {error.seconds} s")
            response.headers["Retry-After"] = str(error.seconds)
            return response
        except TooSlow as error:
            return self._failed(request, 504, f"it took more than {error.seconds:g} s and was ended; ask for less")
        except ReceiptsError as error:
            status = guard.status_of(error)
            return self._failed(request, status, guard.public_text(error, status), *_again(request))

    def _shown(self, handler: Handler, request: Request, token: Any) -> Response:
        call = Call(self._server, request, token, {})
        with call.store.opened.one_state():
            return self._rendered(request, handler(call), token)

    def _changed(self, request: Request, form: Any, token: Any) -> Response:
        self._prove(request, form)
        call = Call(self._server, request, token, {})
        return RedirectResponse(runs.changed(call, form), 303, SECURITY)

    def _failed(
        self, request: Request, status: int, why: str, form: str = "site", values: Mapping[str, Any] = NOTHING
    ) -> Response:
        return self._rendered(request, View(Page(guard.TITLES[status].capitalize(), (why,)), form, values, status))

    def _prove(self, request: Request, form: Any) -> None:
        """Raises AccessDenied for a form that this site did not give to this visitor."""
        visit = request.cookies.get(VISIT, "")
        if not visit or not hmac.compare_digest(str(form.get("form", "")).encode(), self._proof(request, visit)):
            raise AccessDenied(403, "this form is of another visit; open the page again")

    def _proof(self, request: Request, visit: str) -> bytes:
        """What a form carries, and only the visitor of its page has: whoever opens the page elsewhere gets another."""
        visitor = f"{visit} {request.cookies.get(COOKIE, '')}"
        return hmac.new(self._key, visitor.encode("utf-8", "surrogatepass"), sha256).hexdigest().encode()

    def _rendered(self, request: Request, view: View, token: Any = None) -> Response:
        from receipts.publish.html import environment

        visit = request.cookies.get(VISIT) or secrets.token_urlsafe(16)
        text = (
            environment()
            .get_template(f"parts/{view.template}.html.j2")
            .render(
                page=view.page,
                lead=lead,
                here=request.url.path,
                nav=NAV,
                who=token.name if token is not None else "",
                form=self._proof(request, visit).decode(),
                **view.values,
            )
        )
        response = HTMLResponse(text, view.status, SECURITY)
        if request.method == "GET" and VISIT not in request.cookies:
            _keep(request, response, VISIT, visit)
        return response


def _keep(request: Request, response: Response, name: str, value: str) -> None:
    """A cookie that no script reads and no other site sends."""
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    response.set_cookie(name, value, max_age=DAYS * 86400, httponly=True, samesite="strict", secure=secure, path="/")
