"""Starting the server: what is refused before it listens, and uvicorn."""

from __future__ import annotations

import gc
import ipaddress
import logging
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple

import uvicorn
from limits import parse

from receipts.base.errors import ReceiptsError, UsageError
from receipts.base.plugins import service
from receipts.plugins.serve.app import application
from receipts.plugins.serve.guard import LOCAL, AccessLog, Limits
from receipts.plugins.serve.notices import SERVE
from receipts.plugins.serve.operations import OPERATIONS
from receipts.plugins.serve.server import Server, Settings
from receipts.plugins.serve.workers import Workers
from receipts.store import open_store

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp

    from receipts.judging.rulebook import Rulebook


COLLECT_AT: Final = 20_000  # new objects: some 20 ms, once in a few requests


class ServeOptions(NamedTuple):
    """What the command was given."""

    listen: str
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    rate: str
    comparisons: int
    webhooks: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    log: str = "none"


def serve(url: str | None, rulebook: Rulebook, options: ServeOptions, note: Callable[[str], None]) -> int:
    """Serve until a signal ends it. Raises UsageError for an address that may not be served, and StoreError."""
    host, port = address(options.listen)
    server = prepared(url, rulebook, options, host)
    app: ASGIApp = with_pages(server)
    if options.log != "none":
        try:
            app = AccessLog(app, options.log)
        except OSError as error:
            server.close()
            raise UsageError(f"--access-log {options.log}: it cannot be written ({error.strerror})") from None
    who = "everybody on this machine may do everything" if server.settings.open else "tokens are asked for"
    note(f"serving {server.opened.url} at http://{options.listen}; {who}; end it with Ctrl-C")
    running = uvicorn.Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http="h11",  # which bounds a head as it comes
            log_level=logging.WARNING,
            access_log=False,
            server_header=False,
            # Whoever sends the header names the address that is slowed down: only those that are named may.
            proxy_headers=bool(options.proxies),
            forwarded_allow_ips=list(options.proxies),
            timeout_keep_alive=30,
            timeout_graceful_shutdown=20,
        )
    )
    server.workers = Workers(server, options.comparisons)
    Thread(target=_warm, args=(server,), daemon=True).start()
    try:
        running.run()
    except SystemExit:
        raise ReceiptsError(f"{options.listen} cannot be listened on; is another server running there?") from None
    return 0


def _warm(server: Server) -> None:
    """Make what pages take from the whole store before the first visitor waits for it."""
    from receipts.plugins.serve.inbox import open_questions

    # A server that closes makes nothing more, and cancels what waits.
    with suppress(ReceiptsError, RuntimeError, CancelledError):
        server.counts(), server.frontier(), open_questions(server)
    # A command collects at half a million objects, which made one request in sixty wait for half a second. What stays
    # for good is not walked again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AT)


def with_pages(server: Server) -> Starlette:
    """The whole application: operations, and pages for a browser."""
    from receipts.plugins.serve.site import Site

    site = Site(server)
    return application(server, OPERATIONS, site.routes(), site.missing)


def prepared(url: str | None, rulebook: Rulebook, options: ServeOptions, host: str) -> Server:
    """A server that may listen at a host. Raises UsageError where it may not, and StoreError."""
    try:
        parse(options.rate)
    except ValueError:
        raise UsageError(f"--rate {options.rate}: write how many a second, minute or hour: 1000/second") from None
    named = options.webhooks or options.notify
    to = service("notices", SERVE).targets(options.webhooks, options.notify) if named else ()
    opened = open_store(url, create=True)
    try:
        from receipts.store.tokens import Tokens

        local = is_local(host)
        guarded = bool(Tokens(opened.database).all())
        # A name of its own means a proxy in front, which hands on what others send.
        others = [f"--host {name}" for name in options.hosts if name.lower() not in LOCAL]
        if not guarded and (not local or others):
            option = f"--listen {options.listen}" if not local else others[0]
            raise UsageError(
                f"{option}: anyone who reaches this server could change the store; give tokens first: "
                "receipts token add NAME --scope read"
            )
        if not local and not options.hosts:
            raise UsageError(f"--listen {options.listen}: say which name it answers to: --host receipts.example.org")
        limits = Limits(rate=options.rate, comparisons=options.comparisons)
        hosts = tuple(dict.fromkeys((*LOCAL, *(item.lower() for item in options.hosts))))
        return Server(opened, rulebook, Settings(hosts, options.origins, not guarded, limits), to)
    except BaseException:
        opened.close()
        raise


def address(text: str) -> tuple[str, int]:
    """Host and port. Raises UsageError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 <= int(port) < 65536:
        raise UsageError(f"--listen {text}: write an address and a port: 127.0.0.1:8700")
    return host.strip("[]"), int(port)


def is_local(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
