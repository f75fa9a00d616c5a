"""Which site a request is for, and from which it comes: a page elsewhere neither borrows this name nor writes here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from receipts.serve.problems import problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from receipts.serve.server import Settings

LOCAL: Final = ("127.0.0.1", "::1", "localhost")
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
            if "\0" in scope["path"] or b"%00" in scope["query_string"] or b"\0" in scope["query_string"]:
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
