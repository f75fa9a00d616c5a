"""``receipts serve``, ``mcp`` and ``token``: the store over HTTP, its questions for an agent, and who may do what."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.session import Answer, Session, group, verb
from receipts.publish.page import table_of


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
    from receipts.plugins.serve.run import ServeOptions, serve

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
    from receipts.plugins.serve.mcp import serve

    serve(session.store_url, session.rulebook, listen, whole=whole)
    return 0


_EXPIRES = re.compile(r"([1-9][0-9]{0,4})([dhm])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


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
    from receipts.store.tokens import Tokens, checked

    checked(name, scopes)
    until = _until(expires)
    token, secret = Tokens(session.opened(create=True).database).add(name, scopes, until)
    ends = f"until {until:%Y-%m-%d %H:%M} UTC" if until is not None else "for good"
    note = f"{name} may {', '.join(token.scopes)} {ends}; the token is not shown again"
    return Answer({**token._asdict(), "token": secret}, secret, notes=(note,))


def _until(text: str) -> datetime | None:
    if text == "never":
        return None
    match = _EXPIRES.fullmatch(text)
    if match is None:
        raise UsageError(f"--expires {text}: write days, hours or minutes, such as 90d or 12h, or never")
    return datetime.now(UTC) + timedelta(**{_UNITS[match[2]]: int(match[1])})


@verb("list", of=token_command)
def list_(session: Session) -> Answer:
    """List the tokens that are not revoked.

    Examples:
      receipts token list
      receipts token list --json
    """
    from receipts.store.tokens import Tokens

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
    from receipts.store.tokens import Tokens

    token = Tokens(session.store.database).revoke(name)
    return Answer(token._asdict(), f"{token.name} ({token.prefix}…) is revoked")
