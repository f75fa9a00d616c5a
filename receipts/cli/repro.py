"""``receipts repro``: what it takes to run a receipt again."""

from __future__ import annotations

from dataclasses import asdict

import click

from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.session import Session, fetch, pass_session

EPILOG = """\b
Examples:
  receipts repro 3f9c
  receipts repro @golden > again.sh"""


@click.command("repro", epilog=EPILOG)
@click.argument("receipt", metavar="ID|FILE")
@click.option("--json", "as_json", is_flag=True, help="Print the parts as JSON.")
@pass_session
def command(session: Session, receipt: str, as_json: bool) -> int:
    """Print the command, flags and wheels of a receipt as a shell script, and list what the receipt does not state."""
    from receipts.questions.repro import recipe

    parsed = fetch(session, [receipt])[0]
    if len(parsed) > 1:
        raise UsageError(f"{receipt} names {len(parsed)} receipts; name one by its id")
    steps = recipe(parsed[0])
    output.answer(as_json, {"id": parsed[0].id, **asdict(steps)}, steps.script)
    return 0
