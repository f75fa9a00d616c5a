"""``receipts serve``, ``mcp`` and ``token``: the store over HTTP, its questions for an agent, and who may do what.

Starting the server refuses, before it listens, what no server should do.
"""

from __future__ import annotations

import gc
import ipaddress
import logging
import re
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from receipts.base.errors import ReceiptsError, UsageError
from receipts.base.plugins import service
from receipts.cli import output
from receipts.cli.session import Answer, Session, group, verb

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp

    from receipts.judging.rulebook import Rulebook
    from receipts.plugins.serve.server import Server

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
    import uvicorn

    from receipts.plugins.serve.guard import AccessLog
    from receipts.plugins.serve.workers import Workers

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
    from receipts.plugins.serve.app import application
    from receipts.plugins.serve.operations import OPERATIONS
    from receipts.plugins.serve.site import Site

    site = Site(server)
    return application(server, OPERATIONS, site.routes(), site.missing)


def prepared(url: str | None, rulebook: Rulebook, options: ServeOptions, host: str) -> Server:
    """A server that may listen at a host. Raises UsageError where it may not, and StoreError."""
    from limits import parse

    from receipts.plugins.serve.guard import LOCAL, Limits
    from receipts.plugins.serve.notices import SERVE
    from receipts.plugins.serve.server import Server, Settings
    from receipts.store import open_store
    from receipts.store.credentials import Tokens

    try:
        parse(options.rate)
    except ValueError:
        raise UsageError(f"--rate {options.rate}: write how many a second, minute or hour: 1000/second") from None
    named = options.webhooks or options.notify
    to = service("notices", SERVE).targets(options.webhooks, options.notify) if named else ()
    opened = open_store(url, create=True)
    try:
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


@verb("serve", json=False)
@click.option("--listen", default="127.0.0.1:8700", show_default=True, metavar="ADDRESS:PORT", help="Where to listen.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A name that the server answers to.")
@click.option("--origin", "origins", multiple=True, metavar="URL", help="Another site whose pages may ask this server.")
@click.option("--proxy", "proxies", multiple=True, metavar="ADDRESS", help="A proxy whose X-Forwarded-For counts.")
@click.option("--rate", default="1000/second", show_default=True, metavar="N/second", help="Requests of one caller.")
@click.option("--access-log", "log", default="-", metavar="FILE|-|none", help="A line a request.  [default: stderr]")
@click.option("--comparisons", default=4, show_default=True, type=click.IntRange(1, 64), help="Comparisons at once.")
def serve_command(
    session: Session,
    listen: str,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    proxies: tuple[str, ...],
    rate: str,
    log: str,
    comparisons: int,
) -> int:
    """Serve the store to a team: submits and questions over HTTP, and pages for a browser.

    Examples:
      receipts serve
      receipts serve --listen 0.0.0.0:8700 --host receipts.example.org --proxy 10.0.0.7
      RECEIPTS_STORE=https://receipts.example.org RECEIPTS_TOKEN=rcp_… receipts submit run.json

    Without tokens it listens on this machine alone, and anyone who can reach it may do everything. docs/serve.md has
    the container, the systemd unit and TLS. Exit codes: 0 stopped, 2 wrong call, 4 the store or the address failed.
    """
    from receipts.base.environment import extra

    extra("starlette", "serve")

    config = session.config
    options = ServeOptions(listen, hosts, origins, rate, comparisons, config.webhooks, config.notify, proxies, log)
    return serve(session.store_url, session.rulebook, options, output.note)


@verb("mcp", json=False)
@click.option("--listen", metavar="ADDRESS:PORT", help="Serve over HTTP here, to who has a token.")
@click.option("--all", "whole", is_flag=True, help="Offer every question, not only the twelve that are asked most.")
def mcp(session: Session, listen: str | None, whole: bool) -> int:
    """Serve the store's questions to an agent over the Model Context Protocol, read-only.

    Examples:
      receipts mcp
      receipts --store https://receipts.example.org mcp
      receipts mcp --listen 127.0.0.1:8701

    It speaks over standard input and output unless --listen names an address of this machine; there each request needs
    a token of scope read. No tool writes.
    """
    from receipts.base.environment import extra

    extra("mcp", "mcp")
    from receipts.plugins.serve.tools import serve

    serve(session.store_url, session.rulebook, listen, whole=whole)
    return 0


@group("token")
def token_command() -> None:
    """Create, list and revoke tokens for the server. Only their SHA-256 is stored.

    Examples:
      receipts token add cluster --scope submit:nvidia-megatron --expires 90d
      receipts token add ana --scope read --scope decide --expires never
      receipts token list
      receipts token revoke cluster
    """


@verb("add", of=token_command)
@click.argument("name", metavar="NAME")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="What it may do; may be repeated.")
@click.option("--expires", default="90d", show_default=True, metavar="90d|12h|never", help="How long it is valid.")
def add(session: Session, name: str, scopes: tuple[str, ...], expires: str) -> Answer:
    """Create a token, and print it.

    Examples:
      receipts token add cluster --scope submit --expires 90d
      receipts token add ana --scope decide --expires 365d

    Scopes: submit (or submit:LANE), read, decide (with read: pins, decisions, claims), admin (all).
    The token is printed once. The name is the actor of every row that it causes.
    """
    from receipts.store.credentials import Tokens, checked

    checked(name, scopes)
    until = None
    if expires != "never":
        match = re.fullmatch(r"([1-9][0-9]{0,4})([dhm])", expires)
        if match is None:
            raise UsageError(f"--expires {expires}: write days, hours or minutes, such as 90d or 12h, or never")
        unit = {"d": "days", "h": "hours", "m": "minutes"}[match[2]]
        until = datetime.now(UTC) + timedelta(**{unit: int(match[1])})
    token, secret = Tokens(session.opened(create=True).database).add(name, scopes, until)
    ends = f"until {until:%Y-%m-%d %H:%M} UTC" if until is not None else "for good"
    note = f"{name} may {', '.join(token.scopes)} {ends}; the token is not shown again"
    return Answer({**token._asdict(), "token": secret}, secret, notes=(note,))


@verb("list", of=token_command)
def list_(session: Session) -> Answer:
    """List the tokens that are not revoked.

    Examples:
      receipts token list
      receipts token list --json
    """
    from receipts.publish.page import table_of
    from receipts.store.credentials import Tokens

    tokens = Tokens(session.store.database).all()
    now = datetime.now(UTC)
    rows = [
        (
            item.name,
            f"{item.prefix}…",
            " ".join(item.scopes),
            "never" if item.expires is None else f"{item.expires:%Y-%m-%d %H:%M}{' (expired)' * (item.expires <= now)}",
        )
        for item in tokens
    ]
    empty = "no tokens; receipts token add NAME --scope read"
    listed = table_of("", "name | token | may | expires, UTC", rows, empty=empty)
    return Answer([item._asdict() for item in tokens], listed)


@verb("revoke", of=token_command)
@click.argument("name", metavar="NAME")
def revoke(session: Session, name: str) -> Answer:
    """End a token now.

    Examples:
      receipts token revoke cluster
    """
    from receipts.store.credentials import Tokens

    token = Tokens(session.store.database).revoke(name)
    return Answer(token._asdict(), f"{token.name} ({token.prefix}…) is revoked")
