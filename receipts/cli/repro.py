"""``receipts repro``: what it takes to run a receipt again."""

from __future__ import annotations

from dataclasses import asdict

import click

from receipts.cli import output
from receipts.cli.session import Session, is_file, one, parsed_file
from receipts.cli.verb import verb


@verb("repro")
@click.argument("receipt", metavar="ID|FILE")
def command(session: Session, receipt: str) -> int:
    """Print the command, flags and wheels of a receipt as a shell script, and list what the receipt does not state.

    Examples:
      receipts repro 3f9c
      receipts repro @golden > again.sh
    """
    from receipts.questions.repro import recipe

    if is_file(receipt):
        parsed = parsed_file(receipt)
    else:
        parsed = one(session.opened(looked_up=[receipt]), receipt)
    steps = recipe(parsed)
    if session.as_json:
        output.as_json({"id": parsed.id, **asdict(steps)})
    else:
        output.line(steps.script())  # it is to be run: an answer of a verb would have its tabs escaped
    return 0
