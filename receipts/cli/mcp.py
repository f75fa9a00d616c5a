"""``receipts mcp``: the store's questions for an agent."""

from __future__ import annotations

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts mcp
  receipts --store https://receipts.example.org mcp
  receipts mcp --listen 127.0.0.1:8701

Over standard input and output unless --listen names an address of this machine. Every tool reads, and none writes."""


@click.command("mcp", epilog=EPILOG)
@click.option("--listen", metavar="ADDRESS:PORT", help="Serve over HTTP here, on this machine alone.")
@pass_session
def command(session: Session, listen: str | None) -> int:
    """Serve the store's questions to an agent over the Model Context Protocol, read-only."""
    try:
        from receipts.serve.mcp import serve
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"the MCP server needs {missing.name}; install it with: pip install 'frontier-receipts[mcp]'"
        ) from None
    serve(session.store_url, session.rulebook, listen)
    return 0
