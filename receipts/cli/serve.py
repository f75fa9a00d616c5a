"""``receipts serve`` and ``mcp``: the store over HTTP, with pages, and its questions for an agent."""

from __future__ import annotations

import click

from receipts.cli import output
from receipts.cli.session import Session, verb


@verb("serve", json=False)
@click.option("--listen", default="127.0.0.1:8700", show_default=True, metavar="ADDRESS:PORT", help="Where to listen.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A name that the server answers to.")
@click.option("--origin", "origins", multiple=True, metavar="URL", help="Another site whose pages may ask this server.")
@click.option("--proxy", "proxies", multiple=True, metavar="ADDRESS", help="A proxy whose X-Forwarded-For counts.")
@click.option("--rate", default="1000/second", show_default=True, metavar="N/second", help="Requests of one caller.")
@click.option("--comparisons", default=4, show_default=True, type=click.IntRange(1, 64), help="Comparisons at once.")
def command(
    session: Session,
    listen: str,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    proxies: tuple[str, ...],
    rate: str,
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
    from receipts.serve.run import ServeOptions, serve

    config = session.config
    options = ServeOptions(listen, hosts, origins, rate, comparisons, config.webhooks, config.notify, proxies)
    return serve(session.store_url, session.rulebook, options, output.note)


@verb("mcp", json=False)
@click.option("--listen", metavar="ADDRESS:PORT", help="Serve over HTTP here, to who has a token.")
def mcp(session: Session, listen: str | None) -> int:
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
    from receipts.serve.mcp import serve

    serve(session.store_url, session.rulebook, listen)
    return 0
