"""Pages as routes: a login that keeps the token in a cookie, forms against forgery, errors as pages."""

from __future__ import annotations

import hmac
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from html import escape
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qsl, quote

from anyio import CapacityLimiter, to_thread
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from receipts.base.environment import bundled_folder
from receipts.base.errors import ReceiptsError
from receipts.plugins.serve import answered, guard, inbox, runs
from receipts.plugins.serve.app import COOKIE, SECURITY, admitted
from receipts.plugins.serve.guard import AccessDenied, Busy, RequestRefused
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.server import Server
from receipts.plugins.serve.view import View, rendered
from receipts.publish.page import Page
from receipts.store.query.reports import store_state

VISIT: Final = "receipts-visit"  # what a form's proof is bound to before there is a token
DAYS: Final = 30
FORM: Final = "application/x-www-form-urlencoded"
FORM_BYTES: Final = 1 << 16
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
Handler = Callable[[Call], View]
# Pages that follow the store while they are open, by a script of their own; no other script runs on any page.
LIVE: Final = ("/", "/runs", "/failures", "/inbox")


VIEWS: Final[Mapping[str, Handler]] = {
    "/": inbox.frontier,
    "/runs": runs.runs,
    "/runs/{id}": runs.one_run,
    "/failures": inbox.failures,
    "/inbox": inbox.inbox,
    "/decisions": answered.decisions,
    "/reports": answered.reports,
}
# These take longer than a page may: they are answered one after another, and once for all who ask the same.
COSTLY: Final[Mapping[str, Handler]] = {
    "/compare": runs.comparison,
    "/bridge": answered.Shown("bridge", "Bridge", ("a", "b"), needed=2),
    "/histories": answered.lines,
    "/claims": answered.claims,
    "/claims/{claim_id}": answered.Shown("claim show", "Claim"),
}


LIVE_SCRIPT: Final = Markup((bundled_folder("reports") / "parts" / "live.js").read_text(encoding="utf-8"))
_DIGEST: Final = b64encode(sha256(LIVE_SCRIPT.encode()).digest()).decode()
_POLICY: Final = "Content-Security-Policy"
FOLLOWING: Final = {**SECURITY, _POLICY: f"{SECURITY[_POLICY]}; script-src 'sha256-{_DIGEST}'; connect-src 'self'"}


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


class Site:
    """The pages of a server. Its key lives as long as it does: a form of an earlier start is refused."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._key = secrets.token_bytes(32)
        # What stands for a visitor's name and proof in a page that several are given.
        self._marks = secrets.token_hex(16), secrets.token_hex(16)

    def routes(self) -> list[Route]:
        """Every page."""
        return [
            *(
                Route(path, partial(self.page, path, handler, costly), methods=["GET"])
                for views, costly in ((VIEWS, False), (COSTLY, True))
                for path, handler in views.items()
            ),
            Route("/runs/{id}", self.change, methods=["POST"]),
            Route("/live", self.live),
            Route("/login", self.login, methods=["GET", "POST"]),
            Route("/logout", self.logout, methods=["POST"]),
        ]

    async def page(self, path: str, handler: Handler, costly: bool, request: Request) -> Response:  # of a route
        """A view, or the way to the login, or the error as a page."""
        started = time.perf_counter()
        work = partial(self._shared if costly else self._shown, handler, request)
        response = await self._guarded(request, work, scope="read", queue=self._server.queue if costly else None)
        self._server.metrics.request("GET", path, response.status_code, time.perf_counter() - started)
        return response

    async def live(self, request: Request) -> Response:
        """The state of the store, as a word that another state changes."""

        def state(_token: Any) -> Response:
            word = sha256(repr(store_state(self._server.opened.database)).encode()).hexdigest()
            return PlainTextResponse(word, headers=SECURITY)

        return await self._guarded(request, state, scope="read")

    def missing(self, request: Request, why: str) -> Response:
        """The page of a path that leads nowhere."""
        return self._failed(request, 404, why)

    async def change(self, request: Request) -> Response:
        """A pin or a decision, from a form of this site alone."""
        form = await _form(request)

        def change(token: Any) -> Response:
            self._prove(request, form)
            return RedirectResponse(runs.changed(Call(self._server, request, token, {}), form), 303, SECURITY)

        return await self._guarded(request, change, scope="decide")

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
            return self._rendered(request, View(Page("Sign in", (why,)), "login", {"next": target}, error.status))
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

    async def _guarded(
        self, request: Request, work: Callable[[Any], Response], *, scope: str, queue: CapacityLimiter | None = None
    ) -> Response:
        try:
            token = await admitted(self._server, request, scope, visitor=True)
            return await to_thread.run_sync(work, token, limiter=queue)
        except RequestRefused as error:
            if error.status == 401 and request.method == "GET":
                here = f"{request.url.path}?{request.url.query}".rstrip("?")
                return RedirectResponse(f"/login?next={quote(here)}", 303, SECURITY)
            response = self._failed(request, error.status, error.why)
            response.headers.update(error.headers or {})
            return response
        except ReceiptsError as error:
            status, given = guard.status_of(error), request.query_params
            form, values = "site", NOTHING
            # The form that the question came from, filled in as it was: a wrong word is corrected where it stands.
            if request.url.path == "/compare":
                form, values = "compare", {name: ", ".join(given.getlist(name)) for name in ("a", "b")}
            elif request.url.path == "/runs":
                form, values = "runs", {**runs.NOTHING, "query": given.get("q", "")}
            return self._failed(request, status, guard.public_text(error, status), form, values)

    def _shown(self, handler: Handler, request: Request, token: Any) -> Response:
        call = Call(self._server, request, token, {})
        with call.store.opened.one_state():
            return self._rendered(request, handler(call), token)

    def _shared(self, handler: Handler, request: Request, token: Any) -> Response:
        marks = self._marks if token is not None else ("", self._marks[1])
        text, status = Call(self._server, request, token, {}).costly(partial(_written, handler, marks))
        for mark, value in zip(self._marks, self._of_visitor(request, token), strict=True):
            text = text.replace(mark, escape(value))
        return self._sent(request, text, status)

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

    def _of_visitor(self, request: Request, token: Any) -> tuple[str, str]:
        """Who it is, and what the forms of a page that is given to this visitor carry."""
        return token.name if token is not None else "", self._proof(request, _visit(request)).decode()

    def _rendered(self, request: Request, view: View, token: Any = None) -> Response:
        live = LIVE_SCRIPT if request.url.path in LIVE and view.status == 200 else ""
        text = rendered(view, request.url.path, *self._of_visitor(request, token), live=live)
        return self._sent(request, text, view.status)

    def _sent(self, request: Request, text: str, status: int) -> Response:
        response = HTMLResponse(text, status, FOLLOWING if request.url.path in LIVE else SECURITY)
        if request.method == "GET" and VISIT not in request.cookies:
            _keep(request, response, VISIT, _visit(request))
        return response


def _visit(request: Request) -> str:
    """What this visitor is known by: the cookie, or what it will be."""
    if not hasattr(request.state, "visit"):
        request.state.visit = request.cookies.get(VISIT) or secrets.token_urlsafe(16)
    return str(request.state.visit)


def _written(handler: Handler, visitor: tuple[str, str], call: Call) -> tuple[str, int]:
    """A view as text with its status, in which ``visitor`` stands for who sees it."""
    view = handler(call)
    return rendered(view, call.request.url.path, *visitor), view.status


def _keep(request: Request, response: Response, name: str, value: str) -> None:
    """A cookie that no script reads and no other site sends."""
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https"
    response.set_cookie(name, value, max_age=DAYS * 86400, httponly=True, samesite="strict", secure=secure, path="/")
