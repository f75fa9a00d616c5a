"""``receipts repro``: what it takes to run a receipt again."""

from __future__ import annotations

from dataclasses import asdict

import click

from receipts.cli import output
from receipts.cli.session import Session, is_file, one, parsed_file, pass_session

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

    if is_file(receipt):
        parsed = parsed_file(receipt)
    else:
        with session.open_store(looked_up=[receipt]) as store:
            parsed = one(store, receipt)
    steps = recipe(parsed)
    output.answer(as_json, {"id": parsed.id, **asdict(steps)}, lambda: output.line(steps.script()))
    return 0
